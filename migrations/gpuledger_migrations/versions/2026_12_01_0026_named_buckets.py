"""Samples of runs that their host named are read without looking for a run."""

from gpuledger_migrations.scripts import run_script

revision = "0026"
down_revision = "0025"
branch_labels = None
depends_on = None


def upgrade() -> None:
    run_script("0026_named_buckets.sql")


def downgrade() -> None:
    run_script("0026_without.sql")
