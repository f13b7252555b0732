"""What accounts will have been delivered when a period ends."""

from gpuledger_migrations.scripts import run_script

revision = "0028"
down_revision = "0027"
branch_labels = None
depends_on = None


def upgrade() -> None:
    run_script("0028_forecast.sql")


def downgrade() -> None:
    run_script("0028_without.sql")
