"""What a hard account cannot pay for is not funded: it asks for nothing, comes last and takes nobody's GPUs."""

import random
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from tests.integration.policy.stories import HOUR, NOON, World, event, small_cluster, started, submitted
from tests.integration.policy.worlds import by_account, decided

from gpuledger.database.engine import reading
from gpuledger.events import host
from gpuledger.events.budget import AccountCreated, Granted, OverdraftSet, ShareSet
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.clock import instant
from gpuledger.kernel.knobs import PolicyConfig
from gpuledger.ledger import queries
from gpuledger.ledger.purse import Need, Purse
from gpuledger.policy.affording import as_paid_for, in_turn
from gpuledger.policy.quotes import Request
from gpuledger.policy.quoting import ask_quote
from gpuledger.policy.reading import read_state
from gpuledger.policy.replaying import replay
from gpuledger.policy.telling import lines_of

GPU_HOUR = 3_600_000
ASKED = NOON + 5 * 60
BOOKED = NOON + 12 * HOUR
"""What was told has been booked by then: asked about an earlier time, budgets are those of then."""


def hard(world: World, *accounts: str) -> None:
    for account in accounts:
        fact = OverdraftSet(account=account, overdraft="hard", reason="test", by="test")
        world.take(event(f"hard/{account}", NOON - 2 * HOUR, fact))


def grant(world: World, account: str, hours: int, **keys: Any) -> None:  # noqa: ANN401
    fact = Granted(
        account=account,
        cluster="c",
        period="2027-01",
        gpu_ms=hours * GPU_HOUR,
        reason="test",
        by="test",
        **keys,
    )
    world.take(event(f"grant/{account}/{hours}", NOON - 2 * HOUR, fact))


@pytest.fixture
def world(database_url: str) -> Iterator[World]:
    """c/h is hard and has used nothing; c/a runs 6 GPUs, past its protection later on, and c/b waits."""
    with small_cluster(database_url) as found:
        found.take(event("h/born", 0, AccountCreated(account="c/h")))
        hard(found, "c/h")
        yield found


def demand(record: dict[str, Any], account: str) -> object:
    return by_account(record)[account]["demand_gpus"]


def reasons(record: dict[str, Any]) -> dict[str, str]:
    return {one["workload"]: one["reason"] for one in record["decisions"]}


def test_work_that_a_hard_account_cannot_pay_for_comes_last_and_takes_nothing(world: World) -> None:
    """It has used nothing, so that by ratios it would always come first, and nothing that it runs would ever count."""
    world.take(submitted("w-h", "c/h", NOON - HOUR, 10))
    record = world.cycle(ASKED)
    assert demand(record, "c/h") == 0
    assert by_account(record)["c/h"]["issued_gpus"] == 0
    assert [one["workload"] for one in decided(record, "start")] == ["w-b4"]
    assert "as unallocated work of account c/h" in reasons(record)["w-h"]
    assert [kept["workload"] for kept in record["reservations"]] == ["w-b8"]
    # Once the protection of c/a's run is over, nobody leaves for it either.
    later = world.cycle(NOON + 4 * HOUR)
    assert "w-h" not in {kept["workload"] for kept in later["reservations"]}
    assert "for w-h" not in " ".join(one["reason"] for one in decided(later, "preempt"))


def test_with_a_budget_it_is_funded_in_its_own_order_as_far_as_that_reaches(world: World) -> None:
    grant(world, "c/h", 5)
    for name, gpus, priority in (("w-2", 2, 0), ("w-4", 4, 0), ("w-3", 3, 1)):
        world.take(submitted(name, "c/h", NOON - 600, gpus, priority=priority))
    record = world.cycle(ASKED)
    assert demand(record, "c/h") == 5  # 3 first, then 2; 4 does not fit beside them
    told = reasons(record)
    assert "as unallocated work" in told["w-4"]
    assert "as unallocated work" not in told["w-3"] + told["w-2"]


def test_what_is_set_aside_is_paid_for_and_is_not_there_for_the_next(world: World) -> None:
    grant(world, "c/h", 5)
    world.take(submitted("w-4", "c/h", NOON - 600, 4), submitted("w-1", "c/h", NOON - 500, 1))
    world.take(submitted("w-2", "c/h", NOON - 400, 2))
    world.admit("w-4", ASKED)
    assert demand(world.cycle(ASKED + 1), "c/h") == 5
    world.take(started("w-4", ASKED + 2, 4))
    assert demand(world.cycle(ASKED + 3), "c/h") == 5


def test_of_those_under_one_hard_limit_the_oldest_are_paid_for(world: World) -> None:
    for name in ("c/p", "c/p/x", "c/p/y"):
        world.take(event(f"{name}/born", 0, AccountCreated(account=name)))
    hard(world, "c/p")
    grant(world, "c/p", 5, limit=True)
    for name in ("c/p/x", "c/p/y"):
        grant(world, name, 100)
    world.take(submitted("w-x", "c/p/x", NOON - 500, 3), submitted("w-y", "c/p/y", NOON - 600, 4))
    record = world.cycle(ASKED)
    assert (demand(record, "c/p/x"), demand(record, "c/p/y")) == (0, 4)


def test_work_that_shares_do_not_let_be_funded_takes_no_room_under_a_limit(world: World) -> None:
    for name in ("c/p", "c/p/x", "c/p/y"):
        world.take(event(f"{name}/born", 0, AccountCreated(account=name)))
    world.take(event("share/x", 0, ShareSet(account="c/p/x", share=0, reason="test", by="test")))
    hard(world, "c/p")
    grant(world, "c/p", 5, limit=True)
    for name in ("c/p/x", "c/p/y"):
        grant(world, name, 100)
    world.take(submitted("w-x", "c/p/x", NOON - 600, 3), submitted("w-y", "c/p/y", NOON - 500, 4))
    assert demand(world.cycle(ASKED), "c/p/y") == 4


def test_a_replay_knows_the_budget_of_then(world: World) -> None:
    grant(world, "c/h", 5)
    world.take(submitted("w-4", "c/h", NOON - 600, 4), submitted("w-3", "c/h", NOON - 500, 3))
    world.clock.at = instant(ASKED)
    record = world.cycle(ASKED)
    assert demand(record, "c/h") == 4
    world.clock.at += timedelta(hours=1)
    grant(world, "c/h", 50)
    world.admit("w-4", NOON + HOUR)
    with reading(world.engine) as reader:
        assert replay(reader, record["cycle"]).difference is None
    assert demand(world.cycle(NOON + HOUR + 60), "c/h") == 7


def test_a_quote_has_the_place_of_work_without_funding_and_says_what_is_lacking(world: World) -> None:
    def ask() -> Any:  # noqa: ANN401
        request = Request(account="c/h", gpus_milli=4000, minimum_runtime_s=HOUR)
        with reading(world.engine) as reader:
            return ask_quote(reader, "c", request, at_s=BOOKED, calendar=Calendar())

    world.take(submitted("w-b1", "c/b", NOON - 100, 1))
    found = ask()
    assert not found.is_allocated
    assert found.quote.position == 4  # behind all funded work
    document = found.as_json()
    assert (document["class"], document["funding"]["hold"]["fits"]) == ("unallocated", False)
    assert "c/h is hard and has 0.000 GPU-hours left" in "\n".join(found.lines())
    grant(world, "c/h", 5)
    assert ask().is_allocated
    assert ask().quote.position == 1


def test_why_says_what_is_lacking(world: World) -> None:
    world.take(submitted("w-h", "c/h", NOON - HOUR, 10))
    world.cycle(ASKED)
    answer = world.why("w-h", ASKED)
    assert answer.unpaid == "c/h is hard and has 0.000 GPU-hours left in 2027-01; 10.000 are needed"
    assert answer.as_json()["unpaid"] == answer.unpaid
    text = lines_of(answer)
    assert f"Would run unallocated, and waits as such work does: {answer.unpaid}." in text
    assert (
        "That orders funded work. Unallocated work comes after it, by least unallocated use / share." in text
    )
    assert world.why("w-b8", ASKED).unpaid is None
    grant(world, "c/h", 50)
    assert world.why("w-h", ASKED).unpaid is None


def test_all_at_once_are_told_what_the_purse_tells_one_by_one_now_and_as_of_then(database_url: str) -> None:
    """Over the edge of a month, at two weights, under limits; later grants change nothing of then."""
    with small_cluster(database_url) as world:
        draw = random.Random(5)
        accounts = ["c/p", "c/p/x", "c/p/y", "c/q", "c/r"]
        world.take(*(event(f"{name}/born", 0, AccountCreated(account=name)) for name in accounts))
        world.take(event("h2", NOON - HOUR, host.Registered(cluster="c", host="h2", gpus=8, gpu_model="y")))
        hard(world, "c/p", "c/p/x", "c/q")
        grant(world, "c/p", 40, limit=True)
        for name, hours in (("c/p/x", 30), ("c/p/y", 60), ("c/q", 25)):
            grant(world, name, hours)
        for n in range(40):
            account, gpus = draw.choice(accounts[1:]), draw.choice([1, 2, 3])
            asked = {
                "minimum_runtime_s": draw.choice([0, 1800, HOUR, 20 * HOUR]),
                "priority": draw.choice([0, 1]),
            }
            model = draw.choice([None, "x", "y"])
            world.take(submitted(f"w{n}", account, NOON - 600 + n, gpus, gpu_model=model, **asked))
        with reading(world.engine) as reader:
            pending = read_state(reader, "c", ASKED, PolicyConfig()).pending
            vector = queries.sequences(reader)
            purse = Purse(reader, "c", ASKED, Calendar())
            short = set()
            for top in ("c/p", "c/q"):
                waiting = [work for work in told_of(reader) if work.account.startswith(top)]
                for work in in_turn([work for work in waiting if work.minimum_runtime_s]):
                    span = (ASKED, ASKED + work.minimum_runtime_s)
                    if purse.shortfall(Need(work.account, work.gpus_milli, work.gpu_model, span)):
                        short.add(work.workload)
            free = {work.workload for work in told_of(reader) if not work.minimum_runtime_s}
        assert 0 < len(short) < 30
        assert {work.workload for work in pending if not work.minimum_runtime_s} == short | free
        world.clock.at += timedelta(hours=1)
        for name in ("c/p/x", "c/q"):
            grant(world, name, 500)
        with reading(world.engine) as reader:
            assert read_state(reader, "c", ASKED, PolicyConfig(), vector=vector).pending == pending
            assert as_paid_for(reader, "c", ASKED, told_of(reader)) != pending


def told_of(reader: Any) -> Any:  # noqa: ANN401
    """All that waits, whoever could pay for it."""
    from gpuledger.ledger import state
    from gpuledger.policy.state import PendingWorkload

    cap_s = PolicyConfig().protection_cap_s
    return tuple(
        PendingWorkload(
            workload=one.workload,
            account=one.account,
            gpus_milli=one.gpus_milli,
            submitted_at_s=one.submitted_s,
            eligible_at_s=one.eligible_s,
            priority=one.priority,
            minimum_runtime_s=min(one.minimum_runtime_s, cap_s),
            gpu_model=one.gpu_model,
        )
        for one in state.pending(reader, "c", ASKED)
    )
