"""Figures of accounts among their siblings."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from tests.unit.policy.forests import forest

from gpuledger.policy.contenders import (
    Tier,
    allocated,
    floor_milli,
    present_milli,
    unallocated,
)
from gpuledger.policy.state import PolicyConfig

CONFIG = PolicyConfig()
ratios = st.tuples(st.integers(0, 50), st.integers(1, 50))


@given(st.lists(ratios, min_size=2, max_size=6))
def test_shifted_ratios_keep_their_order_and_only_equal_ones_are_equal(found: list[tuple[int, int]]) -> None:
    bits = 2 * max(entitled for _, entitled in found).bit_length()
    for used, entitled in found:
        for other, other_entitled in found:
            mine, theirs = (used << bits) // entitled, (other << bits) // other_entitled
            assert (mine < theirs) == (used * other_entitled < other * entitled)
            assert (mine == theirs) == (used * other_entitled == other * entitled)


def test_siblings_have_one_scale_and_bits_enough_for_the_largest() -> None:
    top = allocated(forest({"a": {"share": 3}, "b": {"share": 4}, "b/x": {}, "c": {}}), CONFIG)
    a, b, c = top.children
    assert a.scale == b.scale == c.scale
    assert 4 * a.entitled == 3 * b.entitled
    assert top.rank_bits == 2 * b.entitled.bit_length()
    assert b.children[0].path == "b/x"


def test_the_tier_depends_on_what_runs() -> None:
    tree = forest({"a": {}, "b": {"share": 0}})
    a, b = allocated(tree, CONFIG).children
    assert floor_milli(tree.nodes["a"], tree, CONFIG) == a.floor_milli == 50_000
    assert a.tier(49_999, 1) is Tier.BELOW_FLOOR
    assert a.tier(50_000, 0) is a.tier(0, 1, waits=False) is Tier.BY_RATIO
    assert b.tier(0, 1) is Tier.SHARE_ZERO
    assert (b.floor_milli, b.present_milli) == (0, 0)


def test_the_floor_lifts_no_further_than_the_present_entitlement() -> None:
    tree = forest({"a": {}, "b": {}, "c": {}}, gpus=1)
    a, _, _ = allocated(tree, CONFIG).children
    assert present_milli(tree.nodes["a"], tree) == a.present_milli == 333
    assert a.tier(100, 233) is Tier.BELOW_FLOOR
    assert a.tier(100, 234) is Tier.BY_RATIO


def test_where_credits_divide_it_lifts_to_what_is_issued() -> None:
    tree = replace(forest({"a": {}, "b": {}}), floors_milli={"a": 3000, "b": 97_000})
    a, b = allocated(tree, CONFIG).children
    assert (a.floor_milli, a.present_milli) == (3000, 3000)
    assert (b.tier(90_000, 7000), b.tier(90_000, 7001)) == (Tier.BELOW_FLOOR, Tier.BY_RATIO)


def test_of_siblings_below_their_floors_the_one_whose_gang_goes_beyond_its_entitlement_comes_by_ratio() -> (
    None
):
    tree = forest({"a": {"demand": 60}, "b": {"demand": 60, "used": 1}})
    said = allocated(tree, CONFIG, {"a": 51_000, "b": 50_000}).children
    assert sorted(contender.path for contender in said if contender.next_milli > 50_000) == ["a"]
    assert min(said).path == "b"
    assert min(allocated(tree, CONFIG).children).path == "a"


def test_unallocated_work_is_compared_by_use_per_share_without_a_floor() -> None:
    tree = forest({"a": {"share": 2, "unallocated_gpu_ms": 6}, "b": {"unallocated_gpu_ms": 2}})
    a, b = unallocated(tree).children
    assert b < a
    assert a.tier(0, 1) is Tier.BY_RATIO
