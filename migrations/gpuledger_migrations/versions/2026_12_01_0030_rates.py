"""What the time of GPU models weighs, for whoever holds it against a budget."""

from gpuledger_migrations.scripts import run_script

revision = "0030"
down_revision = "0029"
branch_labels = None
depends_on = None


def upgrade() -> None:
    run_script("0030_rates.sql")


def downgrade() -> None:
    run_script("0030_without.sql")
