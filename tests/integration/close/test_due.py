"""What is to be closed by the clock: of each cluster the earliest period that is over, and nothing that waits."""

import datetime as dt

from tests.integration.close.closing import DECEMBER, NOVEMBER, SILENT, Books
from tests.integration.ledger.books import CLUSTER, HOUR, at, told

from gpuledger.close import steps
from gpuledger.close.due import Due, due
from gpuledger.events.closing import LedgerTicked, PeriodClosed, PeriodClosing
from gpuledger.events.heartbeat import Heartbeat
from gpuledger.kernel.clock import instant


def found(books: Books, grace_s: int = 0) -> Due:
    ledger = books.ledger
    return due(
        ledger.engine, ledger.clock, ledger.calendar, lambda _, period: books.closer(period, grace_s=grace_s)
    )


def test_a_period_is_due_once_it_is_over(books: Books) -> None:
    books.ledger.clock.at = dt.datetime(2026, 11, 30, 23, 59, tzinfo=dt.UTC)
    assert found(books) == Due([], ["alpha: 2026-11 ends 2026-12-01T00:00:00Z"])
    books.ledger.clock.at = dt.datetime(2026, 12, 1, tzinfo=dt.UTC)
    assert found(books) == Due([(CLUSTER, NOVEMBER)], [])


def test_silent_sources_are_waited_for_as_long_as_is_said(books: Books) -> None:
    books.ledger.clock.at = dt.datetime(2026, 12, 1, 5, tzinfo=dt.UTC)
    waits = found(books, grace_s=6 * HOUR)
    assert waits.now == []
    assert waits.waiting[0].startswith(f"alpha: {SILENT} has told of alpha until")
    books.ledger.append(told(at("2026-12-01T00:00:00Z"), Heartbeat(cluster=CLUSTER), source=SILENT))
    assert found(books, grace_s=6 * HOUR).now == [(CLUSTER, NOVEMBER)]


def test_periods_are_due_one_after_the_other(books: Books) -> None:
    books.ledger.clock.at = instant(at("2027-01-05T00:00:00Z"))
    assert found(books).now == [(CLUSTER, NOVEMBER)]
    closer = books.closer()
    rows = steps.freeze(closer)
    assert found(books).now == [(CLUSTER, NOVEMBER)], "one that stopped goes on"
    steps.settle(closer, rows.version, None)
    assert found(books).now == [(CLUSTER, NOVEMBER)]
    books.close()
    assert found(books).now == [(CLUSTER, DECEMBER)]


def test_one_that_somebody_reopened_is_left_to_them(books: Books) -> None:
    books.close()
    steps.reopen(books.closer(), "a late invoice")
    assert found(books) == Due([], ["alpha: 2026-11 was reopened, and is closed by hand"])


def test_a_close_from_before_there_were_files_is_not_made_anew(books: Books) -> None:
    named = {"cluster": CLUSTER, "period": NOVEMBER, "version": 1}
    books.ledger.append(told(at("2026-12-01T00:00:00Z"), LedgerTicked(cluster=CLUSTER)))
    books.ledger.append(
        told(0, PeriodClosing(**named, by="ada")), told(0, PeriodClosed(**named, closing_seq=1))
    )
    assert found(books).waiting == ["alpha: 2026-12 ends 2027-01-01T00:00:00Z"]


def test_a_cluster_without_a_budget_is_never_due(books: Books) -> None:
    books.ledger.append(told(0, Heartbeat(cluster="beta"), source="x"))
    assert found(books) == Due([(CLUSTER, NOVEMBER)], ["beta: nothing is budgeted that is not closed"])
