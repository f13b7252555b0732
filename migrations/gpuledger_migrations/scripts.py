"""Run a revision's SQL file."""

import re
from pathlib import Path

from alembic import op
from psycopg import Connection

from gpuledger_migrations.roles import OWNER

_FOLDER = Path(__file__).parent / "versions" / "sql"

_OF_ROLES = re.compile(
    r"^DO \$\$\nBEGIN\n    CREATE ROLE [^$]*\$\$;\n|^GRANT gpuledger_writer, gpuledger_reader TO CURRENT_USER;\n",
    re.MULTILINE,
)
"""What a script says of roles that belong to the whole server: ``roles.provide`` has seen to it, within what
the login may do."""


def run_script(name: str, *, as_owner: bool = True) -> None:
    """Execute ``versions/sql/NAME`` in the revision's transaction, as the owner of the ledger once there is one.

    The driver's own connection takes it: scripts hold % signs and many statements.
    """
    connection = op.get_bind().connection.driver_connection
    if not isinstance(connection, Connection):
        raise TypeError(f"migrations run on psycopg, not on {type(connection)}")
    script = _OF_ROLES.sub("", (_FOLDER / name).read_text())
    if as_owner and _owned(connection):
        connection.execute(f"SET LOCAL ROLE {OWNER}")
        connection.execute(script)
        connection.execute("RESET ROLE")  # the table of revisions is the login's
    else:
        connection.execute(script)


def _owned(connection: "Connection[tuple[object, ...]]") -> bool:
    query = "SELECT 1 FROM pg_namespace WHERE nspname = 'ledger' AND pg_get_userbyid(nspowner) = %s"
    return connection.execute(query, (OWNER,)).fetchone() is not None
