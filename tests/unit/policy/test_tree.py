from fractions import Fraction

import pytest
from tests.unit.policy.forests import GPU_HOUR, HOUR_S, WEEK_S, account, forest

from gpuledger.kernel.errors import Refused
from gpuledger.policy.cycle import AccountState
from gpuledger.policy.tree import ROOT, Capacity, build_tree, round_exactly


def test_portion_is_the_product_of_share_fractions_down_the_path() -> None:
    tree = forest({"a": {"share": 3}, "b": {"share": 1}, "a/x": {"share": 1}, "a/y": {"share": 2}})
    assert {path: node.portion for path, node in tree.nodes.items()} == {
        "a": Fraction(3, 4),
        "a/x": Fraction(1, 4),
        "a/y": Fraction(1, 2),
        "b": Fraction(1, 4),
    }


def test_inner_nodes_nobody_listed_have_share_one() -> None:
    tree = forest({"a/x": {"share": 5}, "b": {"share": 3}})
    assert tree.nodes["a"].share == 1
    assert tree.nodes["a/x"].portion == Fraction(1, 4)


def test_inner_nodes_sum_what_is_below_them() -> None:
    tree = forest(
        {
            "a/x": {"used": 2, "demand": 3, "held_gpu_ms": GPU_HOUR},
            "a/y/z": {"used": 5, "demand": 4, "unallocated_gpu_ms": 7},
        },
        running={"a/x": 2, "a/y/z": 1},
    )
    node = tree.nodes["a"]
    assert node.used_gpu_ms == 7 * GPU_HOUR
    assert node.held_gpu_ms == GPU_HOUR
    assert node.unallocated_gpu_ms == 7
    assert node.demand_milli == 7000
    assert node.running_milli == 3000
    assert node.entitled == 100_000 * WEEK_S
    assert node.ahead == 100_000 * 8 * HOUR_S


def test_a_recorded_entitlement_replaces_the_computed_one_and_sums_up() -> None:
    tree = forest({"a/x": {"entitled_gpu_ms": 10}, "a/y": {"entitled_gpu_ms": 20}, "b": {}})
    assert tree.nodes["a"].entitled == 30
    assert tree.nodes["b"].entitled == Fraction(100_000 * WEEK_S, 2)


def test_shares_in_ppm_sum_to_a_million_among_siblings() -> None:
    tree = forest({"a": {}, "b": {}, "c": {}})
    assert [node.share_ppm for node in tree.nodes.values()] == [333_334, 333_333, 333_333]


def test_siblings_whose_shares_are_all_zero_have_no_part() -> None:
    tree = forest({"a/x": {"share": 0, "demand": 5}, "a/y": {"share": 0}, "b": {"demand": 1}})
    assert [tree.nodes[path].share_ppm for path in ("a/x", "a/y")] == [0, 0]
    assert tree.nodes["a/x"].portion == 0
    assert not tree.nodes["a/x"].funded
    assert tree.nodes["a"].issuable_milli == 0
    assert tree.nodes["a"].demand_milli == 5000


def test_work_of_an_inner_node_counts_in_its_own_child_with_share_zero() -> None:
    tree = forest({"a": {"used": 2, "demand": 1}, "a/x": {"used": 1}}, running={"a": 4})
    own = tree.nodes["a/~own"]
    assert (own.used_gpu_ms, own.demand_milli, own.running_milli) == (2 * GPU_HOUR, 1000, 4000)
    assert own.share == 0
    assert tree.nodes["a"].used_gpu_ms == 3 * GPU_HOUR
    assert tree.leaf_path("a") == "a/~own"
    assert tree.leaf_path("a/x") == "a/x"


def test_an_own_child_with_a_share_keeps_it() -> None:
    tree = forest({"a": {"used": 2}, "a/x": {}, "a/~own": {"share": 3, "used": 1}})
    own = tree.nodes["a/~own"]
    assert (own.share, own.used_gpu_ms) == (3, 3 * GPU_HOUR)


def test_an_account_that_only_works_is_shown_with_share_zero() -> None:
    tree = forest({"a": {}}, running={"stranger": 2})
    assert tree.nodes["stranger"].share == 0
    assert tree.nodes["stranger"].running_milli == 2000


def test_an_empty_forest_is_a_root_without_children() -> None:
    tree = forest({})
    assert tree.nodes == {}
    assert tree.root.demand_milli == 0
    assert round_exactly(tree, {ROOT: Fraction(0)}) == {ROOT: 0}


def test_an_account_listed_twice_is_refused() -> None:
    with pytest.raises(Refused, match="'a' is listed twice"):
        build_tree([account("a"), account("a")], Capacity(healthy_milli=1, window_gpu_ms=1, ahead_gpu_ms=1))


@pytest.mark.parametrize("field", ["share", "used_gpu_ms", "demand_milli", "entitled_gpu_ms"])
def test_a_negative_amount_is_refused_by_name(field: str) -> None:
    with pytest.raises(Refused, match=f"'a' has {field} = -1"):
        AccountState(**{"account": "a", "share": 1, field: -1})  # type: ignore[arg-type]


def test_holds_must_be_part_of_the_use() -> None:
    with pytest.raises(Refused, match="holds 2 gpu_ms but used only 1") as refused:
        AccountState(account="a", share=1, used_gpu_ms=1, held_gpu_ms=2)
    assert "used_gpu_ms counts the open holds" in refused.value.hint


def test_rounding_keeps_every_sum_at_every_depth() -> None:
    tree = forest({"a/x": {"share": 1}, "a/y": {"share": 1}, "b/x": {"share": 1}, "b/y": {"share": 2}})
    exact = {
        ROOT: Fraction(3),
        "a": Fraction(3, 2),
        "a/x": Fraction(3, 4),
        "a/y": Fraction(3, 4),
        "b": Fraction(3, 2),
        "b/x": Fraction(1, 2),
        "b/y": Fraction(1),
    }
    # a and b tie at remainder 1/2 with equal shares, so the earlier path gets the unit.
    assert round_exactly(tree, exact) == {
        ROOT: 3, "a": 2, "a/x": 1, "a/y": 1, "b": 1, "b/x": 0, "b/y": 1,
    }  # fmt: skip
