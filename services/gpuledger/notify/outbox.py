"""The outbox: what was noticed, each once, and who is still to be told of it."""

import datetime as dt
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql
from sqlalchemy.dialects.postgresql import ARRAY

from gpuledger.database.engine import Reader, Writer
from gpuledger.kernel.clock import iso
from gpuledger.kernel.errors import NotFound
from gpuledger.notify.notices import Notice
from gpuledger.notify.patience import next_attempt
from gpuledger.notify.recipients import Recipients
from gpuledger.notify.tables import deliveries, notices

DUE, SENT, GIVEN_UP = "due", "sent", "given_up"

_PATIENT = """
    SELECT set_config(name, '0', true) FROM pg_settings
    WHERE name IN ('idle_in_transaction_session_timeout', 'transaction_timeout')
"""
"""A site's limits on open transactions would undo that a notice was sent, and have it sent again for ever."""

_SAID_MOST = 500
"""Characters of what went wrong that are kept."""


STALE = dt.timedelta(days=7)
"""How long after it was due a notice is no news any more; longer than any wait between two attempts."""


class Waiting(NamedTuple):
    """A notice that a target is still to be told.

    Args:
        notice: The notice's id.
        target: The target's name.
        attempts: Attempts that failed.
    """

    notice: str
    target: str
    attempts: int


@dataclass(frozen=True, slots=True)
class Due:
    """A notice that a target is to be told now.

    Args:
        notice: The notice's id.
        target: The target's name.
        body: The payload.
        attempts: Attempts that failed before.
    """

    notice: str
    target: str
    body: bytes
    attempts: int


def record(writer: Writer, found: Sequence[Notice], recipients: Recipients, now: dt.datetime) -> list[Notice]:
    """Write down what was noticed, and whom to tell; return what nobody had written down before.

    Of several processes that notice the same at once one writes it down, and the others find that it has.

    Args:
        writer: The transaction.
        found: What was noticed.
        recipients: Whom to tell.
        now: The present.
    """
    maybe = {notice.id: notice for notice in unknown(writer, found)}
    new = []
    for key in sorted(maybe):  # in one order everywhere: no two writers wait for each other
        notice = maybe[key]
        added = writer.execute(
            postgresql.insert(notices)
            .values(
                id=key,
                kind=notice.kind.value,
                cluster=notice.cluster,
                account=notice.account,
                body=notice.body(now).decode(),
                is_overtaken=notice.is_overtaken,
                noticed_at=now,
            )
            .on_conflict_do_nothing()
            .returning(notices.c.id)
        ).one_or_none()
        if added is None:
            continue
        new.append(notice)
        if targets := told(notice, recipients):
            rows = [
                {"notice": key, "target": each, "state": DUE, "attempts": 0, "next_at": now}
                for each in targets
            ]
            writer.execute(sa.insert(deliveries), rows)
    return new


def told(notice: Notice, recipients: Recipients) -> list[str]:
    """Return the names of the targets that a new notice goes to."""
    if notice.is_overtaken:
        return []
    return recipients.wanting(notice.kind, notice.cluster, notice.accounts)


def unknown(reader: Reader | Writer, found: Sequence[Notice]) -> list[Notice]:
    """Return those of the notices that were not written down yet."""
    ids = [notice.id for notice in found]
    known = set(reader.execute(sa.select(notices.c.id).where(_one_of(notices.c.id, ids))).scalars())
    return [notice for notice in found if notice.id not in known]


def due(reader: Reader | Writer, targets: Collection[str], now: dt.datetime) -> list[Waiting]:
    """Return what is due now, the longest due first."""
    column = deliveries.c
    rows = reader.execute(
        sa.select(column.notice, column.target, column.attempts)
        .where(column.state == DUE, column.next_at <= now, _one_of(column.target, targets))
        .order_by(column.next_at, column.notice, column.target)
    )
    return [Waiting(*row) for row in rows]


@contextmanager
def claimed(writer: Writer, targets: Collection[str], now: dt.datetime) -> Iterator[Due | None]:
    """Give one delivery that is due and that nobody else is at; None where there is none.

    It stays this transaction's until it ends: when the process dies, the database gives it back, still due.

    Args:
        writer: The transaction.
        targets: Names of the targets that may be told now.
        now: The present.
    """
    writer.exec_driver_sql(_PATIENT)
    column = deliveries.c
    row = writer.execute(
        sa.select(column.notice, column.target, column.attempts, notices.c.body)
        .join(notices, notices.c.id == column.notice)
        .where(column.state == DUE, column.next_at <= now, _one_of(column.target, targets))
        .order_by(column.next_at, column.notice, column.target)
        .limit(1)
        .with_for_update(of=deliveries, skip_locked=True)
    ).one_or_none()
    yield None if row is None else Due(row.notice, row.target, row.body.encode(), row.attempts)


def mark_sent(writer: Writer, delivery: Due, now: dt.datetime) -> None:
    """Write down that a target took a notice."""
    _mark(writer, delivery, state=SENT, sent_at=now, said=None)


def mark_failed(writer: Writer, delivery: Due, said: str, now: dt.datetime, *, is_final: bool) -> None:
    """Write down that a target did not take a notice, and when it is tried again, if it is.

    Args:
        writer: The transaction.
        delivery: What was tried.
        said: What went wrong.
        now: The present.
        is_final: Whether trying again is no use.
    """
    again = None if is_final else next_attempt(delivery.attempts + 1, now)
    said = said[:_SAID_MOST]
    if again is None:
        _mark(writer, delivery, state=GIVEN_UP, said=said)
    else:
        _mark(writer, delivery, next_at=again, said=said)


def give_up_stale(writer: Writer, now: dt.datetime) -> int:
    """Give up what nobody has sent for long after it was due; return how many there were.

    The file of recipients no longer has the target, or nobody had notices sent: what is told then is no news.
    """
    stale = sa.and_(deliveries.c.state == DUE, deliveries.c.next_at < now - STALE)
    said = "nobody sent it in time"
    return writer.execute(deliveries.update().where(stale).values(state=GIVEN_UP, said=said)).rowcount


def undelivered(writer: Writer, since: dt.datetime, now: dt.datetime) -> tuple[int, int]:
    """Return how many deliveries of notices noticed since a time were given up, and how many are due now."""
    column = deliveries.c
    given_up = sa.func.count().filter(column.state == GIVEN_UP, notices.c.noticed_at >= since)
    is_due = sa.func.count().filter(column.state == DUE, column.next_at <= now)
    statement = sa.select(given_up, is_due).join(notices, notices.c.id == column.notice)
    found = writer.execute(statement).one()
    return int(found[0]), int(found[1])


def listed(reader: Reader | Writer, limit: int) -> list[dict[str, Any]]:
    """Return the newest notices with how far each target has been told, the newest first."""
    newest = sa.select(notices).order_by(notices.c.noticed_at.desc(), notices.c.id).limit(limit).subquery()
    rows = (
        reader.execute(sa.select(newest).order_by(newest.c.noticed_at.desc(), newest.c.id)).mappings().all()
    )
    told_of: dict[str, list[dict[str, Any]]] = {row["id"]: [] for row in rows}
    found = sa.select(deliveries).where(_one_of(deliveries.c.notice, told_of)).order_by(deliveries.c.target)
    for row in reader.execute(found).mappings():
        told_of[row["notice"]].append(
            {
                "target": row["target"],
                "state": row["state"],
                "attempts": row["attempts"],
                "next_at": iso(row["next_at"]) if row["state"] == DUE else None,
                "sent_at": row["sent_at"] and iso(row["sent_at"]),
                "said": row["said"],
            }
        )
    return [
        {
            "id": row["id"],
            "type": row["kind"],
            "cluster": row["cluster"],
            "account": row["account"],
            "noticed_at": iso(row["noticed_at"]),
            "overtaken": row["is_overtaken"],
            "deliveries": told_of[row["id"]],
        }
        for row in rows
    ]


def get_body(reader: Reader | Writer, notice: str) -> bytes:
    """Return the payload of a notice.

    Raises:
        NotFound: When no notice has this id.
    """
    body = reader.execute(sa.select(notices.c.body).where(notices.c.id == notice)).scalar()
    if body is None:
        raise NotFound(f"no notice has the id {notice!r}", hint="gpuledger notify list shows them")
    return str(body).encode()


def _one_of(column: sa.Column[str], values: Collection[str]) -> sa.ColumnElement[bool]:
    """Return the condition that a column is one of any number of values, which are one parameter."""
    return column == sa.any_(sa.bindparam(None, list(values), ARRAY(sa.Text)))


def _mark(writer: Writer, delivery: Due, **columns: object) -> None:
    key = sa.and_(deliveries.c.notice == delivery.notice, deliveries.c.target == delivery.target)
    writer.execute(deliveries.update().where(key).values(attempts=delivery.attempts + 1, **columns))
