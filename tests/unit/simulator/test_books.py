"""What books keep, in cases that can be worked out by hand."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tests.simulating import T0, job

from gpuledger.policy.cycle import tree_of
from gpuledger.policy.placement import Room
from gpuledger.policy.state import AccountState, ClusterState, PendingWorkload, PolicyConfig
from gpuledger.simulator.books import Books
from gpuledger.simulator.facts import (
    Cancelled,
    Departure,
    Fact,
    HostChanged,
    HostCondition,
    Left,
    Started,
    Submitted,
)
from gpuledger.simulator.scenario import AccountSpec, HostSpec

HOUR_S = 3_600
HOSTS = [HostSpec(host=name, gpus_milli=8_000, gpu_model="H100") for name in ("h1", "h0")]
ACCOUNTS = [AccountSpec(account="org/a", share=1), AccountSpec(account="org/b", share=3)]


def books(facts: Sequence[Fact] = (), **knobs: Any) -> Books:  # noqa: ANN401 - what the configuration takes
    found = Books("c", HOSTS, ACCOUNTS, PolicyConfig(**knobs), T0)
    for fact in facts:
        found.told(fact)
    return found


def state(found: Books, after_s: int, saved_s: dict[str, int] | None = None) -> ClusterState:
    told = found.state(T0 + after_s, saved_s)
    assert told is not None
    return told


def account(told: ClusterState, path: str) -> AccountState:
    return next(one for one in told.accounts if one.account == path)


def submitted(name: str, gpus: int, **more: Any) -> Submitted:  # noqa: ANN401 - what a job takes
    asked = job(name, gpus, **more)
    return Submitted(at_s=asked.submitted_s, job=asked)


def started(name: str, after_s: int, protected_s: int, **gpus: int) -> Started:
    return Started(
        at_s=T0 + after_s,
        job=name,
        run=1,
        placement={host: 1000 * number for host, number in gpus.items()},
        klass="allocated",
        protected_s=protected_s,
    )


def left(name: str, after_s: int, why: Departure, *, requeued: bool = False, kept_s: int = 0) -> Left:
    return Left(
        at_s=T0 + after_s,
        job=name,
        run=1,
        why=why,
        requeued=requeued,
        kept_s=kept_s,
        lost_s=0,
        loading_s=10,
        idle_s=0,
    )


def test_a_run_uses_and_what_protects_it_is_held() -> None:
    found = state(books([submitted("j", 4), started("j", 100, 600, h0=4)]), 300)
    mine = account(found, "org/a")
    assert (mine.used_gpu_ms, mine.held_gpu_ms) == (4_000 * 600, 4_000 * 400)
    assert mine.demand_milli == 4_000
    assert [run.protected_until_s for run in found.running] == [T0 + 700]
    assert found.pending == ()


def test_entitlement_is_the_part_of_what_was_healthy() -> None:
    down = HostChanged(at_s=T0 + 100, host="h0", condition=HostCondition.DOWN)
    found = state(books([down]), 300)
    assert found.healthy_milli == 8_000
    assert found.capacity_window_gpu_ms == 16_000 * 100 + 8_000 * 200
    assert account(found, "org/a").entitled_gpu_ms == found.capacity_window_gpu_ms // 4
    assert [host.host for host in found.hosts] == ["h1"]


def test_a_host_that_drains_is_there_and_counts_for_nobody() -> None:
    found = state(books([HostChanged(at_s=T0 + 100, host="h0", condition=HostCondition.DRAINING)]), 300)
    assert [(host.host, host.draining) for host in found.hosts] == [("h0", True), ("h1", False)]
    assert found.healthy_milli == 8_000


def test_without_healthy_gpus_there_is_no_cycle() -> None:
    downs = [HostChanged(at_s=T0, host=spec.host, condition=HostCondition.DOWN) for spec in HOSTS]
    assert books(downs).state(T0 + 1) is None


def test_who_waits_again_is_eligible_since_then_and_keeps_the_instant_of_its_submission() -> None:
    facts = [
        submitted("j", 4, at_s=5),
        started("j", 10, 60, h0=4),
        left("j", 90, Departure.PREEMPTED, requeued=True),
    ]
    (waits,) = state(books(facts), 100).pending
    assert (waits.submitted_at_s - T0, waits.eligible_at_s - T0, waits.gpus_milli) == (5, 90, 4_000)


def test_who_is_cancelled_or_done_is_gone() -> None:
    facts = [
        submitted("j", 4),
        submitted("k", 1),
        Cancelled(at_s=T0 + 1, job="k"),
        started("j", 10, 60, h0=4),
    ]
    found = state(books([*facts, left("j", 70, Departure.DONE)]), 100)
    assert (found.pending, found.running) == ((), ())
    assert account(found, "org/a").used_gpu_ms == 4_000 * 60


def test_a_failed_host_gives_back_what_has_to_be_done_again() -> None:
    """It was loaded after 10 s and has saved 100 s of its work."""
    facts = [submitted("j", 4), started("j", 0, 60, h0=4)]
    lost = left("j", 500, Departure.HOST_FAILED, requeued=True, kept_s=100)
    assert account(state(books([*facts, lost]), 600), "org/a").used_gpu_ms == 4_000 * 110
    never = left("j", 500, Departure.HOST_FAILED, requeued=True)
    assert account(state(books([*facts, never]), 600), "org/a").used_gpu_ms == 0


def test_four_hours_are_given_back_at_most() -> None:
    facts = [submitted("j", 1), started("j", 0, 60, h0=1), left("j", 5 * HOUR_S, Departure.HOST_FAILED)]
    assert account(state(books(facts), 6 * HOUR_S), "org/a").used_gpu_ms == 1_000 * HOUR_S


def test_work_that_no_hosts_could_hold_is_no_demand() -> None:
    facts = [
        submitted("huge", 17),
        submitted("other", 1, gpu_model="B200"),
        submitted("fits", 16, gpu_model="h100"),
    ]
    found = state(books(facts), 1)
    assert account(found, "org/a").demand_milli == 16_000
    assert {waits.workload: waits.gpu_model for waits in found.pending} == {
        "huge": None, "other": "B200", "fits": "H100",
    }  # fmt: skip


def test_who_is_not_listed_gets_the_share_of_one_that_nobody_set() -> None:
    found = state(books([submitted("j", 1, account="org/new"), submitted("k", 1, account="org")]), 1)
    assert {one.account: one.share for one in found.accounts} == {
        "org": 1, "org/a": 1, "org/b": 3, "org/new": 1, "org/~own": 0,
    }  # fmt: skip
    assert account(found, "org/new").demand_milli == 1_000
    assert account(found, "org").demand_milli == 0


def test_what_is_saved_is_told_of_runs() -> None:
    found = books([submitted("j", 4), started("j", 0, 60, h0=4)])
    assert [run.checkpointed_at_s for run in state(found, 10).running] == [None]
    assert [run.checkpointed_at_s for run in state(found, 50, {"j": T0 + 40}).running] == [T0 + 40]
    assert [run.checkpointed_at_s for run in state(found, 60, {"j": T0 + 40}).running] == [T0 + 40]


def test_the_room_is_what_a_state_leaves_free_whatever_became_of_hosts() -> None:
    facts = [
        submitted("j", 4),
        submitted("k", 8),
        started("j", 100, 600, h0=1, h1=3),
        HostChanged(at_s=T0 + 150, host="h0", condition=HostCondition.DRAINING),
        started("k", 200, 0, h1=5),
        HostChanged(at_s=T0 + 300, host="h0", condition=HostCondition.DOWN),
        left("j", 300, Departure.HOST_FAILED, requeued=True),
        HostChanged(at_s=T0 + 400, host="h0", condition=HostCondition.HEALTHY),
        started("j", 500, 600, h0=2, h1=2),
        left("k", 600, Departure.DONE),
    ]
    found = books()
    for after, fact in enumerate(facts, start=1):
        found.told(fact)
        told = state(found, 1_000 + after)
        fresh = Room(told.hosts, [run.placement for run in told.running])
        for milli in range(1_000, 17_000, 1_000):
            assert found.room.fit(milli) == fresh.fit(milli)
    assert found.room.fit(6_000) == {"h0": 6_000}


def test_an_account_waits_alone_while_all_that_waits_is_its_own() -> None:
    found = books([submitted("j", 4)])
    assert [waits.workload for waits in found.only_waiting()] == ["j"]
    found.told(submitted("k", 4))
    assert [waits.workload for waits in found.only_waiting()] == ["j", "k"]
    found.told(submitted("other", 4, account="org/b"))
    assert list(found.only_waiting()) == []
    found.told(Cancelled(at_s=T0 + 5, job="other"))
    found.told(started("j", 10, 60, h0=4))
    assert [waits.workload for waits in found.only_waiting()] == ["k"]
    found.told(started("k", 10, 60, h0=4))
    assert list(found.only_waiting()) == []


def test_work_is_funded_while_no_share_above_it_is_0() -> None:
    shares = {"org/a": 1, "org/b": 0, "org/b/x": 1, "org/c/x": 1, "org/c/y": 0}
    accounts = [AccountSpec(account=path, share=share) for path, share in shares.items()]
    found = Books("c", HOSTS, accounts, PolicyConfig(), T0)
    asked = ("org/a", "org/b", "org/b/x", "org/c", "org/c/x", "org/c/y", "org/new")
    found.told(submitted("j", 1, account="org/new"))
    asking = PendingWorkload(
        workload="w", account="org", gpus_milli=1, submitted_at_s=T0, eligible_at_s=T0, minimum_runtime_s=1
    )
    for path in asked:
        waits = replace(asking, account=path)
        told = replace(state(found, 1), pending=(waits,))
        tree = tree_of(told, told.pending, PolicyConfig())
        assert found.is_funded(path) == tree.is_funded(path, 1), path
    assert [path for path in asked if not found.is_funded(path)] == ["org/b", "org/b/x", "org/c", "org/c/y"]


def test_a_cycle_is_told_which_runs_came_and_went() -> None:
    found = books([submitted("a", 8), submitted("b", 8), started("a", 0, HOUR_S, h0=8)])
    (begun,) = found.turnout().begun
    assert begun.workload == "a"
    (run,) = state(found, 60, {"a": T0 + 50}).running
    saved = found.turnout()
    assert (saved.left, saved.begun) == ((begun,), (run,))
    assert run.checkpointed_at_s == T0 + 50
    found.told(left("a", 90, Departure.DONE))
    found.told(started("b", 90, HOUR_S, h1=8))
    found.told(left("b", 90, Departure.DONE))
    over = found.turnout()
    assert (over.left, over.begun) == (
        (run,),
        (),
    )  # who came and went since the last question is told to nobody
    assert [one.workload for one in over.gone] == ["b"]
