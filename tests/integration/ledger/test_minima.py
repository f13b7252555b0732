"""A rollover's minimum: what it gives beyond what was left is a grant, in every book whatever its age."""

import datetime as dt

import pytest
from tests.integration.ledger.books import (
    CLUSTER,
    GPU_HOUR,
    HOUR,
    Ledger,
    ended,
    granted,
    registered,
    run_of,
    told,
)
from tests.integration.ledger.test_admission import is_sound, order
from tests.integration.ledger.test_closing import DECEMBER, IN_NOVEMBER, NOVEMBER, close, lot, reopen, stands

from gpuledger.database.engine import reading, writing
from gpuledger.events.budget import AccountCreated
from gpuledger.ledger import periods, queries, settlement
from gpuledger.ledger.audit import verify
from gpuledger.ledger.charges import Posting
from gpuledger.ledger.rebuild import check, rebuild, state_digest


def test_what_a_minimum_adds_is_granted_to_the_next_period(ledger: Ledger) -> None:
    """Of 60 left more is there than the minimum of 40; when only 20 are, 20 are granted beside them."""
    order(ledger, *(AccountCreated(account=name) for name in ("org", "org/vision")))
    ledger.append(told(0, lot(NOVEMBER, 100, rollover="min 40")))
    ledger.append(*run_of(IN_NOVEMBER, IN_NOVEMBER + 5 * HOUR))
    close(ledger)
    assert minima(ledger) == []
    for late, added, rolled in (("late", 20, 20), ("later", 40, -20)):
        ledger.append(*run_of(IN_NOVEMBER, IN_NOVEMBER + 5 * HOUR, late))
        assert minima(ledger) == [("grant", "2026-12", "2026-12-01", added)]
        granted_ = {"granted": added + rolled, "rolled_over": rolled, "available": added + rolled}
        assert stands(ledger, DECEMBER, as_known=True) == granted_
        assert stands(ledger, DECEMBER)["available"] == granted_["available"]
        assert is_sound(ledger)
    reopen(ledger)
    close(ledger)
    assert minima(ledger) == [("grant", "2026-12", "2026-12-01", 40)]
    assert is_sound(ledger)
    ledger.append(told(IN_NOVEMBER + HOUR, ended("later"), source="reconcile/x"))  # one hour instead of five
    assert minima(ledger) == [("grant", "2026-12", "2026-12-01", 28)]
    assert stands(ledger, DECEMBER, as_known=True) == {"granted": 40, "rolled_over": 12, "available": 40}
    assert is_sound(ledger)


def test_a_minimum_takes_no_default_grant_away(ledger: Ledger) -> None:
    """Who was granted nothing for a period by order gets a share of it, whether it opens before or after the close."""
    order(ledger, *(AccountCreated(account=name) for name in ("org", "org/vision")))
    ledger.append(told(0, registered("h1", 8)), told(0, lot(NOVEMBER, 100, rollover="min 40")))
    ledger.append(*run_of(IN_NOVEMBER, IN_NOVEMBER + 12 * HOUR))
    close(ledger)
    assert minima(ledger) == [("grant", "2026-12", "2026-12-01", 36)]
    with reading(ledger.engine) as reader:
        shares = periods.opening(reader, CLUSTER, DECEMBER, ledger.calendar).grants
        then = periods.opening(reader, CLUSTER, DECEMBER, ledger.calendar, queries.sequences(reader)).grants
    assert [(grant.account, grant.gpu_ms // GPU_HOUR) for grant in shares] == [("org/vision", 31 * 24 * 8)]
    assert then == shares


def test_whom_an_order_granted_nothing_or_a_limit_gets_a_share(ledger: Ledger) -> None:
    order(ledger, *(AccountCreated(account=name) for name in ("org", "org/a", "org/b", "org/c")))
    ledger.append(told(0, registered("h1", 9)))
    ledger.append(
        told(0, granted("org/a", DECEMBER, GPU_HOUR)),
        told(0, granted("org/b", DECEMBER, 0)),
        told(0, granted("org/c", NOVEMBER, GPU_HOUR)),
    )
    with reading(ledger.engine) as reader:
        found = periods.opening(reader, CLUSTER, DECEMBER, ledger.calendar).grants
    assert [(grant.account, grant.gpu_ms // GPU_HOUR) for grant in found] == [
        ("org/b", 31 * 24 * 3),
        ("org/c", 31 * 24 * 3),
    ]


def test_a_minimum_that_was_booked_as_a_rollover_stands_and_is_corrected_as_a_grant(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Books of before it was a grant have it out of issue, under the last day of the period that it was left by."""

    def as_before(postings: list[Posting]) -> list[Posting]:
        day = dt.date(2026, 11, 30)
        return [
            p._replace(code="rollover", day=day, reason=None) if p.code == "grant" else p for p in postings
        ]

    due = settlement.due
    monkeypatch.setattr(settlement, "due", lambda *of: as_before(due(*of)))
    order(ledger, *(AccountCreated(account=name) for name in ("org", "org/vision")))
    ledger.append(told(0, lot(NOVEMBER, 100, rollover="min 90")))
    ledger.append(*run_of(IN_NOVEMBER, IN_NOVEMBER + 5 * HOUR))
    close(ledger)
    monkeypatch.undo()
    assert minima(ledger) == [("rollover", "2026-12", "2026-11-30", 30)]
    with reading(ledger.engine) as reader:
        assert verify(reader).ok
        assert check(reader, ledger.calendar).ok
        digest = state_digest(reader)
    with writing(ledger.engine) as writer:
        rebuild(writer, ledger.calendar)
    assert ledger.digest() == digest
    ledger.append(told(IN_NOVEMBER + HOUR, ended(), source="reconcile/x"))  # one hour instead of five
    assert minima(ledger) == [
        ("grant", "2026-12", "2026-12-01", -30),
        ("rollover", "2026-12", "2026-11-30", 30),
    ]
    assert stands(ledger, DECEMBER, as_known=True) == {"granted": 92, "rolled_over": 122, "available": 92}
    with reading(ledger.engine) as reader:
        assert verify(reader).ok
        assert check(reader, ledger.calendar).ok


def minima(ledger: Ledger) -> list[tuple[str, str, str, int]]:
    """Return what came from issue into December by settlement: code, period, day, GPU-hours."""
    return ledger.rows(
        "SELECT code, greatest(p.debit_period, p.credit_period), p.effective_on::text,"
        " (sum(CASE WHEN debit_pot = 'issue' THEN amount ELSE -amount END) / 3600000000)::int"
        " FROM ledger.postings AS p JOIN ledger.journal AS j USING (book, seq)"
        " WHERE j.type = 'ledger.settled' AND 'issue' IN (p.debit_pot, p.credit_pot) GROUP BY 1, 2, 3 ORDER BY 1"
    )
