"""Transactions that are made again when the database gives them up for the sake of others.

What books share is seen to before each, in a transaction of its own: a month's partitions and the key of a person who
is new would else be locked until a whole batch is committed, and books wait for one another.
"""

import datetime as dt
from collections.abc import Callable, Collection
from typing import TypeVar
from weakref import WeakKeyDictionary

import sqlalchemy as sa

from gpuledger.database.engine import Writer, writing, writing_on
from gpuledger.database.meanwhile import Work
from gpuledger.kernel.clock import Clock, SystemClock
from gpuledger.kernel.errors import Collided
from gpuledger.kernel.retries import retry_context
from gpuledger.ledger.identity import keys_of, persons
from gpuledger.ledger.store import make_partitions_of, month_of, note_collisions

ATTEMPTS = 5
"""How often a transaction is made in all that the database gives up for the sake of others."""

PATIENCE_S = 150
"""After so long none is made again: a lock that did not come within a minute is waited for twice more."""

Result = TypeVar("Result")

_MADE: WeakKeyDictionary[sa.Engine, tuple[int, int]] = WeakKeyDictionary()
"""The month whose partitions were asked for last, of each database."""


def booked(
    engine: sa.Engine | sa.Connection,
    book: str | None,
    work: Callable[[Writer], Result],
    *,
    standstill_s: int | None = None,
    clock: Clock | None = None,
    people: Collection[str] = (),
    meanwhile: Work | None = None,
) -> Result:
    """Do work in a transaction of its own, and commit it; return what it returns.

    The work is done anew, from its beginning, when the database gives the transaction up for the sake of another: it
    must leave no trace but in the database. How often that happened stands with the book.

    Args:
        engine: The database; or a connection that has no transaction, for who holds a lock on it.
        book: The book that it is done on; None for what belongs to none.
        work: What is done.
        standstill_s: After doing nothing for so long it is taken for paused and ended; never unless given.
        clock: Says in which month rows will be recorded; the machine's unless given.
        people: Whom the work will name, as far as that is known; those who have no key get one first.
        meanwhile: Done while the server is busy with it; not on a connection that is given.

    Raises:
        Unavailable: When the database cannot be reached, ended a transaction that stood still, or gave each attempt up.
    """
    if book is not None:
        _prepare(engine, (clock or SystemClock()).now(), people)
    for attempt in retry_context(
        on=Collided, attempts=ATTEMPTS, timeout=PATIENCE_S, wait_initial=0.05, wait_max=2.0, wait_jitter=0.5
    ):
        opened = writing(engine, meanwhile) if isinstance(engine, sa.Engine) else writing_on(engine)
        with attempt, opened as writer:
            if standstill_s is not None:
                writer.exec_driver_sql(f"SET LOCAL idle_in_transaction_session_timeout = '{standstill_s}s'")
            result = work(writer)
            if book is not None and attempt.num > 1:
                note_collisions(writer, book, attempt.num - 1)
            return result
    raise AssertionError("retry_context returns or raises")  # pragma: no cover


def _prepare(engine: sa.Engine | sa.Connection, now: dt.datetime, people: Collection[str]) -> None:
    """See to what books share; it is done before anybody holds a book, and whoever comes second finds it done."""
    if _MADE.get(engine.engine) != month_of(now):
        booked(engine, None, lambda writer: make_partitions_of(writer, now))
        _MADE[engine.engine] = month_of(now)
    if named := persons(people):
        booked(engine, None, lambda writer: keys_of(writer, named))
