"""Hosts of which parts may be used while others are in trouble."""

from gpuledger_migrations.scripts import run_script

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    run_script("0012_partial_use.sql")


def downgrade() -> None:
    run_script("0012_without.sql")
