"""What accounts used and what stands of it, by day."""

from gpuledger_migrations.scripts import run_script

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None


def upgrade() -> None:
    run_script("0015_days.sql")


def downgrade() -> None:
    run_script("0015_without.sql")
