"""Bulk writes: COPY for what is only added, one statement for what is added up."""

from collections.abc import Iterable, Sequence
from typing import Any

from psycopg import Connection, sql

from gpuledger.database.engine import Reader, Writer


def driver(connection: Reader | Writer) -> "Connection[Any]":
    """Return the psycopg connection under a SQLAlchemy connection, in the same transaction."""
    raw = connection.connection.driver_connection
    assert isinstance(raw, Connection)  # noqa: S101 - there is one driver
    return raw


def copy_rows(writer: Writer, table: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Append rows to ``schema.table`` by COPY."""
    statement = sql.SQL("COPY {} ({}) FROM STDIN").format(
        sql.Identifier(*table.split(".")), sql.SQL(", ").join(map(sql.Identifier, columns))
    )
    with driver(writer).cursor() as cursor, cursor.copy(statement) as copy:
        for row in rows:
            copy.write_row(row)
