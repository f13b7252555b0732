"""The runs of a job are found by the scheduler's number of it."""

from gpuledger_migrations.scripts import run_script

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    run_script("0007_jobs.sql")


def downgrade() -> None:
    run_script("0007_without.sql")
