"""Bulk writes: COPY for what is only added, one statement for what is added up."""

import struct
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

from psycopg import Connection, adapters, sql
from psycopg.adapt import Dumper
from psycopg.pq import Format
from psycopg.types.string import BytesBinaryDumper
from sqlalchemy.dialects import postgresql

import gpuledger.ledger.policy_tables
import gpuledger.ledger.side_tables
import gpuledger.ledger.stream_tables
import gpuledger.ledger.tables  # noqa: F401 - all register their tables on the metadata
from gpuledger.database.engine import Reader, Writer
from gpuledger.database.metadata import METADATA

_DIALECT = postgresql.dialect()  # type: ignore[no-untyped-call]


def driver(connection: Reader | Writer) -> "Connection[Any]":
    """Return the psycopg connection under a SQLAlchemy connection, in the same transaction."""
    raw = connection.connection.driver_connection
    assert isinstance(raw, Connection)  # noqa: S101 - there is one driver
    return raw


def copy_rows(writer: Writer, table: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Append rows to ``schema.table`` by COPY, in binary: half the work of text on both sides."""
    statement = sql.SQL("COPY {} ({}) FROM STDIN (FORMAT BINARY)").format(
        sql.Identifier(*table.split(".")), sql.SQL(", ").join(map(sql.Identifier, columns))
    )
    with driver(writer).cursor() as cursor:
        # The driver's own of these two are written in Python.
        cursor.adapters.register_dumper(bytes, BytesBinaryDumper)
        cursor.adapters.register_dumper(list, _TextsDumper)
        with cursor.copy(statement) as copy:
            copy.set_types(_types(table, tuple(columns)))
            for row in rows:
                copy.write_row(row)


@lru_cache(maxsize=64)
def _types(table: str, columns: tuple[str, ...]) -> tuple[str, ...]:
    """Return the PostgreSQL type of each column: binary COPY converts nothing.

    JSON goes as the text that it is; the driver would encode it once more.
    """
    found = {
        column.name: column.type.compile(dialect=_DIALECT).lower()
        for column in METADATA.tables[table].columns
    }
    return tuple("text" if found[name] == "json" else found[name] for name in columns)


_TEXT_OID = adapters.types["text"].oid


class _TextsDumper(Dumper):
    """Lists of texts, in binary; the driver's own dumper takes as long as all other columns of a row."""

    format = Format.BINARY
    oid = adapters.types["text"].array_oid

    def dump(self, obj: list[str]) -> bytes:
        return _pack(*obj)


class Texts(list[str]):
    """A parameter of thousands of texts: the driver's own dumper of lists takes five times as long."""


class _ParameterDumper(_TextsDumper):
    """Long lists of texts, of which no two are alike."""

    def dump(self, obj: list[str]) -> bytes:
        return _packed(obj)


adapters.register_dumper(Texts, _ParameterDumper)


@lru_cache(maxsize=4096)
def _pack(*texts: str) -> bytes:
    return _packed(texts)


def _packed(texts: Sequence[str]) -> bytes:
    """Return a list of texts in PostgreSQL's binary form of arrays."""
    if not texts:
        return struct.pack("!3i", 0, 0, _TEXT_OID)
    parts = [struct.pack("!5i", 1, 0, _TEXT_OID, len(texts), 1)]
    for value in map(str.encode, texts):
        parts += (struct.pack("!i", len(value)), value)
    return b"".join(parts)
