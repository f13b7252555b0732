"""How often transactions on a book were made again stands with the book."""

from gpuledger_migrations.scripts import run_script

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    run_script("0009_collisions.sql")


def downgrade() -> None:
    run_script("0009_without.sql")
