import pytest
from tests.unit.policy.forests import GPU_HOUR, WEEK_S, forest, pending

from gpuledger.policy.cycle import PendingWorkload, PolicyConfig
from gpuledger.policy.fair_share import Tier, lines, order_leaves, order_workloads, turns_of
from gpuledger.policy.tree import Tree

CONFIG = PolicyConfig()
WEEK_H = WEEK_S // 3600


def order(tree: Tree, *workloads: PendingWorkload) -> list[str]:
    return [turn.workload.workload for turn in order_workloads(tree, workloads, CONFIG)]


def test_the_lowest_use_over_entitlement_is_served_next() -> None:
    # used / share: a 50/1, b 60/3, c 10/1
    tree = forest({"a": {"used": 50}, "b": {"share": 3, "used": 60}, "c": {"used": 10}})
    assert order_leaves(tree, CONFIG) == ("c", "b", "a")


def test_the_walk_goes_down_the_tree_so_a_greedy_project_cannot_hide_in_a_modest_program() -> None:
    tree = forest({"p/greedy": {"used": 90}, "p/good": {}, "q/a": {"used": 50}, "q/b": {"used": 50}})
    assert order_leaves(tree, CONFIG) == ("p/good", "p/greedy", "q/a", "q/b")


def test_share_zero_sorts_last_whatever_it_used() -> None:
    tree = forest({"a": {"share": 0}, "b": {"used": 10_000}, "c": {"share": 0, "used": 1}})
    assert order_leaves(tree, CONFIG) == ("b", "a", "c")


def test_who_waits_below_the_floor_comes_before_a_lower_ratio() -> None:
    """a was idle all week (ratio 0), but b waits while it runs less than half of its 50 GPUs."""
    accounts = {"a": {"demand": 100}, "b": {"demand": 100, "used": 80 * WEEK_H}}
    below = forest(accounts, running={"a": 30, "b": 24})
    assert order_leaves(below, CONFIG) == ("b", "a")
    at_floor = forest(accounts, running={"a": 30, "b": 25})
    assert order_leaves(at_floor, CONFIG) == ("a", "b")


def test_an_account_whose_demand_runs_whole_is_not_below_the_floor() -> None:
    tree = forest({"a": {"demand": 100}, "b": {"demand": 24, "used": WEEK_H}}, running={"a": 30, "b": 24})
    assert order_leaves(tree, CONFIG) == ("a", "b")


def test_equal_ratios_are_decided_by_the_larger_shortfall_then_by_age_then_by_path() -> None:
    # All unused: ratio 0. b is entitled to more. c waits longer than a. d does not wait.
    tree = forest({"a": {}, "b": {"share": 2}, "c": {}, "d": {}})
    workloads = (pending("w-b", "b"), pending("w-a", "a"), pending("w-c", "c", eligible_at_s=-5))
    assert order(tree, *workloads) == ["w-b", "w-c", "w-a"]
    assert order_leaves(tree, CONFIG) == ("b", "a", "c", "d")


def test_accounts_take_turns_because_an_expected_hold_counts_as_use() -> None:
    tree = forest({"a": {}, "b": {}})
    queue = [pending(f"{team}{n}", team, gpus=8, submitted_at_s=n) for team in "ab" for n in range(3)]
    assert order(tree, *queue) == ["a0", "b0", "a1", "b1", "a2", "b2"]


def test_a_gang_may_carry_its_account_past_a_sibling_which_then_catches_up() -> None:
    tree = forest({"a": {}, "b": {}})
    queue = [pending("a-gang", "a", gpus=16), pending("a-next", "a", gpus=1, submitted_at_s=1)]
    queue += [pending(f"b{n}", "b", gpus=8, submitted_at_s=n) for n in range(3)]
    # At 16 each the shortfalls are equal and so are the ages: the path decides.
    assert order(tree, *queue) == ["a-gang", "b0", "b1", "a-next", "b2"]


def test_the_expected_hold_is_capped_by_the_protection_cap() -> None:
    tree = forest({"a": {}, "b": {}})
    long, capped = pending("a0", "a", hours=1000), pending("b0", "b", hours=8)
    rest = [pending("a1", "a", submitted_at_s=1), pending("b1", "b", submitted_at_s=1)]
    assert order(tree, long, capped, *rest) == ["a0", "b0", "a1", "b1"]


def test_priority_counts_inside_one_account_only() -> None:
    tree = forest({"a": {"used": 10}, "b": {}})
    queue = (
        pending("a-high", "a", priority=9, submitted_at_s=2),
        pending("a-early", "a", submitted_at_s=0),
        pending("a-late", "a", submitted_at_s=1),
        pending("b-low", "b", priority=-9, submitted_at_s=3),
    )
    assert order(tree, *queue) == ["b-low", "a-high", "a-early", "a-late"]


def test_unfunded_work_comes_last_by_least_unallocated_use_per_share() -> None:
    tree = forest(
        {
            "a": {"share": 1, "unallocated_gpu_ms": 10 * GPU_HOUR},
            "b": {"share": 3, "unallocated_gpu_ms": 20 * GPU_HOUR},
            "c": {"share": 0},
            "d": {"used": 9999},
        }
    )
    queue = (
        pending("a-free", "a", hours=0),
        pending("b-free", "b", hours=0),
        pending("c-unfunded", "c"),
        pending("d-funded", "d"),
    )
    turns = order_workloads(tree, queue, CONFIG)
    assert [(turn.workload.workload, turn.klass) for turn in turns] == [
        ("d-funded", "allocated"),
        ("b-free", "unallocated"),
        ("a-free", "unallocated"),
        ("c-unfunded", "unallocated"),
    ]
    assert [turn.position for turn in turns] == [1, 2, 3, 4]


def test_unallocated_work_takes_turns_too() -> None:
    tree = forest({"a": {}, "b": {}})
    queue = [pending(f"{team}{n}", team, hours=0, submitted_at_s=n) for team in "ab" for n in range(2)]
    assert order(tree, *queue) == ["a0", "b0", "a1", "b1"]


def test_a_turn_carries_the_standings_from_root_to_leaf() -> None:
    tree = forest({"p/x": {"used": 1}, "q": {}})
    (turn,) = order_workloads(tree, [pending("w", "p/x")], CONFIG)
    program, team = turn.chain
    assert (program.account, team.account) == ("p", "p/x")
    assert team.tier is Tier.BELOW_FLOOR
    window_and_ahead = 100_000 * (WEEK_S + CONFIG.protection_cap_s)
    assert program.used * window_and_ahead == program.entitled * 2 * GPU_HOUR


def test_nothing_waits_means_no_turns() -> None:
    assert order_workloads(forest({"a": {}}), [], CONFIG) == ()


def test_an_account_one_minute_old_starts_promptly() -> None:
    """Its window has entitled it to a minute of 10 GPUs; what it may hold ahead keeps its ratio small."""
    minute = 60 * 10_000
    tree = forest(
        {
            "new": {"share": 10, "entitled_gpu_ms": minute},
            "old": {"share": 90, "used": 89 * WEEK_H, "demand": 90},
        },
        running={"old": 90},
    )
    queue = [pending(f"debug{n}", "new", gpus=1, submitted_at_s=n) for n in range(3)]
    queue += [pending(f"train{n}", "old", gpus=8, submitted_at_s=n) for n in range(2)]
    assert order(tree, *queue)[:3] == ["debug0", "debug1", "debug2"]


@pytest.mark.parametrize("alpha", [0, 1000])
def test_the_floor_can_be_whole_or_absent(alpha: int) -> None:
    config = PolicyConfig(floor_alpha_permille=alpha)
    tree = forest({"a": {"demand": 90}, "b": {"demand": 90, "used": 99}}, running={"a": 50, "b": 49})
    assert order_leaves(tree, config) == (("b", "a") if alpha == 0 else ("a", "b"))


def test_the_turns_of_some_are_those_of_all_that_they_stand_among() -> None:
    tree = forest({"a": {}, "b": {}})
    queue = [pending(f"{team}{n}", team, hours=n, submitted_at_s=n) for team in "ab" for n in range(3)]
    turns = turns_of(lines(tree, queue, CONFIG))
    every = [(turn.position, turn.workload.workload, turn.account, turn.klass) for turn in turns]
    assert [position for position, *_ in every] == list(range(1, 7))
    some = [
        (turn.position, turn.workload.workload, turn.account, turn.klass) for turn in turns.of({"a1", "b0"})
    ]
    assert some == [one for one in every if one[1] in {"a1", "b0"}]
    assert turns.of(()) == []
