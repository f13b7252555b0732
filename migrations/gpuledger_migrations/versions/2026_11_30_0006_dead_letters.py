"""Dead letters that nobody needs any more, their clusters; how old what a worker handled is."""

from gpuledger_migrations.scripts import run_script

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    run_script("0006_dead_letters.sql")


def downgrade() -> None:
    run_script("0006_without.sql")
