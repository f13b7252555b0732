"""Append-only triggers, roles, and the views pipelines may read."""

from pathlib import Path

from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # The driver's own connection: scripts hold % signs and many statements.
    op.get_bind().connection.driver_connection.execute((Path(__file__).parent / "sql" / "0002_laws.sql").read_text())


def downgrade() -> None:
    # The roles stay: other databases of the server may use them.
    op.execute("DROP SCHEMA ledger_read CASCADE")
    op.execute("DROP FUNCTION ledger.refuse_change() CASCADE")
