import json

import pytest
from tests.unit.policy.forests import GPU_HOUR, WEEK_S, account, pending, run

from gpuledger.kernel.errors import Refused
from gpuledger.policy.cycle import (
    AccountState,
    Action,
    ClusterState,
    Cycle,
    PendingWorkload,
    PolicyConfig,
    RunningRun,
    as_json,
    run_cycle,
)

CONFIG = PolicyConfig()
AT_S = 1_000_000


def cycle(
    accounts: list[AccountState],
    queue: list[PendingWorkload] | None = None,
    running: list[RunningRun] | None = None,
    gpus: int = 100,
) -> Cycle:
    state = ClusterState(
        cluster="c",
        at_s=AT_S,
        healthy_milli=gpus * 1000,
        capacity_window_gpu_ms=gpus * 1000 * WEEK_S,
        accounts=tuple(accounts),
        running=tuple(running or ()),
        pending=tuple(queue or ()),
    )
    return run_cycle(state, CONFIG)


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


def test_the_ratio_counts_the_protection_cap_ahead() -> None:
    # 100 GPUs x (168 h + 8 h) = 17600 GPU-hours; 8800 used is a half.
    assert as_json(cycle([account("a", used=8800)]))["allocations"][0]["ratio"] == "0.500000"


def test_entitlements_published_sum_up_the_tree_exactly() -> None:
    result = cycle([account(path) for path in ("a/x", "a/y", "a/z", "b", "c")], gpus=1)
    rows = {row.account: row.entitled_gpu_ms for row in result.allocations}
    assert rows["a"] + rows["b"] + rows["c"] == 1000 * WEEK_S
    assert rows["a/x"] + rows["a/y"] + rows["a/z"] == rows["a"]


def test_work_starts_in_fair_order_while_it_fits_and_then_waits_without_backfill() -> None:
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
        "Waits at the head of the queue: account b (ratio 0.057727) is next, but of the 1 GPU asked for, "
        "1 GPU is missing."
    )
    assert third.numbers == {
        "position": 3,
        "gpus_milli": 1000,
        "free_milli": 0,
        "missing_milli": 1000,
        "ratio_ppm": 57_727,
        "reclaimable_milli": 0,
    }
    assert last.action is Action.WAIT
    assert last.reason == (
        "Waits at place 4: b1 of account b is ahead, for which 1 GPU is missing; "
        "funded work comes before the unallocated work of account a."
    )


def test_a_small_workload_behind_a_large_head_waits_and_is_told_who_is_ahead() -> None:
    result = cycle(
        [account("p/x", demand=99), account("q", used=100, demand=9)],
        [pending("gang", "p/x", gpus=64), pending("debug", "q", gpus=1)],
        [run("p/x", gpus=30), run("q", gpus=30)],
    )
    assert [decision.action for decision in result.decisions] == [Action.WAIT, Action.WAIT]
    assert result.decisions[1].reason == (
        "Waits at place 2: gang of account p/x is ahead, for which 24 GPUs are missing; "
        "p (ratio 0.000000) comes before q (ratio 0.011364)."
    )
    assert result.decisions[1].numbers["head_missing_milli"] == 24_000


def test_the_head_is_told_which_gpus_nothing_protects() -> None:
    result = cycle(
        [account("a", share=9, demand=100), account("b", used=9999)],
        [pending("w", "a", gpus=50)],
        [
            run("b", gpus=40),
            run("b", gpus=20, protected_until_s=AT_S + 1),
            run("a", gpus=10),
            run("a", gpus=5, klass="unallocated"),
        ],
    )
    (decision,) = result.decisions
    assert decision.numbers["reclaimable_milli"] == 45_000
    assert decision.reason.endswith(
        "25 GPUs are missing. Unallocated runs, and runs past their protection in accounts above their "
        "entitlement, hold 45 GPUs."
    )


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


def test_a_cycle_may_be_named() -> None:
    assert as_json(cycle([]), cycle_id="c-17")["cycle"] == "c-17"


def test_equal_settings_have_equal_versions() -> None:
    assert PolicyConfig().version == PolicyConfig(quantum_s=900).version
    assert PolicyConfig().version != PolicyConfig(quantum_s=901).version


@pytest.mark.parametrize(
    "setting",
    [
        {"window_s": 0},
        {"floor_alpha_permille": 1001},
        {"issue_kappa_permille": 0},
        {"floor_alpha_permille": -1},
    ],
)
def test_settings_outside_their_range_are_refused(setting: dict[str, int]) -> None:
    with pytest.raises(Refused, match=next(iter(setting))):
        PolicyConfig(**setting)
