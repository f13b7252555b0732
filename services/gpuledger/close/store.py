"""Closes and statements in the warehouse: rows that say how far each version of a close has come."""

import datetime as dt
from collections.abc import Iterator
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from gpuledger.close.document import Document, Line
from gpuledger.database.engine import Reader, Writer
from gpuledger.ledger.close_policies import told_until
from gpuledger.ledger.close_rows import CloseRows, close_of
from gpuledger.warehouse.close_tables import close, statement


class Place(NamedTuple):
    """A version of the close of a period of a cluster."""

    cluster: str
    period: str
    version: int

    def rows_of(self, table: sa.Table) -> sa.ColumnElement[bool]:
        """Return the condition on its rows in a table of closes."""
        return sa.and_(*(table.c[name] == value for name, value in self._asdict().items()))


def note(writer: Writer, place: Place, state: str, **columns: object) -> None:
    """Say how far a close has come; what its book says of it is taken from there.

    Args:
        writer: The transaction, with the book's rows written.
        place: The close.
        state: How far it has come.
        columns: What else the step has found.
    """
    rows = close_of(writer, place.cluster, place.period, place.version)
    values: dict[str, Any] = {
        **place._asdict(),
        **_of_book(writer, place.cluster, rows),
        **columns,
        "state": state,
    }
    inserted = postgresql.insert(close).values(values)
    key = {"cluster", "period", "version"}
    writer.execute(
        inserted.on_conflict_do_update(
            index_elements=sorted(key),
            set_={name: inserted.excluded[name] for name in values if name not in key},
        )
    )


def write_statement(writer: Writer, place: Place, document: Document) -> None:
    """Put the lines of a statement in the place of those that were there."""
    writer.execute(sa.delete(statement).where(place.rows_of(statement)))
    if document.accounts:
        lines = [{**place._asdict(), **flat(line)} for line in document.accounts]
        writer.execute(sa.insert(statement), lines)


def flat(line: Line) -> dict[str, str | int]:
    """Return a line under the names of the columns of ``warehouse.statement``."""
    return {"account": line.account, **line.amounts()}


class Stored(NamedTuple):
    """What the warehouse holds of a close."""

    state: str
    checks: int | None
    digest: str | None
    document: str | None
    published_at: dt.datetime | None


def find(connection: Reader | Writer, place: Place) -> Stored | None:
    """Return what the warehouse holds of a close; None when it holds nothing."""
    row = connection.execute(
        sa.select(
            close.c.state, close.c.checks, close.c.digest, close.c.document, close.c.published_at
        ).where(place.rows_of(close))
    ).one_or_none()
    return None if row is None else Stored(*row)


def iter_lines(connection: Reader | Writer, place: Place) -> Iterator[dict[str, str | int]]:
    """Yield the lines that the warehouse holds of a statement, by account, as ``flat`` returns them."""
    columns = [column for column in statement.c if column.name not in place._fields]
    rows = connection.execute(
        sa.select(*columns).where(place.rows_of(statement)).order_by(statement.c.account.collate("C"))
    )
    for row in rows.mappings():
        yield dict(row)


def _of_book(writer: Writer, cluster: str, rows: CloseRows) -> dict[str, Any]:
    frozen = rows.closing.frozen
    if frozen is None:
        raise ValueError("a close without a frozen state has no row in the warehouse")
    silent = [s for s in told_until(writer, cluster, rows.closing_seq) if s.told_until_at < frozen.ends_at]
    return {
        "closing_seq": rows.closing_seq,
        "closed_seq": rows.closed_seq,
        "sealed_seq": rows.sealed_seq,
        "reopened_seq": rows.reopened_seq,
        "org_seq": frozen.org_seq,
        "starts_at": frozen.starts_at,
        "ends_at": frozen.ends_at,
        "silent_sources": len(silent),
        "unexplained_runs": None if rows.reconciled is None else rows.reconciled.unexplained,
        "digest": rows.digest,
        "frozen_at": rows.closing_at,
        "sealed_at": rows.sealed_at,
    }
