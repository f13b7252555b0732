"""Journal, postings, projections, side store, telemetry."""

from pathlib import Path

from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    # The driver's own connection: scripts hold % signs and many statements.
    op.get_bind().connection.driver_connection.execute((Path(__file__).parent / "sql" / "0001_ledger.sql").read_text())


def downgrade() -> None:
    op.execute("DROP SCHEMA ledger, side, telemetry CASCADE")
