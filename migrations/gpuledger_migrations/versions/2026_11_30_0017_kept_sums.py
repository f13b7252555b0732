"""Sums by day are kept by the database where whoever appends does not know of them."""

from gpuledger_migrations.scripts import run_script

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None


def upgrade() -> None:
    run_script("0017_kept_sums.sql")


def downgrade() -> None:
    run_script("0017_without.sql")
