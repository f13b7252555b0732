"""The three roles of the database, made or found before the first script runs.

Roles belong to the whole server. A login that may make roles makes them; another finds them made, and itself
a member of each, or is told what an administrator has to run.
"""

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError

from gpuledger.kernel.errors import Refused

OWNER = "gpuledger_owner"
"""Owns the schemas and everything in them; nobody logs in as it."""

ROLES = (OWNER, "gpuledger_writer", "gpuledger_reader")

_EXISTS = "SELECT EXISTS (SELECT FROM pg_roles WHERE rolname = :role)"
_ACTS_AS = (
    "SELECT EXISTS (SELECT FROM pg_roles WHERE rolname = :role AND pg_has_role(current_user, oid, 'USAGE'))"
)

_MAKES_SCHEMAS = "SELECT has_database_privilege(:role, current_database(), 'CREATE')"


def provide(connection: sa.Connection) -> None:
    """Make the roles that are missing and the login a member of each; commit.

    Raises:
        Refused: When the login may not; says what an administrator has to run.
    """
    for role in ROLES:
        if not _holds(connection, _EXISTS, role):
            _try(connection, f"CREATE ROLE {role} NOLOGIN")
        if not _holds(connection, _ACTS_AS, role):
            _try(connection, f"GRANT {role} TO CURRENT_USER")
    _let_make_schemas(connection)
    unmade = [role for role in ROLES if not _holds(connection, _EXISTS, role)]
    missing = [role for role in ROLES if not _holds(connection, _ACTS_AS, role)]
    login = connection.scalar(sa.text("SELECT quote_ident(current_user)"))
    connection.commit()
    if missing:
        statements = [f"CREATE ROLE {role} NOLOGIN;" for role in unmade]
        statements.append(f"GRANT {', '.join(missing)} TO {login};")
        raise Refused(
            f"the login {login} may not make or join the roles of the ledger: {', '.join(missing)}",
            hint=f"let an administrator of the server run, then try again: {' '.join(statements)}",
        )


def _let_make_schemas(connection: sa.Connection) -> None:
    """Give the owner its right on this database again: a copy and a restored backup come without it."""
    if _holds(connection, _EXISTS, OWNER) and not _holds(connection, _MAKES_SCHEMAS, OWNER):
        database = connection.scalar(sa.text("SELECT quote_ident(current_database())"))
        _try(connection, f"GRANT CREATE ON DATABASE {database} TO {OWNER}")


def _holds(connection: sa.Connection, query: str, role: str) -> bool:
    return bool(connection.scalar(sa.text(query), {"role": role}))


def _try(connection: sa.Connection, statement: str) -> None:
    """Run a statement that may be refused, or that somebody else may run at the same moment."""
    try:
        with connection.begin_nested():
            connection.exec_driver_sql(statement)
    except DBAPIError:
        return
