"""Journal and postings by month, identities of their own, one role that owns everything."""

from gpuledger_migrations.scripts import run_script

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    run_script("0004_partitions.sql")


def downgrade() -> None:
    # The role stays, as the others do.
    run_script("0004_whole.sql", as_owner=False)
