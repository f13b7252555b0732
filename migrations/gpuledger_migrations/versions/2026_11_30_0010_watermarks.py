"""Up to when each source has told all it knows."""

from gpuledger_migrations.scripts import run_script

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    run_script("0010_watermarks.sql")


def downgrade() -> None:
    run_script("0010_without.sql")
