"""Warehouse tables."""

from pathlib import Path

from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # The driver's own connection: scripts hold % signs and many statements.
    op.get_bind().connection.driver_connection.execute((Path(__file__).parent / "sql" / "0003_warehouse.sql").read_text())


def downgrade() -> None:
    op.execute("DROP SCHEMA warehouse CASCADE")
