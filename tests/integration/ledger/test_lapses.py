"""A lot that has lapsed is gone from every balance at that instant, whether a tick has come or not."""

import datetime as dt

import msgspec
import pytest
from tests.integration.ledger.books import (
    CLUSTER,
    GPU_HOUR,
    HOUR,
    NOON,
    Ledger,
    granted,
    started,
    submitted,
    told,
)
from tests.integration.ledger.test_admission import ask, hard, order

from gpuledger.database.engine import reading
from gpuledger.events.budget import AccountCreated
from gpuledger.events.closing import LedgerTicked
from gpuledger.kernel.amounts import WEIGHT_ONE
from gpuledger.kernel.clock import FixedClock, instant, seconds
from gpuledger.ledger.balances import BalanceQuery, balance
from gpuledger.ledger.lapses import Ahead

NOW_S = seconds(NOON)
DAY = 24 * HOUR
PERIOD = "2026-12"
GONE_S = NOW_S - 12 * HOUR + 3 * DAY
"""The fourth begins."""


@pytest.fixture
def lapsing(ledger: Ledger) -> Ledger:
    """``org/vision`` has 100 GPU-hours, 60 of them until the fourth; ``org`` lets 95 be used. Noon was ticked."""
    order(ledger, *(AccountCreated(account=name) for name in ("org", "org/vision")))
    lot = msgspec.structs.replace(granted("org/vision", PERIOD, 60 * GPU_HOUR), expires_at=instant(GONE_S))
    limit = msgspec.structs.replace(granted("org", PERIOD, 95 * GPU_HOUR), limit=True)
    ledger.append(told(0, lot), told(0, granted("org/vision", PERIOD, 40 * GPU_HOUR)), told(0, limit))
    ledger.append(told(NOW_S, submitted()), told(NOW_S, LedgerTicked(cluster=CLUSTER)))
    return ledger


def left(
    ledger: Ledger, at_s: int, account: str = "org/vision", as_of: dt.datetime | None = None
) -> tuple[int, int, str]:
    """Return what has expired and what is available, in GPU-hours, and who binds."""
    with reading(ledger.engine) as reader:
        found = balance(reader, account, BalanceQuery(CLUSTER, PERIOD, as_of=as_of), at_s, ledger.calendar)
    return found.expired_gpu_ms // GPU_HOUR, found.available_gpu_ms // GPU_HOUR, found.binding_account


@pytest.mark.parametrize("account", ["org/vision", "org"])
def test_it_is_gone_from_the_first_instant_of_its_day_on(lapsing: Ledger, account: str) -> None:
    assert left(lapsing, GONE_S - 1, account) == (0, 95, "org")
    assert left(lapsing, GONE_S, account) == (60, 40, account)


def test_what_ran_before_it_was_gone_still_used_it(lapsing: Ledger) -> None:
    """One GPU from noon of the first: 60 hours to the midnight on which the lot is gone, then the other lot."""
    lapsing.append(told(NOW_S, started(gpus_milli=1000)))
    assert left(lapsing, GONE_S - HOUR) == (0, 36, "org")
    assert left(lapsing, GONE_S + 2 * HOUR) == (0, 33, "org")


def test_a_tick_changes_nothing_more(lapsing: Ledger) -> None:
    lapsing.append(told(NOW_S, started(gpus_milli=500)))
    before = left(lapsing, GONE_S + HOUR)
    lapsing.clock = FixedClock(instant(GONE_S + HOUR))
    lapsing.append(told(GONE_S + HOUR, LedgerTicked(cluster=CLUSTER)))
    assert left(lapsing, GONE_S + HOUR) == before == (30, 39, "org/vision")
    with reading(lapsing.engine) as reader:
        ahead = Ahead(reader, CLUSTER, GONE_S + HOUR, None, lapsing.calendar)
    assert (ahead.expired, ahead.rolled) == ({}, {})


def test_what_was_said_then_is_said_again(lapsing: Ledger) -> None:
    """A grant that lapses on the same day and comes later was not known then."""
    then = instant(GONE_S + HOUR)
    said = left(lapsing, GONE_S + HOUR)
    lapsing.clock = FixedClock(instant(GONE_S + 2 * HOUR))
    more = msgspec.structs.replace(granted("org/vision", PERIOD, 7 * GPU_HOUR), expires_at=instant(GONE_S))
    lapsing.append(told(0, more), told(GONE_S + 2 * HOUR, LedgerTicked(cluster=CLUSTER)))
    assert left(lapsing, GONE_S + 3 * HOUR)[0] == 67
    assert left(lapsing, GONE_S + 3 * HOUR, as_of=then) == said
    assert left(lapsing, GONE_S + 3 * HOUR, as_of=instant(GONE_S - 1)) == (0, 95, "org")


def test_an_admission_says_the_same_as_the_balance(lapsing: Ledger) -> None:
    hard(lapsing)
    lapsing.append(told(NOW_S, submitted("w9", gpus_milli=41_000, minimum_runtime_s=HOUR)))
    lapsing.clock = FixedClock(instant(GONE_S))
    assert left(lapsing, GONE_S)[1] == 40
    assert "has 40.000 GPU-hours left" in ask(lapsing, "w9").decision.reason


def test_each_cluster_has_its_own_clock(lapsing: Ledger) -> None:
    """Of all clusters together it reads the same; an empty one has nothing ahead."""
    lapsing.append(told(NOW_S, submitted(cluster="beta")))
    with reading(lapsing.engine) as reader:
        for cluster in (CLUSTER, None):
            ahead = Ahead(reader, cluster, GONE_S, None, lapsing.calendar)
            assert ahead.expired == {(CLUSTER, "org/vision", PERIOD): 60 * GPU_HOUR * WEIGHT_ONE}
        assert Ahead(reader, "beta", GONE_S, None, lapsing.calendar).expired == {}
