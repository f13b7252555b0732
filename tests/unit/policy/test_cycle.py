import gc
import json

import pytest
from tests.unit.policy.forests import AT_S, GPU_HOUR, WEEK_S, account, cluster, hosts, pending, run

from gpuledger.kernel.errors import Refused
from gpuledger.policy.cycle import (
    AccountState,
    Action,
    Cycle,
    HostState,
    PendingWorkload,
    PolicyConfig,
    RunningRun,
    run_cycle,
)
from gpuledger.policy.published import as_json


def cycle(
    accounts: list[AccountState],
    queue: list[PendingWorkload] | None = None,
    running: list[RunningRun] | None = None,
    gpus: int = 100,
    on: tuple[HostState, ...] = (),
) -> Cycle:
    return run_cycle(cluster(accounts, queue or (), running or (), gpus=gpus, on=on), PolicyConfig())


def test_the_lessons_cycle_issues_budgets_and_publishes_them() -> None:
    budgets = {"a": 40, "b": 30, "c": 20, "d": 10}
    published = as_json(cycle([account(team, share=share, demand=60) for team, share in budgets.items()]))
    assert published["cluster"] == "c"
    assert published["cycle"] == "c@1000000"
    assert published["supply_gpus"] == 100
    assert published["allocations"][0] == {
        "account": "a",
        "share_ppm": 400_000,
        "used_gpu_ms": 0,
        "entitled_gpu_ms": 24_192_000_000,
        "par_gpu_ms": 0,
        "ratio": "0.000000",
        "demand_gpus": 60,
        "issued_gpus": 40,
    }
    assert [row["issued_gpus"] for row in published["allocations"]] == [40, 30, 20, 10]
    assert published["decisions"] == []
    assert json.loads(json.dumps(published)) == published


def test_allocations_hold_every_account_with_its_place() -> None:
    result = cycle([account("p/x", used=9, demand=1.5), account("p/y"), account("q", share=0, demand=3)])
    rows = {row.account: row for row in result.allocations}
    assert list(rows) == ["p", "p/x", "p/y", "q"]
    assert [row.position for row in result.allocations] == [None, 1, 2, 3]
    assert rows["p"].used_gpu_ms == 9 * GPU_HOUR
    assert rows["p/x"].ratio_num * 100_000 * (WEEK_S + 8 * 3600) == rows["p/x"].ratio_den * 18 * GPU_HOUR
    published = {row["account"]: row for row in as_json(result)["allocations"]}
    assert published["p/x"]["demand_gpus"] == published["p/x"]["issued_gpus"] == "1.500"
    assert published["q"]["ratio"] is None
    assert published["q"]["issued_gpus"] == 0


def test_places_are_those_of_the_gangs_that_would_be_served_next() -> None:
    """Both run nothing of their 50 GPUs, and b used more: the floor counts for whom its gang leaves within them."""
    accounts = [account("p/a", demand=51), account("p/b", demand=51, used=1), account("c", used=9)]
    for gpus, first in ((50, "p/a"), (51, "p/b")):
        queue = [pending("w-a", "p/a", gpus=gpus), pending("w-b", "p/b", gpus=50)]
        state = cluster(accounts, queue, gpus=200)
        places = {row.account: row.position for row in run_cycle(state, PolicyConfig()).allocations}
        assert [path for path in places if places[path] == 1] == [first]


def test_the_ratio_counts_the_protection_cap_ahead() -> None:
    # 100 GPUs x (168 h + 8 h) = 17600 GPU-hours; 8800 used is a half.
    assert as_json(cycle([account("a", used=8800)]))["allocations"][0]["ratio"] == "0.500000"


def test_entitlements_published_sum_up_the_tree_exactly() -> None:
    result = cycle([account(path) for path in ("a/x", "a/y", "a/z", "b", "c")], gpus=1)
    rows = {row.account: row.entitled_gpu_ms for row in result.allocations}
    assert rows["a"] + rows["b"] + rows["c"] == 1000 * WEEK_S
    assert rows["a/x"] + rows["a/y"] + rows["a/z"] == rows["a"]


def test_work_starts_in_fair_order_while_it_fits_and_then_waits() -> None:
    result = cycle(
        [account("a", demand=100), account("b", used=500, demand=100)],
        [
            pending("a0", "a", gpus=4),
            pending("b0", "b", gpus=8),
            pending("b1", "b", gpus=1, submitted_at_s=1),
            pending("a1", "a", gpus=3, hours=0),
        ],
        [run("a", gpus=50), run("b", gpus=38)],
    )
    first, second, third, last = result.decisions
    assert [decision.workload for decision in result.decisions] == ["a0", "b0", "b1", "a1"]
    assert first.action is Action.START
    assert first.reason == (
        "Starts: account a (ratio 0.000000) is next, and its 4 GPUs fit into the 12 free."
    )
    assert first.numbers["free_milli"] == 12_000
    assert second.action is Action.START
    assert second.reason == (
        "Starts: account b (ratio 0.056818) is next, and its 8 GPUs fit into the 8 free."
    )
    assert third.action is Action.WAIT
    assert third.reason == (
        "Waits at the head of its size class: account b (ratio 0.057727) is next, but of the 1 GPU asked for, "
        "1 GPU is missing. Reserved: 1 GPU, from 1970-01-12T14:01:40Z on at the latest, when the runs there are "
        "past their minimum runtime."
    )
    assert third.numbers == {
        "position": 3,
        "gpus_milli": 1000,
        "free_milli": 0,
        "missing_milli": 1000,
        "ratio_ppm": 57_727,
        "reserved_at_s": AT_S + 900,
    }
    assert last.action is Action.WAIT
    assert last.reason == (
        "Waits at place 4 for free GPUs, as unallocated work of account a: of the 3 GPUs asked for, "
        "3 GPUs are missing."
    )


def test_behind_a_head_of_its_size_waits_what_does_not_fit_and_is_told_who_is_ahead() -> None:
    result = cycle(
        [account("p/x", demand=99), account("q", used=100, demand=9)],
        [pending("gang", "p/x", gpus=64), pending("second", "q", gpus=60), pending("debug", "q", gpus=1)],
        [run("p/x", gpus=30), run("q", gpus=30)],
    )
    gang, debug, second = result.decisions
    assert [decision.action.value for decision in result.decisions] == ["wait", "start", "wait"]
    assert second.reason == (
        "Waits at place 3: gang of account p/x is ahead, for which 24 GPUs are missing; "
        "p (ratio 0.000000) comes before q (ratio 0.011477)."
    )
    assert second.numbers["head_missing_milli"] == gang.numbers["missing_milli"] == 24_000
    assert debug.workload == "debug"


def test_a_head_that_does_not_fit_takes_from_who_exceeds_it_what_nothing_protects() -> None:
    result = cycle(
        [account("a", share=9, demand=100), account("b", used=9999)],
        [pending("w", "a", gpus=50)],
        [
            run("b", gpus=40, name="long"),
            run("b", gpus=20, name="fresh", protected_until_s=AT_S + 1),
            run("a", gpus=10, name="mine"),
        ],
    )
    waits, leaves = result.decisions
    assert (
        waits.reason
        == "Waits for 50 GPUs, promised from 1970-01-12T13:47:40Z on: the runs there were told to leave."
    )
    assert (leaves.action, leaves.workload, leaves.run) == (Action.PREEMPT, "long", "long/1")
    assert leaves.reason == (
        "Leaves for w of account a, which asks for 50 GPUs: b (ratio 5.681250) is further beyond its entitlement than "
        "a (ratio 0.000000), and the minimum runtime of the run is over."
    )
    assert leaves.numbers == {
        "gpus_milli": 40_000,
        "lost_gpu_ms": 40_000 * AT_S,
        "ratio_ppm": 5_681_250,
        "asker_ratio_ppm": 0,
    }
    (promise,) = result.reservations
    assert (promise.workload, promise.kind.value, promise.at_s) == ("w", "promise", AT_S + 60)
    assert promise.leaving == (("long", "long/1"),)


def test_what_no_hosts_can_hold_together_takes_no_place_in_the_queue() -> None:
    result = cycle(
        [account("a")],
        [pending("w12", "a", gpus=12), pending("wrong", "a", gpu_model="b300"), pending("w8", "a", gpus=8)],
        on=hosts(8, 4),
    )
    starts, wide, wrong = result.decisions
    assert (starts.workload, starts.placement) == ("w8", {"h0": 8000})
    assert wide.reason == (
        "Waits outside the queue: account a asks for 12 GPUs, and no hosts of one model and one size can hold them, "
        "however empty."
    )
    assert wide.numbers == {"gpus_milli": 12_000, "missing_milli": 0}
    assert "of model b300" in wrong.reason


def test_reservations_are_a_part_of_the_cycle_and_nothing_starts_on_a_draining_host() -> None:
    leaving = HostState(host="old", gpus_milli=8000, gpu_model="h100", draining=True)
    result = cycle(
        [account("a")],
        [pending("w", "a", gpus=8)],
        [run("a", gpus=2, name="short", hosts={"h0": 2}, protected_until_s=AT_S + 5000)],
        on=(*hosts(8), leaving),
    )
    (kept,) = result.reservations
    assert (kept.workload, kept.kind.value, kept.at_s) == ("w", "bound", AT_S + 5000)
    assert kept.placement == {"h0": 8000}


def test_more_running_than_healthy_is_not_clamped() -> None:
    (decision,) = cycle([account("a")], [pending("w", "a", gpus=2)], [run("a", gpus=5)], gpus=4).decisions
    assert decision.numbers["free_milli"] == -1000
    assert decision.numbers["missing_milli"] == 3000


def test_what_is_larger_than_the_cluster_or_not_yet_eligible_holds_nobody_up() -> None:
    result = cycle(
        [account("a")],
        [
            pending("later", "a", eligible_at_s=AT_S + 60),
            pending("huge", "a", gpus=101, priority=9),
            pending("now", "a"),
        ],
    )
    assert [(d.workload, d.action.value) for d in result.decisions] == [
        ("now", "start"),
        ("huge", "wait"),
        ("later", "wait"),
    ]
    assert result.decisions[1].reason == (
        "Waits outside the queue: account a asks for 101 GPUs, the cluster has 100 healthy, 1 GPU is missing."
    )
    assert result.decisions[2].reason == (
        "Waits outside the queue: it becomes eligible in 60 s (account a, 1 GPU)."
    )


def test_work_of_an_account_without_budget_starts_unallocated() -> None:
    result = cycle([account("a")], [pending("w", "unmapped/bob"), pending("v", "a")])
    funded, unfunded = result.decisions
    assert funded.reason == (
        "Starts: account a (ratio 0.000000, running below its floor) is next, "
        "and its 1 GPU fits into the 100 free."
    )
    assert unfunded.reason == (
        "Starts unallocated, after all funded work: account unmapped/bob is next, "
        "and its 1 GPU fits into the 99 free."
    )
    assert "unmapped/bob" in {row.account for row in result.allocations}


def test_a_pending_workload_listed_twice_is_refused() -> None:
    with pytest.raises(Refused, match="'w' is pending twice"):
        cycle([account("a")], [pending("w", "a"), pending("w", "a")])


def test_nothing_that_a_cycle_makes_refers_to_itself() -> None:
    """The collector of reference cycles passes over it, so what did would stay."""
    queue = [pending(f"w{n}", ("a/x", "a/y", "b")[n % 3], gpus=4, hours=n % 4) for n in range(27)]
    running = [run("b", gpus=4, name=f"r{n}", hosts={f"h{n}": 4}) for n in range(3)]
    state = cluster([account("a/x"), account("a/y"), account("b")], queue, running, on=hosts(8, 8, 8))
    for config in (PolicyConfig(), PolicyConfig(division="credits")):
        gc.collect()
        gc.disable()
        try:
            assert as_json(run_cycle(state, config))["decisions"]
            assert gc.collect() == 0
        finally:
            gc.enable()


def test_a_cycle_may_be_named() -> None:
    assert as_json(cycle([]), cycle_id="c-17")["cycle"] == "c-17"
