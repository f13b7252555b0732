"""Waits by day, and which workloads were submitted."""

from gpuledger_migrations.scripts import run_script

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None


def upgrade() -> None:
    run_script("0018_waits.sql")


def downgrade() -> None:
    run_script("0018_without.sql")
