"""When a run was named last by samples is found by the run."""

from gpuledger_migrations.scripts import run_script

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    run_script("0011_named_runs.sql")


def downgrade() -> None:
    run_script("0011_without.sql")
