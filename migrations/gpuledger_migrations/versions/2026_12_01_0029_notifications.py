"""Notifications: what was noticed, and how far each recipient has been told."""

from gpuledger_migrations.scripts import run_script

revision = "0029"
down_revision = "0028"
branch_labels = None
depends_on = None


def upgrade() -> None:
    run_script("0029_notifications.sql")


def downgrade() -> None:
    run_script("0029_without.sql")
