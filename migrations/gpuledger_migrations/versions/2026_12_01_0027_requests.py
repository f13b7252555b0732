"""What a workload asks for may change while it waits: a wait that is cut there says since when it lasts."""

from gpuledger_migrations.scripts import run_script

revision = "0027"
down_revision = "0026"
branch_labels = None
depends_on = None


def upgrade() -> None:
    run_script("0027_requests.sql")


def downgrade() -> None:
    run_script("0027_without.sql")
