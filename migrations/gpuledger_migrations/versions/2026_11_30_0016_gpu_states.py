"""States of GPUs by bucket and hour, demand and entitlement by name, and what every column of the warehouse is."""

from gpuledger_migrations.scripts import run_script

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None


def upgrade() -> None:
    run_script("0016_gpu_states.sql")


def downgrade() -> None:
    run_script("0016_without.sql")
