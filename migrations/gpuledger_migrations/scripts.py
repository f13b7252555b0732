"""Run a revision's SQL file."""

from pathlib import Path

from alembic import op
from psycopg import Connection

_FOLDER = Path(__file__).parent / "versions" / "sql"


def run_script(name: str) -> None:
    """Execute ``versions/sql/NAME`` in the revision's transaction.

    The driver's own connection takes it: scripts hold % signs and many statements.
    """
    connection = op.get_bind().connection.driver_connection
    if not isinstance(connection, Connection):
        raise TypeError(f"migrations run on psycopg, not on {type(connection)}")
    connection.execute((_FOLDER / name).read_text())
