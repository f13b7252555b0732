"""Transactions that PostgreSQL gives up for the sake of others are made again, whole, and by nobody who was fenced."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
import sqlalchemy as sa
import stamina
from tests.integration.ledger.books import CLUSTER, HOUR, NOON, run_of

from gpuledger.database.engine import Writer, reading, writing
from gpuledger.events.envelope import Event
from gpuledger.ingest import offsets
from gpuledger.ingest.intake import Intake
from gpuledger.ingest.offsets import Claim
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.clock import FixedClock
from gpuledger.kernel.errors import Fenced, Unavailable
from gpuledger.ledger import queries
from gpuledger.ledger.attempts import ATTEMPTS
from gpuledger.ledger.audit import verify

LATER = run_of(HOUR, 2 * HOUR, "w2")
LOCK_POSITION = "SELECT 1 FROM ledger.stream_offsets FOR UPDATE"
TAKE_OVER = "UPDATE ledger.stream_offsets SET epoch = epoch + 1"

OnAttempt = Callable[[int, Writer], None]


@pytest.fixture
def claim(intake: Intake) -> Claim:
    """A worker's claim, in a ledger where the cluster, its account and its user are known."""
    intake.take(run_of(0, HOUR))
    with writing(intake.engine) as writer:
        return offsets.claim(writer, "ledger", "topic", [0])[0]


@pytest.fixture
def intake(engine: sa.Engine) -> Intake:
    return Intake(engine, FixedClock(NOON), Calendar())


def take(intake: Intake, claim: Claim, events: list[Event], on_attempt: OnAttempt) -> int:
    """Book events as a worker does: it checks its claim and moves its position; return how often it tried."""
    attempts = 0

    def guard(writer: Writer, *, last: bool) -> None:
        nonlocal attempts
        attempts += 1
        on_attempt(attempts, writer)
        offsets.advance(writer, claim, 7 if last else None)

    taken = intake.take(events, guard)
    assert (len(taken.accepted), taken.repeated) == (len(events), 0)
    return attempts


def assert_booked(engine: sa.Engine, *, collisions: int) -> None:
    """The second run is booked once, the position moved, and what was given up is counted."""
    with reading(engine) as reader:
        assert verify(reader).ok
        assert dict(offsets.positions(reader, "ledger", "topic")) == {0: 7}
        (status,) = [status for status in queries.book_heads(reader) if status.book == CLUSTER]
    assert (status.rows, status.collisions) == (6, collisions)


@contextmanager
def crossing(engine: sa.Engine, statement: str) -> Iterator[threading.Event]:
    """Hold the position as a statement does; on the event wait for the book, for longer than PostgreSQL looks away."""
    held, go = threading.Event(), threading.Event()

    def cross() -> None:
        with engine.begin() as other:
            other.exec_driver_sql("SET LOCAL deadlock_timeout = '60s'")  # whoever comes last finds the circle
            other.exec_driver_sql(statement)
            held.set()
            go.wait()
            other.exec_driver_sql(f"SELECT 1 FROM ledger.books WHERE book = '{CLUSTER}' FOR UPDATE")

    thread = threading.Thread(target=cross)
    thread.start()
    held.wait()
    try:
        yield go
    finally:
        go.set()
        thread.join()


def close_the_circle(engine: sa.Engine, go: threading.Event) -> OnAttempt:
    """In the first attempt, which holds the book, let the other wait for it before the position is asked for."""

    def on_attempt(number: int, _: Writer) -> None:
        if number > 1:
            return
        go.set()
        deadline = time.monotonic() + 30
        with engine.connect() as connection:
            while not connection.exec_driver_sql(
                "SELECT count(*) FROM pg_locks WHERE NOT granted AND locktype = 'transactionid'"
            ).scalar_one():
                assert time.monotonic() < deadline
                connection.rollback()
                time.sleep(0.02)

    return on_attempt


def test_a_deadlock_is_tried_again(engine: sa.Engine, intake: Intake, claim: Claim) -> None:
    with crossing(engine, LOCK_POSITION) as go:
        assert take(intake, claim, LATER, close_the_circle(engine, go)) == 2
    assert_booked(engine, collisions=1)


def test_who_was_taken_over_in_a_deadlock_writes_nothing_when_tried_again(
    engine: sa.Engine, intake: Intake, claim: Claim
) -> None:
    with crossing(engine, TAKE_OVER) as go, pytest.raises(Fenced):
        take(intake, claim, LATER, close_the_circle(engine, go))
    with reading(engine) as reader:
        assert dict(offsets.positions(reader, "ledger", "topic")) == {0: 0}
        assert [status.rows for status in queries.book_heads(reader) if status.book == CLUSTER] == [3]


def test_a_transaction_that_cannot_be_serialised_is_tried_again(
    engine: sa.Engine, intake: Intake, claim: Claim
) -> None:
    """Where an operator made stricter isolation the default."""
    strict = sa.create_engine(engine.url, isolation_level="REPEATABLE READ")
    late = Intake(strict, intake.clock, Calendar())
    late.take(run_of(0, HOUR))  # it meets the user here

    def on_attempt(number: int, _: Writer) -> None:
        if number == 1:
            with engine.begin() as other:
                other.exec_driver_sql("UPDATE ledger.stream_offsets SET seen_at = now()")

    assert take(late, claim, LATER, on_attempt) == 2
    assert_booked(engine, collisions=1)
    strict.dispose()


def test_a_lock_that_does_not_come_in_time_is_tried_again(
    engine: sa.Engine, intake: Intake, claim: Claim
) -> None:
    with engine.connect() as other:
        other.exec_driver_sql(LOCK_POSITION)

        def on_attempt(number: int, writer: Writer) -> None:
            if number < 3:
                writer.exec_driver_sql("SET LOCAL lock_timeout = '20ms'")
            else:
                other.rollback()

        assert take(intake, claim, LATER, on_attempt) == 3
    assert_booked(engine, collisions=2)


def test_what_is_given_up_each_time_is_unavailable_and_leaves_nothing(
    engine: sa.Engine, intake: Intake, claim: Claim
) -> None:
    numbers = []

    def on_attempt(number: int, writer: Writer) -> None:
        numbers.append(number)
        writer.exec_driver_sql("DO $$ BEGIN RAISE EXCEPTION 'reported' USING ERRCODE = '40001'; END $$")

    with stamina.set_testing(True, attempts=ATTEMPTS), pytest.raises(Unavailable, match="reported"):
        take(intake, claim, LATER, on_attempt)
    assert numbers == [1, 2, 3, 4, 5]
    with reading(engine) as reader:
        assert [status.rows for status in queries.book_heads(reader) if status.book == CLUSTER] == [3]


def test_another_refusal_is_not_tried_again(intake: Intake, claim: Claim) -> None:
    numbers = []

    def on_attempt(number: int, writer: Writer) -> None:
        numbers.append(number)
        writer.exec_driver_sql("SET LOCAL statement_timeout = '10ms'")
        writer.exec_driver_sql("SELECT pg_sleep(10)")

    with pytest.raises(Unavailable, match="statement timeout"):
        take(intake, claim, LATER, on_attempt)
    assert numbers == [1]
