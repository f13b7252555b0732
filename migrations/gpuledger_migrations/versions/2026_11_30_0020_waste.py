"""Waste by day and person."""

from gpuledger_migrations.scripts import run_script

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None


def upgrade() -> None:
    run_script("0020_waste.sql")


def downgrade() -> None:
    run_script("0020_without.sql")
