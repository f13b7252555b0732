"""What a database may refuse for now: a typed error, exit status 75, nothing written, and a retry completes.

Locks, timeouts, the pool and serialisation fail here as they do in earnest. A full disk cannot be had
without filling one: there the server reports it (SQLSTATE 53100) when the journal is written, by a trigger.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import sqlalchemy as sa
from tests.integration.ledger.books import CLUSTER, GPU_HOUR, HOUR, Ledger, run_of

from gpuledger.database.engine import Writer, reading, writing
from gpuledger.ingest.intake import Intake
from gpuledger.kernel.errors import Unavailable
from gpuledger.kernel.exits import TRY_AGAIN, exit_status
from gpuledger.ledger.append import append
from gpuledger.ledger.audit import verify

EVENTS = run_of(0, HOUR, user="grace")


def book(ledger: Ledger, engine: sa.Engine, *settings: str) -> None:
    """Book a run in a transaction with settings of its own."""
    with writing(engine) as writer:
        for setting in settings:
            writer.exec_driver_sql(f"SET LOCAL {setting}")
        append(writer, CLUSTER, EVENTS, clock=ledger.clock, calendar=ledger.calendar)


@contextmanager
def refused(ledger: Ledger, says: str) -> Iterator[None]:
    """Expect a typed refusal that wrote nothing, then retry without the cause of it."""
    with pytest.raises(Unavailable, match=says) as error:
        yield
    assert exit_status(error.value) == TRY_AGAIN == 75
    assert error.value.hint
    assert ledger.value("SELECT count(*) FROM ledger.journal WHERE workload = 'w1'") == 0
    assert ledger.value("SELECT count(*) FROM side.user_keys WHERE name = 'grace'") == 0


def retried(ledger: Ledger, engine: sa.Engine | None = None) -> None:
    book(ledger, engine or ledger.engine)
    assert ledger.net()["charge", "org/vision", "w1/r1", "1970-01-01"] == 8 * GPU_HOUR
    with reading(ledger.engine) as reader:
        assert verify(reader).ok


@contextmanager
def locked(ledger: Ledger) -> Iterator[Writer]:
    """Hold the lock of the book, which exists, as another writer would."""
    ledger.append(*run_of(0, HOUR, "w0"))
    with writing(ledger.engine) as other:
        other.exec_driver_sql("SELECT 1 FROM ledger.books FOR UPDATE")
        yield other


@contextmanager
def reporting(ledger: Ledger, sqlstate: str) -> Iterator[None]:
    """Let the server report an error when the journal is written."""
    ledger.change(
        "CREATE FUNCTION ledger.fail() RETURNS trigger LANGUAGE plpgsql AS"
        f" $$ BEGIN RAISE EXCEPTION 'reported' USING ERRCODE = '{sqlstate}'; END $$",
        "CREATE TRIGGER fail BEFORE INSERT ON ledger.journal EXECUTE FUNCTION ledger.fail()",
    )
    try:
        yield
    finally:
        ledger.change("DROP TRIGGER fail ON ledger.journal", "DROP FUNCTION ledger.fail()")


def test_a_lock_that_does_not_come_in_time(ledger: Ledger) -> None:
    with locked(ledger), refused(ledger, "lock timeout"):
        book(ledger, ledger.engine, "lock_timeout = '50ms'")
    retried(ledger)


def test_a_statement_that_takes_too_long(ledger: Ledger) -> None:
    with locked(ledger), refused(ledger, "statement timeout"):
        book(ledger, ledger.engine, "statement_timeout = '50ms'")
    retried(ledger)


def test_a_pool_without_a_free_connection(ledger: Ledger) -> None:
    engine = sa.create_engine(ledger.url, pool_size=1, max_overflow=0, pool_timeout=0.1)
    with reading(engine), refused(ledger, "QueuePool limit"):
        book(ledger, engine)
    retried(ledger, engine)
    engine.dispose()


def test_a_transaction_that_cannot_be_serialised(ledger: Ledger) -> None:
    """An operator may have made stricter isolation the default; then two writers of a book can collide."""
    strict = sa.create_engine(ledger.url, isolation_level="REPEATABLE READ")
    with refused(ledger, "could not serialize access"), writing(strict) as late:
        late.exec_driver_sql("SELECT 1")  # its snapshot is taken here
        ledger.append(*run_of(0, HOUR, "w0"))
        append(late, CLUSTER, EVENTS, clock=ledger.clock, calendar=ledger.calendar)
    retried(ledger, strict)
    strict.dispose()


def test_writers_that_wait_for_each_other(ledger: Ledger) -> None:
    """A deadlock needs two lines of locks, which no writer of the product takes; the server reports one."""
    with reporting(ledger, "40P01"), refused(ledger, "reported"):
        book(ledger, ledger.engine)
    retried(ledger)


@pytest.mark.parametrize(
    "sqlstate",
    ["53100", "53200", "53300", "53400", "57P03", "58030"],
    ids=[
        "disk full",
        "out of memory",
        "too many connections",
        "limit exceeded",
        "cannot connect now",
        "I/O error",
    ],
)
def test_a_server_that_reports_to_be_short_of_something(ledger: Ledger, sqlstate: str) -> None:
    with reporting(ledger, sqlstate), refused(ledger, "reported"):
        book(ledger, ledger.engine)
    retried(ledger)


def test_the_intake_goes_on_where_it_was_refused(ledger: Ledger) -> None:
    intake = Intake(ledger.engine, ledger.clock, ledger.calendar)
    with reporting(ledger, "53100"), pytest.raises(Unavailable):
        intake.take(EVENTS)
    assert len(intake.take(EVENTS).accepted) == 3
    assert intake.take(EVENTS).repeated == 3
    assert ledger.total() == 8 * GPU_HOUR
