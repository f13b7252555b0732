"""A transaction that the database gives up for the sake of another is made again, and counted where a book is named."""

import pytest
import stamina
from tests.integration.ledger.books import CLUSTER, HOUR, Ledger, run_of

from gpuledger.database.engine import Writer, reading
from gpuledger.kernel.errors import Refused, Unavailable
from gpuledger.ledger import queries
from gpuledger.ledger.attempts import ATTEMPTS, booked

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
