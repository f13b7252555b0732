"""Which days a late fact touches can be asked: what the book said before, and says now."""

from gpuledger_migrations.scripts import run_script

revision = "0025"
down_revision = "0024"
branch_labels = None
depends_on = None


def upgrade() -> None:
    run_script("0025_versions.sql")


def downgrade() -> None:
    run_script("0025_without.sql")
