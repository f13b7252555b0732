"""Laws of entitlement: parts are whole, versions cover the interval, and the policy's tree agrees."""

import itertools
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from gpuledger.kernel.portions import portions
from gpuledger.policy.state import AccountState
from gpuledger.policy.tree import Capacity, build_tree
from gpuledger_pipelines.defs.owed.entitlement import ShareInForce, as_columns, versions

PATHS = ["c/a", "c/a/p", "c/a/q", "c/b", "c/b/r/s", "c/d"]
paths = st.sets(st.sampled_from(PATHS), min_size=1).map(sorted)
shares = st.dictionaries(st.sampled_from([*PATHS, "c", "c/b/r"]), st.integers(1, 1000))


@given(paths, shares)
def test_parts_of_positive_shares_sum_to_the_whole(paths: list[str], shares: dict[str, int]) -> None:
    assert sum(portions(paths, shares).values()) == 1


@given(paths, shares, st.sets(st.sampled_from(PATHS)))
def test_the_policy_gives_the_same_parts(paths: list[str], shares: dict[str, int], idle: set[str]) -> None:
    shares = {**shares, **dict.fromkeys(idle, 0)}
    listed = sorted({*paths, *(node for node in shares if any(p.startswith(node + "/") for p in paths))})
    accounts = [AccountState(account=path, share=shares.get(path, 1)) for path in listed]
    tree = build_tree(accounts, Capacity(healthy_milli=0, window_gpu_ms=0, ahead_gpu_ms=0))
    assert portions(paths, shares) == {leaf.path: leaf.portion for leaf in tree.leaves()}


@given(paths, st.lists(st.tuples(st.sampled_from(PATHS), st.integers(0, 9), st.integers(0, 99)), max_size=6))
def test_versions_cover_the_interval_without_a_gap(
    paths: list[str], changes: list[tuple[str, int, int]]
) -> None:
    found = versions(paths, [ShareInForce(a, share, at, None) for a, share, at in changes], 10, 90)
    assert (found[0].from_s, found[-1].to_s) == (10, 90)
    assert all(one.to_s == two.from_s for one, two in itertools.pairwise(found))


@given(paths, shares)
def test_columns_say_the_same_as_the_parts(paths: list[str], shares: dict[str, int]) -> None:
    found = versions(paths, [ShareInForce(a, s, 0, None) for a, s in shares.items()], 0, 1)
    columns = as_columns(found)
    parts = {
        account: Fraction(int(numerator), int(denominator))
        for account, numerator, denominator in zip(
            columns["accounts"], columns["numerators"], columns["denominators"], strict=True
        )
    }
    assert parts == {account: part for account, part in found[0].portions.items() if part}
