"""What is set aside, lots, the book's clock, the life of periods, overdraft."""

from gpuledger_migrations.scripts import run_script

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    run_script("0005_holds_and_closes.sql")


def downgrade() -> None:
    run_script("0005_without.sql")
