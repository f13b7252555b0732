"""A transaction that the database gives up for the sake of another is made again, and counted where a book is named."""

import datetime as dt
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
import stamina
from tests.integration.ledger.books import CLUSTER, HOUR, NOON, Ledger, registered, run_of, told

from gpuledger.database.engine import Writer, reading
from gpuledger.events.budget import AccountCreated, Granted
from gpuledger.kernel.clock import FixedClock
from gpuledger.kernel.errors import Refused, Unavailable
from gpuledger.ledger import queries
from gpuledger.ledger.attempts import ATTEMPTS, booked
from gpuledger.ledger.commands import Booked, execute

COLLIDE = "DO $$ BEGIN RAISE EXCEPTION 'reported' USING ERRCODE = '40P01'; END $$"


def collisions(ledger: Ledger) -> int:
    with reading(ledger.engine) as reader:
        (status,) = [status for status in queries.book_heads(reader) if status.book == CLUSTER]
    return status.collisions


@pytest.mark.parametrize(("book", "counted"), [(CLUSTER, 2), (None, 0)])
def test_it_is_made_again_from_its_beginning(ledger: Ledger, book: str | None, counted: int) -> None:
    ledger.append(*run_of(0, HOUR))
    numbers: list[int] = []

    def work(writer: Writer) -> str:
        numbers.append(len(numbers))
        if len(numbers) < 3:
            writer.exec_driver_sql(COLLIDE)
        return "done"

    assert booked(ledger.engine, book, work) == "done"
    assert numbers == [0, 1, 2]
    assert collisions(ledger) == counted


def test_it_is_given_up_after_some_attempts(ledger: Ledger) -> None:
    numbers: list[int] = []

    def work(writer: Writer) -> None:
        numbers.append(len(numbers))
        writer.exec_driver_sql(COLLIDE)

    with stamina.set_testing(True, attempts=ATTEMPTS), pytest.raises(Unavailable, match="reported"):
        booked(ledger.engine, CLUSTER, work)
    assert len(numbers) == ATTEMPTS


def test_a_refusal_is_not_tried_again(ledger: Ledger) -> None:
    numbers: list[int] = []

    def work(_: Writer) -> None:
        numbers.append(len(numbers))
        raise Refused("never")

    with pytest.raises(Refused, match="never"):
        booked(ledger.engine, CLUSTER, work)
    assert numbers == [0]


def test_one_that_stands_still_is_ended_where_that_is_asked_for(ledger: Ledger) -> None:
    def work(writer: Writer) -> str:
        return str(writer.exec_driver_sql("SHOW idle_in_transaction_session_timeout").scalar_one())

    assert booked(ledger.engine, None, work, standstill_s=7) == "7s"
    assert booked(ledger.engine, None, work) == "0"


MAY = dt.datetime(2031, 5, 1, tzinfo=dt.UTC)
"""Of a month that has no partitions yet."""


@pytest.mark.parametrize("at", [NOON, MAY], ids=["the same new person", "a new month"])
def test_orders_on_two_books_that_meet_what_is_new_do_not_wait_for_each_other(
    ledger: Ledger, at: dt.datetime
) -> None:
    """Somebody's first order: by hand on one cluster, while another of theirs is not committed yet."""
    for cluster in (CLUSTER, "beta"):
        ledger.append(told(0, registered("h1", 8, cluster=cluster)))
    ledger.append(told(0, AccountCreated(account="org/vision")))
    inside, may_end = threading.Event(), threading.Event()
    clock = FixedClock(at)

    def order(cluster: str, *, is_slow: bool) -> Callable[[Writer], Booked]:
        given = Granted(
            account="org/vision", cluster=cluster, period="2026-12", gpu_ms=1, reason="granted", by="newcomer"
        )

        def work(writer: Writer) -> Booked:
            done = execute(writer, given, key="k", clock=clock, calendar=ledger.calendar)
            if is_slow:
                inside.set()
                may_end.wait(30)
            return done

        return work

    def carry_out(cluster: str, *, is_slow: bool) -> Booked:
        work = order(cluster, is_slow=is_slow)
        return booked(ledger.engine, cluster, work, clock=clock, people=["newcomer"])

    with ThreadPoolExecutor(2) as pool:
        slow = pool.submit(carry_out, CLUSTER, is_slow=True)
        assert inside.wait(30)
        try:
            assert not pool.submit(carry_out, "beta", is_slow=False).result(20).repeated
        finally:
            may_end.set()
        assert not slow.result(30).repeated


def test_parts_of_the_program_get_no_key(ledger: Ledger) -> None:
    booked(ledger.engine, CLUSTER, lambda _: None, people=["ingest", "-", "ada"])
    assert ledger.rows("SELECT name FROM side.user_keys") == [("ada",)]
