"""Laws of the division, against an oracle that searches water levels."""

import random
from dataclasses import replace
from fractions import Fraction
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.property.policy import oracle
from tests.property.policy.worlds import accounts, build, capacity, forests, with_past

from gpuledger.policy.cycle import PolicyConfig
from gpuledger.policy.issue import Issue, divide, issue, issue_without_history, lag_weights, share_weights
from gpuledger.policy.tree import ROOT, Tree, build_tree

CONFIG = PolicyConfig()
SUPPLY = st.integers(0, 120).map(lambda gpus: gpus * 1000)
ODD_SUPPLY = st.integers(0, 120_000)
few = settings(max_examples=100, deadline=None)


def check_sums(world: dict[str, Any], tree: Tree, outcome: Issue, supply_milli: int) -> None:
    issued = outcome.issued_milli
    assert sum(issued[leaf.path] for leaf in tree.leaves()) + outcome.idle_milli == supply_milli
    assert outcome.idle_milli == max(supply_milli - oracle.wanted(world), 0)
    for node in tree.nodes.values():
        assert 0 <= issued[node.path] <= node.issuable_milli <= node.demand_milli
        if node.children:
            assert issued[node.path] == sum(issued[child.path] for child in node.children)


@few
@given(forests(), SUPPLY)
def test_without_history_the_exact_amounts_are_the_water_levels(world: dict[str, Any], supply: int) -> None:
    tree = build(world, supply)
    assert divide(tree, supply, share_weights(tree)) == oracle.issued(world, Fraction(supply))


@few
@given(forests(), SUPPLY)
def test_whole_gpus_sum_never_exceed_demand_and_leave_nothing_wanted_idle(
    world: dict[str, Any], supply: int
) -> None:
    tree = build(world, supply)
    for outcome in (
        issue(tree, supply_milli=supply, config=CONFIG),
        issue_without_history(tree, supply_milli=supply),
    ):
        check_sums(world, tree, outcome, supply)
        assert all(amount % 1000 == 0 for amount in outcome.issued_milli.values())


@few
@given(forests(unit=7), ODD_SUPPLY)
def test_fractions_of_gpus_sum_never_exceed_demand_and_leave_nothing_wanted_idle(
    world: dict[str, Any], supply: int
) -> None:
    tree = build(world, supply)
    check_sums(world, tree, issue(tree, supply_milli=supply, config=CONFIG), supply)


@few
@given(forests(), SUPPLY)
def test_every_node_is_within_one_gpu_of_its_exact_amount(world: dict[str, Any], supply: int) -> None:
    tree = build(world, supply)
    exact = divide(tree, supply, lag_weights(tree, CONFIG))
    rounded = issue(tree, supply_milli=supply, config=CONFIG).issued_milli
    assert all(abs(exact[path] - rounded[path]) < 1000 for path in rounded)


@few
@given(forests(), SUPPLY)
def test_who_gets_less_per_weight_than_a_sibling_has_all_it_asked_for(
    world: dict[str, Any], supply: int
) -> None:
    tree = build(world, supply)
    weights = lag_weights(tree, CONFIG)
    exact = divide(tree, supply, weights)
    for parent in tree.inner_nodes():
        live = [child for child in parent.children if child.share]
        level = {child.path: exact[child.path] / weights[child.path] for child in live}
        for child in live:
            if level[child.path] < max(level.values()):
                assert exact[child.path] == child.issuable_milli


@few
@given(forests(), SUPPLY, st.integers(1, 9), st.data())
def test_a_larger_share_never_gives_less(
    world: dict[str, Any], supply: int, more: int, data: st.DataObject
) -> None:
    """Neither where it counts for the window that is past, nor where it is raised now; in whole GPUs to one."""
    before = build(world, supply)
    path = data.draw(st.sampled_from(sorted(before.nodes)))
    raised = [replace(state, share=state.share + (state.account == path) * more) for state in accounts(world)]
    after = build_tree(raised, capacity(supply))
    for weigh in (share_weights, lambda tree: lag_weights(tree, CONFIG)):
        was = divide(before, supply, weigh(before))[path]
        assert divide(after, supply, weigh(after))[path] >= was
    was, now = (
        issue(tree, supply_milli=supply, config=CONFIG).issued_milli[path] for tree in (before, after)
    )
    assert now >= was - 1000


@few
@given(forests(), st.data())
def test_who_used_alike_of_what_each_was_entitled_to_weighs_its_share(
    world: dict[str, Any], data: st.DataObject
) -> None:
    """However much all used, and whatever their shares were when they were entitled to it."""
    used_permille = data.draw(st.integers(0, 3000))
    states = [
        state
        if state.entitled_gpu_ms is None
        else replace(state, used_gpu_ms=state.entitled_gpu_ms * used_permille // 1000)
        for state in accounts(with_past(random.Random(data.draw(st.integers(0, 99))), world))
    ]
    tree = build_tree(states, capacity(8000))
    weights = lag_weights(tree, CONFIG)
    for parent in tree.inner_nodes():
        live = [child for child in parent.children if child.share]
        if any(child.entitled for child in live):
            whole = sum(child.share for child in live)
            assert {child.path: weights[child.path] * whole for child in live} == {
                child.path: child.share for child in live
            }


@few
@given(forests(), SUPPLY, st.integers(0, 20_000))
def test_a_larger_supply_never_gives_anybody_less(world: dict[str, Any], supply: int, more: int) -> None:
    """By given weights, with history or without; what a lag weighs falls with the capacity (docs/fairness.md)."""
    tree = build(world, supply)
    for weights in (share_weights(tree), lag_weights(tree, CONFIG)):
        less, greater = (divide(tree, total, weights) for total in (supply, supply + more))
        assert all(greater[path] >= less[path] for path in less)


@few
@given(forests(), SUPPLY, st.data())
def test_nobody_envies_a_sibling_of_equal_share_demand_and_history(
    world: dict[str, Any], supply: int, data: st.DataObject
) -> None:
    """Every node in turn gets a twin: what both are issued is the same, to a GPU."""
    above = data.draw(st.sampled_from(oracle.inner(world)))
    like = data.draw(st.sampled_from(above["children"]))
    twin = {**like, "name": "twin"}
    above["children"].append(twin)
    tree = build(world, supply)
    path = next(node.path for node in tree.nodes.values() if node.path.rpartition("/")[2] == "twin")
    other = (path.rpartition("/")[0] + "/" + like["name"]).removeprefix("/")
    exact = divide(tree, supply, lag_weights(tree, CONFIG))
    assert exact[path] == exact[other]
    issued = issue(tree, supply_milli=supply, config=CONFIG).issued_milli
    assert abs(issued[path] - issued[other]) <= 1000


@few
@given(forests(min_share=1), st.integers(2, 10), st.integers(1, 50), st.integers(0, 10**12))
def test_a_correction_is_as_strong_at_any_depth(
    world: dict[str, Any], parts: int, gpus: int, others_used: int
) -> None:
    """A department that owns 1 / parts of a cluster weighs its accounts as a cluster of its size would."""
    alone = build_tree(accounts(world), capacity(gpus * 1000))
    other = {"name": "z", "share": parts - 1, "used": others_used, "demand": 0, "running": 0, "children": []}
    inside = {"children": [{"name": "dept", "share": 1, "children": world["children"]}, other]}
    deep = lag_weights(build_tree(accounts(inside), capacity(gpus * 1000 * parts)), CONFIG)
    assert {f"dept/{path}": weight for path, weight in lag_weights(alone, CONFIG).items()} == {
        path: weight for path, weight in deep.items() if path.startswith("dept/")
    }


@few
@given(forests())
def test_no_supply_and_no_shares_are_defined(world: dict[str, Any]) -> None:
    tree = build(world, 0)
    assert set(issue(tree, supply_milli=0, config=CONFIG).issued_milli.values()) <= {0}
    poor = build_tree([replace(state, share=0) for state in accounts(world)], capacity(1000))
    outcome = issue(poor, supply_milli=1000, config=CONFIG)
    assert set(outcome.issued_milli.values()) == {0}
    assert outcome.idle_milli == 1000
    assert ROOT not in outcome.issued_milli
