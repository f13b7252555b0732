"""What a book tells of the closes of a period: each version with the rows that fixed, settled, sealed and undid it."""

import datetime as dt

import pytest
from tests.integration.ledger.books import CLUSTER, Ledger, at, told

from gpuledger.database.engine import reading
from gpuledger.events.closing import PeriodClosed, PeriodClosing, PeriodReopened, PeriodSealed
from gpuledger.kernel.errors import NotFound
from gpuledger.ledger.close_rows import CloseRows, close_of, closes, list_closes, previous_closing

PERIOD = "2026-11"
END = at("2026-12-01T00:00:00Z")


def tell(ledger: Ledger, version: int, *kinds: str, period: str = PERIOD) -> None:
    named = {"cluster": CLUSTER, "period": period, "version": version}
    facts = {
        "closing": lambda: PeriodClosing(**named, by="ada"),
        "closed": lambda: PeriodClosed(**named, closing_seq=1),
        "sealed": lambda: PeriodSealed(**named, closing_seq=1, digest=f"{version:064x}"),
        "reopened": lambda: PeriodReopened(**named, by="ada", reason="test"),
    }
    for kind in kinds:
        ledger.append(told(END, facts[kind]()))


def found(ledger: Ledger, period: str = PERIOD) -> list[CloseRows]:
    with reading(ledger.engine) as reader:
        return closes(reader, CLUSTER, period)


def seqs(ledger: Ledger, type_: str) -> list[int]:
    rows = ledger.rows("SELECT seq FROM ledger.journal WHERE type = :type ORDER BY seq", type=type_)
    return [seq for (seq,) in rows]


def test_each_version_has_its_own_rows(ledger: Ledger) -> None:
    tell(ledger, 1, "closing", "closed", "sealed", "reopened")
    tell(ledger, 2, "closing", "closed")
    tell(ledger, 1, "closing", period="2026-12")
    first, second = found(ledger)
    assert (first.version, second.version) == (1, 2)
    assert [first.closing_seq, second.closing_seq] == seqs(ledger, "period.closing")[:2]
    assert [first.closed_seq, second.closed_seq] == seqs(ledger, "period.closed")
    assert ([first.sealed_seq], second.sealed_seq) == (seqs(ledger, "period.sealed"), None)
    assert ([first.reopened_seq], second.reopened_seq) == (seqs(ledger, "period.reopened"), None)
    assert (first.digest, second.digest) == (f"{1:064x}", None)


def test_one_is_named_or_is_the_newest(ledger: Ledger) -> None:
    with reading(ledger.engine) as reader, pytest.raises(NotFound, match="was never closed"):
        close_of(reader, CLUSTER, PERIOD)
    tell(ledger, 1, "closing", "closed", "reopened")
    tell(ledger, 2, "closing")
    with reading(ledger.engine) as reader:
        assert close_of(reader, CLUSTER, PERIOD).version == 2
        assert close_of(reader, CLUSTER, PERIOD, 1).version == 1
        with pytest.raises(NotFound, match="has no version 3"):
            close_of(reader, CLUSTER, PERIOD, 3)


def test_the_close_before_is_that_of_whichever_period(ledger: Ledger) -> None:
    tell(ledger, 1, "closing", "closed", period="2026-10")
    tell(ledger, 1, "closing")
    (own,) = found(ledger)
    (before,) = found(ledger, "2026-10")
    with reading(ledger.engine) as reader:
        assert previous_closing(reader, CLUSTER, before.closing_seq) is None
        got = previous_closing(reader, CLUSTER, own.closing_seq)
    assert got is not None
    assert (got[0], got[1].period) == (before.closing_seq, "2026-10")


def test_every_close_is_listed_as_of_a_recorded_time(ledger: Ledger) -> None:
    tell(ledger, 1, "closing", "closed", "sealed")
    before = ledger.clock.now() + dt.timedelta(seconds=30)
    ledger.clock.at += dt.timedelta(seconds=60)
    tell(ledger, 1, "reopened")
    tell(ledger, 2, "closing")
    tell(ledger, 1, "closing", period="2026-12")
    with reading(ledger.engine) as reader:
        every = [(row.closing.period, row.version) for row in list_closes(reader)]
        (then,) = list_closes(reader, CLUSTER, as_of=before)
    assert every == [(PERIOD, 1), (PERIOD, 2), ("2026-12", 1)]
    assert (then.version, then.sealed_seq is not None, then.reopened_seq) == (1, True, None)
