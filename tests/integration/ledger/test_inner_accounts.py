"""What an inner account owns itself is its leaf ``~own``: no budget strands when it gets a child; limits can sink."""

import datetime as dt
from typing import Any

import pytest
from tests.integration.ledger.books import (
    CLUSTER,
    GPU_HOUR,
    HOUR,
    NOON,
    Ledger,
    at,
    ended,
    granted,
    registered,
    run_of,
    started,
    submitted,
    told,
)
from tests.integration.ledger.test_admission import ask, hard, is_sound, order

from gpuledger.database.engine import reading, writing
from gpuledger.events.budget import AccountCreated, AdjustmentPosted, Granted, ShareSet, Transferred
from gpuledger.kernel.clock import FixedClock, instant, seconds
from gpuledger.kernel.errors import NotFound, Refused
from gpuledger.ledger.balances import BalanceQuery, balances
from gpuledger.ledger.closing import close_period
from gpuledger.ledger.commands import Command, execute
from gpuledger.ledger.movements import movements
from gpuledger.ledger.periods import opening
from gpuledger.ledger.queries import taken_back

PERIOD = "2026-11"
NOW = "2026-11-20T00:00:00Z"
TENTH = at("2026-11-10T00:00:00Z")


def command(ledger: Ledger, order: Command, key: str = "k") -> None:
    with writing(ledger.engine) as writer:
        execute(writer, order, key=key, clock=ledger.clock, calendar=ledger.calendar)


def transfer(account: str, to: str, gpu_hours: int) -> Transferred:
    return Transferred(
        account=account,
        to=to,
        cluster=CLUSTER,
        period=PERIOD,
        gpu_ms=gpu_hours * GPU_HOUR,
        reason="t",
        by="t",
    )


def limit(account: str, gpu_hours: int) -> Granted:
    return Granted(
        account=account,
        cluster=CLUSTER,
        period=PERIOD,
        gpu_ms=gpu_hours * GPU_HOUR,
        reason="t",
        by="t",
        limit=True,
    )


def lower(account: str, gpu_hours: int, **keys: Any) -> AdjustmentPosted:  # noqa: ANN401
    given = {
        "cluster": CLUSTER,
        "period": PERIOD,
        "code": "grant",
        "limit": True,
        "reason": "less",
        "by": "ada",
        **keys,
    }
    return AdjustmentPosted(account=account, gpu_ms=-gpu_hours * GPU_HOUR, **given)


def left(ledger: Ledger, account: str, now: str = NOW) -> int:
    return ledger.balance(account, PERIOD, now=now).available_gpu_ms // GPU_HOUR


@pytest.fixture
def leaf(ledger: Ledger) -> Ledger:
    """``org/vision`` is a leaf with 100 GPU-hours for November, and used 8 of them on the tenth."""
    ledger.clock = FixedClock(instant(at(NOW)))
    order(ledger, *(AccountCreated(account=name) for name in ("org", "org/vision", "org/speech")))
    ledger.append(told(0, granted("org/vision", PERIOD, 100 * GPU_HOUR)), *run_of(TENTH, TENTH + HOUR))
    return ledger


@pytest.fixture
def split(leaf: Ledger) -> Ledger:
    """Then it got a child, and ran 16 GPU-hours more that it owns itself."""
    order(leaf, AccountCreated(account="org/vision/seg"))
    leaf.append(*run_of(TENTH, TENTH + 2 * HOUR, "w2"))
    return leaf


def test_before_it_has_a_child_a_leaf_is_itself(leaf: Ledger) -> None:
    assert leaf.used(now=NOW) == {"org/vision": 8 * GPU_HOUR}
    with pytest.raises(NotFound):
        leaf.balance("org/vision/~own", PERIOD, now=NOW)


def test_what_an_inner_account_owns_itself_is_its_child_own(split: Ledger) -> None:
    assert split.used(now=NOW) == {"org/vision/~own": 24 * GPU_HOUR}
    own, whole = (
        split.balance("org/vision/~own", PERIOD, now=NOW),
        split.balance("org/vision", PERIOD, now=NOW),
    )
    for found in (own, whole):
        assert (found.granted_gpu_ms, found.charged_gpu_ms) == (100 * GPU_HOUR, 24 * GPU_HOUR)
    with reading(split.engine) as reader:
        listed = balances(reader, BalanceQuery(CLUSTER, PERIOD), at(NOW))
        moved = movements(reader, "org/vision/~own", CLUSTER)
    assert [b.account for b in listed] == ["org/vision/~own"]
    assert {m.account for m in moved} == {"org/vision/~own"}
    assert sum(m.amount for m in moved) == 76 * GPU_HOUR * 1000
    assert is_sound(split)


def test_as_of_a_time_before_it_had_a_child_it_is_the_leaf_that_it_was(split: Ledger) -> None:
    ((as_of,),) = split.rows("SELECT last_recorded_at FROM ledger.books WHERE book = 'alpha'")
    order(split, AccountCreated(account="org/speech/asr"))
    split.append(*run_of(TENTH, TENTH + HOUR, "w3", account="org/speech"))
    assert "org/speech/~own" in split.used(now=NOW)
    split.clock = FixedClock(as_of + dt.timedelta(days=1))
    order(split, AccountCreated(account="org/vision/seg/a"))
    split.append(*run_of(TENTH, TENTH + HOUR, "w4", account="org/vision/seg"))
    with reading(split.engine) as reader:
        then = balances(reader, BalanceQuery(CLUSTER, PERIOD, as_of=as_of), at(NOW))
    assert [b.account for b in then] == ["org/vision/~own"]
    assert "org/vision/seg/~own" in split.used(now=NOW)


def test_the_budget_of_a_leaf_that_got_a_child_pays_on_and_can_be_given_to_the_child(split: Ledger) -> None:
    command(split, transfer("org/vision/~own", "org/vision/seg", 60))
    with pytest.raises(Refused, match=r"'org/vision/~own' has 16\.000 GPU-hours left"):
        command(split, transfer("org/vision/~own", "org/vision/seg", 17), "k2")
    command(split, transfer("org/vision/seg", "org/vision/~own", 5), "k3")
    assert (left(split, "org/vision/~own"), left(split, "org/vision/seg"), left(split, "org/vision")) == (
        21,
        55,
        76,
    )
    with pytest.raises(Refused, match="would give to itself"):
        command(split, transfer("org/vision", "org/vision/~own", 1), "k4")
    with pytest.raises(Refused) as refused:
        command(split, transfer("org/vision", "org/vision/seg", 1), "k5")
    assert "org/vision/~own for what it owns itself" in (refused.value.hint or "")
    assert is_sound(split)


def test_work_told_of_the_child_own_and_of_the_account_is_the_same(split: Ledger) -> None:
    split.append(*run_of(TENTH, TENTH + HOUR, "w3", account="org/vision/~own"))
    command(split, granted("org/vision/~own", PERIOD, 10 * GPU_HOUR))
    assert split.used(now=NOW) == {"org/vision/~own": 32 * GPU_HOUR}
    assert left(split, "org/vision/~own") == 100 + 10 - 32
    assert is_sound(split)


def test_a_close_expires_what_the_child_own_has_left(split: Ledger) -> None:
    split.clock = FixedClock(NOON)
    with writing(split.engine) as writer:
        close_period(writer, CLUSTER, PERIOD, "ada", clock=split.clock, calendar=split.calendar)
    found = split.balance("org/vision/~own", PERIOD)
    assert (found.expired_gpu_ms, found.available_gpu_ms) == (76 * GPU_HOUR, 0)
    assert is_sound(split)


def test_own_work_of_an_inner_account_is_funded_when_its_child_own_has_a_share(ledger: Ledger) -> None:
    order(ledger, *(AccountCreated(account=name) for name in ("org", "org/vision", "org/vision/seg")))
    hard(ledger)
    now_s = seconds(NOON)
    ledger.append(told(0, granted("org/vision/~own", "2026-12", 10 * GPU_HOUR)))
    ledger.append(*(told(now_s, submitted(name, minimum_runtime_s=HOUR)) for name in ("w1", "w2", "w3")))
    assert ask(ledger).decision.reason == "org/vision/~own has share 0, so nothing below it is funded"
    order(ledger, AccountCreated(account="org/vision/~own"))
    assert ask(ledger, "w2").decision.klass == "unallocated"
    order(ledger, ShareSet(account="org/vision/~own", share=1, reason="t", by="t"))
    assert ask(ledger, "w3").decision.klass == "allocated"
    ledger.append(told(now_s, started("w3")), told(now_s + HOUR, ended("w3")))
    assert ledger.balance("org/vision/~own", "2026-12").charged_gpu_ms == 8 * GPU_HOUR
    assert is_sound(ledger)


@pytest.mark.parametrize(("share", "part"), [(None, 0), (1, 1), (3, 3)])
def test_the_opening_grants_to_the_child_own_what_its_share_gives(
    ledger: Ledger, share: int | None, part: int
) -> None:
    order(ledger, *(AccountCreated(account=name) for name in ("org", "org/vision", "org/~own")))
    if share is not None:
        order(ledger, ShareSet(account="org/~own", share=share, reason="t", by="t"))
    ledger.append(told(0, registered("h1", 8)))
    with reading(ledger.engine) as reader:
        grants = {g.account: g.gpu_ms for g in opening(reader, CLUSTER, PERIOD, ledger.calendar).grants}
    whole = 8 * 30 * 24 * GPU_HOUR
    assert grants.get("org", 0) == whole * part // (part + 1)
    assert grants["org/vision"] == whole // (part + 1)


def test_a_limit_is_lowered_down_to_what_is_charged_and_held_below_it(split: Ledger) -> None:
    """24 of 200 GPU-hours are charged, 8 are held."""
    command(split, limit("org", 200), "limit")
    split.append(told(at(NOW), submitted("w5", account="org/speech", minimum_runtime_s=HOUR)))
    assert ask(split, "w5").decision.klass == "allocated"
    with pytest.raises(
        Refused, match=r"of the limit of 'org' .* 168\.000 GPU-hours are neither .* not 169\.000"
    ):
        command(split, lower("org", 169))
    command(split, lower("org", 168))
    found = split.balance("org/vision/~own", PERIOD, now=NOW)
    assert (found.available_gpu_ms, found.binding_account) == (0, "org")
    with pytest.raises(Refused, match="neither charged nor set aside, not 1"):
        command(split, lower("org", 1), "k2")
    command(split, lower("org", -5), "k3")
    assert left(split, "org/vision") == 5
    with reading(split.engine) as reader:
        assert taken_back(reader) == {("org", CLUSTER, PERIOD, True): 163 * GPU_HOUR}
    assert is_sound(split)


REFUSED = {
    "a limit that nobody set": (lower("org", 1), "'org' has no limit on alpha in 2026-11"),
    "a leaf": (lower("org/speech", 1), "has become a leaf"),
    "what is no limit": (lower("org", 1, code="charge"), "its limit is all that can be corrected"),
    "a correction of an inner account that is no limit": (
        lower("org", 1, limit=False),
        "'org' is an inner node",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_no_limit_is_not_lowered(split: Ledger, what: str) -> None:
    order_, expected = REFUSED[what]
    with pytest.raises(Refused, match=expected):
        command(split, order_)


def test_a_limit_on_an_account_that_was_a_leaf_leaves_its_lots_to_its_own_work(split: Ledger) -> None:
    command(split, limit("org/vision", 50))
    found = split.balance("org/vision/~own", PERIOD, now=NOW)
    assert (found.own_available_gpu_ms, found.available_gpu_ms) == (76 * GPU_HOUR, 26 * GPU_HOUR)
    assert found.binding_account == "org/vision"
