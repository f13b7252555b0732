"""Hosts of which parts may be used while others are in trouble."""

from gpuledger_migrations.scripts import run_script

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    run_script("0011_partial_use.sql")


def downgrade() -> None:
    run_script("0011_without.sql")
