"""Health of hosts by day."""

from gpuledger_migrations.scripts import run_script

revision = "0023"
down_revision = "0022"
branch_labels = None
depends_on = None


def upgrade() -> None:
    run_script("0023_hosts.sql")


def downgrade() -> None:
    run_script("0023_without.sql")
