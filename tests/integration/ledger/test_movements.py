"""The rows between two recorded times explain the difference of two balances."""

import datetime as dt

import msgspec
import pytest
from tests.integration.ledger.books import CLUSTER, GPU_HOUR, HOUR, NOON, Ledger, at, granted, run_of, told
from tests.integration.ledger.test_closing import IN_NOVEMBER, NOVEMBER, close, funded

from gpuledger.database.engine import reading
from gpuledger.events.budget import AdjustmentPosted
from gpuledger.kernel.clock import FixedClock
from gpuledger.kernel.errors import NotFound, Refused
from gpuledger.ledger.balances import BalanceQuery, balance
from gpuledger.ledger.movements import LimitMoved, Movement, limits_moved, movements

__all__ = ["funded"]

LATER = NOON + dt.timedelta(days=2)


def moved(ledger: Ledger, account: str = "org/vision", **asked: object) -> list[Movement]:
    with reading(ledger.engine) as reader:
        return list(movements(reader, account, CLUSTER, **asked))  # type: ignore[arg-type]


def available(ledger: Ledger, as_of: dt.datetime, period: str) -> int:
    with reading(ledger.engine) as reader:
        query = BalanceQuery(CLUSTER, period, as_of=as_of)
        return balance(reader, "org/vision", query, at(LATER.isoformat()), ledger.calendar).available_gpu_ms


def test_what_was_believed_and_what_is_known_differ_by_the_rows_in_between(funded: Ledger) -> None:
    funded.append(*run_of(IN_NOVEMBER, IN_NOVEMBER + 5 * HOUR))
    close(funded)
    funded.clock = FixedClock(LATER)
    funded.append(*run_of(IN_NOVEMBER, IN_NOVEMBER + 5 * HOUR, "late"))
    before, after = NOON + dt.timedelta(days=1), LATER + dt.timedelta(days=1)
    between = moved(funded, since=before, until=after)
    assert [(m.code, m.period, m.effective_on.isoformat(), m.gpu_ms // GPU_HOUR) for m in between] == [
        ("charge", "2026-12", "2026-11-10", -40),
        ("expiry", "2026-12", "2026-11-30", 40),
        ("rollover", "2026-12", "2026-11-30", -10),
    ]
    assert sum(m.gpu_ms for m in between) == available(funded, after, "2026-12") - available(
        funded, before, "2026-12"
    )
    assert [m.reverses_seq is not None for m in between] == [False, True, True]


def limited(ledger: Ledger, account: str = "org/vision", **asked: object) -> list[LimitMoved]:
    with reading(ledger.engine) as reader:
        return list(limits_moved(reader, account, CLUSTER, **asked))  # type: ignore[arg-type]


def test_who_is_bound_by_a_limit_finds_the_rows_that_changed_it_and_what_was_spent_of_it(
    funded: Ledger,
) -> None:
    """Nothing moved the account's budget: its limit came, was lowered, and a sibling spent some of it."""
    december = "2026-12"
    limit = msgspec.structs.replace(granted("org", december, 40 * GPU_HOUR), limit=True)
    elsewhere = msgspec.structs.replace(granted("other", december, GPU_HOUR), limit=True)
    before = NOON + dt.timedelta(hours=1)
    funded.clock = FixedClock(NOON + dt.timedelta(hours=2))
    funded.append(told(0, limit), told(1, limit), told(0, elsewhere), told(0, granted("org", "2027-01", 1)))
    lowered = AdjustmentPosted(
        account="org", cluster=CLUSTER, period=december, code="grant", gpu_ms=-60 * GPU_HOUR, limit=True,
        reason="test", by="test",
    )  # fmt: skip
    funded.append(
        told(2, lowered), *run_of(at("2026-12-01T00:00:00Z"), at("2026-12-01T01:00:00Z"), account="org/b")
    )
    after = NOON + dt.timedelta(hours=3)
    assert moved(funded, period=december, since=before, until=after) == []
    assert (available(funded, before, december), available(funded, after, december)) == (
        50 * GPU_HOUR, 12 * GPU_HOUR
    )  # fmt: skip
    found = limited(funded, period=december, since=before, until=after)
    assert [(m.account, m.type, m.gpu_ms // GPU_HOUR) for m in found] == [
        ("org", "budget.granted", 40), ("org", "budget.granted", 40), ("org", "adjustment.posted", -60)
    ]  # fmt: skip
    of_all = moved(funded, "org", period=december, since=before, until=after)
    assert sum(m.gpu_ms for m in found) + sum(m.gpu_ms for m in of_all) == available(funded, after, december)
    assert limited(funded, "org", period=december, since=before, until=after) == found
    assert (
        limited(funded, until=before)
        == limited(funded, since=after)
        == limited(funded, period=NOVEMBER)
        == []
    )
    assert [m.account for m in limited(funded, "other/team")] == ["other"]


def test_all_movements_of_a_closed_period_sum_to_nothing(funded: Ledger) -> None:
    funded.append(*run_of(IN_NOVEMBER, IN_NOVEMBER + 5 * HOUR))
    close(funded)
    assert sum(m.amount for m in moved(funded, period=NOVEMBER)) == 0


def test_an_inner_account_shows_the_leaves_below_it_and_no_others(funded: Ledger) -> None:
    funded.append(told(0, granted("other/team", NOVEMBER, 5 * GPU_HOUR)))
    assert {m.account for m in moved(funded, "org")} == {"org/vision"}


def test_what_does_not_exist_is_not_found(funded: Ledger) -> None:
    with pytest.raises(NotFound, match="'org/nobody' does not exist"):
        moved(funded, "org/nobody")


def test_more_than_one_answer_holds_is_refused_rather_than_cut(
    funded: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    funded.append(*run_of(IN_NOVEMBER, IN_NOVEMBER + 5 * HOUR))
    count = len(moved(funded))
    monkeypatch.setattr("gpuledger.ledger.movements.SHOWN_MAX", count)
    assert len(moved(funded)) == count
    monkeypatch.setattr("gpuledger.ledger.movements.SHOWN_MAX", count - 1)
    with pytest.raises(Refused, match="would not explain the difference"):
        moved(funded)
