"""Decisions of recent cycles without their sentences: in the same table, in another form."""

from gpuledger_migrations.scripts import run_script

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    run_script("0014_pieces.sql")


def downgrade() -> None:
    run_script("0014_without.sql")
