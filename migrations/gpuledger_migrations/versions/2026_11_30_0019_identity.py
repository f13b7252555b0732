"""Who may ask the API: tokens, without their secrets."""

from gpuledger_migrations.scripts import run_script

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None


def upgrade() -> None:
    run_script("0019_identity.sql")


def downgrade() -> None:
    run_script("0019_without.sql")
