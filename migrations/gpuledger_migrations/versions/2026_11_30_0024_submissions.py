"""Submissions are looked up by workload, whatever the planner knows."""

from gpuledger_migrations.scripts import run_script

revision = "0024"
down_revision = "0023"
branch_labels = None
depends_on = None


def upgrade() -> None:
    run_script("0024_submissions.sql")


def downgrade() -> None:
    run_script("0024_without.sql")
