"""Cycles by their instant, their decisions in pieces, and how the policy's service is."""

from gpuledger_migrations.scripts import run_script

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    run_script("0013_cycles.sql")


def downgrade() -> None:
    run_script("0013_without.sql")
