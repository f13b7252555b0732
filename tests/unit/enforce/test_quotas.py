"""Whose quota the GPUs of a cluster are."""

from hypothesis import given
from hypothesis import strategies as st

from gpuledger.enforce.facts import Issued
from gpuledger.enforce.quotas import divide, unserved

LEAVES = ("a/b/c", "a/b/d", "a/e", "f/g", "f/h/i", "k")
NODES = ("a", "a/b", "a/b/c", "a/b/d", "a/e", "f", "f/g", "f/h", "f/h/i", "k")


def below(node: str, leaf: str) -> bool:
    return leaf == node or leaf.startswith(f"{node}/")


@given(
    amounts=st.lists(st.integers(0, 40_000), min_size=len(LEAVES), max_size=len(LEAVES)),
    idle=st.integers(0, 20_000),
    queued=st.sets(st.sampled_from(NODES)),
    roots=st.sets(st.sampled_from(("a", "f", "k"))),
    by_hand=st.integers(0, 50_000),
    shares=st.lists(st.integers(0, 3), min_size=3, max_size=3),
)
def test_each_gpu_is_the_quota_of_one_and_what_no_queue_serves_stays_aside(
    amounts: list[int], idle: int, queued: set[str], roots: set[str], by_hand: int, shares: list[int]
) -> None:
    leaves = dict(zip(LEAVES, amounts, strict=True))
    ppm = dict(zip(("a", "f", "k"), shares, strict=True))
    issued = {
        node: Issued(node, ppm.get(node, 1), sum(leaves[leaf] for leaf in LEAVES if below(node, leaf)), 0, 0)
        for node in NODES
    }
    supply = sum(amounts) + idle
    told = divide(issued, supply, queued=queued, roots=roots, by_hand_milli=by_hand)

    # Each leaf is served by the longest name among the queues at or above it, or by none.
    serving = {
        leaf: max((node for node in queued if below(node, leaf)), key=len, default=None) for leaf in LEAVES
    }
    served = {node: sum(leaves[leaf] for leaf in LEAVES if serving[leaf] == node) for node in queued}
    assert told.queues == {node: amount // 1000 for node, amount in served.items()}
    unserved = sum(leaves[leaf] for leaf in LEAVES if serving[leaf] is None)
    quotas = 1000 * (sum(told.queues.values()) + sum(told.roots.values()))
    assert quotas + unserved <= supply
    if sum(served.values()) + by_hand <= supply:
        assert quotas + by_hand <= supply
    if roots:  # and nothing whole is left over that nobody holds back
        assert supply - quotas - max(unserved, by_hand) < 1000
    assert told.roots.keys() == roots


def test_without_cohorts_nothing_is_lent_and_what_is_kept_by_hand_may_exceed_the_supply() -> None:
    issued = {"a": Issued("a", 1, 3500, 0, 0)}
    assert divide(issued, 8000, queued={"a"}, roots=()) == ({"a": 3}, {})
    assert divide(issued, 8000, queued={"a"}, roots={"a"}).roots == {"a": 5}
    assert divide(issued, 8000, queued={"a"}, roots={"a"}, by_hand_milli=90_000).roots == {"a": 0}


def test_what_is_issued_to_leaves_that_no_queue_serves_is_named() -> None:
    amounts = {"a": 9, "a/b": 5, "a/b/c": 5, "a/e": 4, "f": 3, "f/g": 0, "f/h": 3, "k": 2}
    issued = {path: Issued(path, 1, milli, 0, 0) for path, milli in amounts.items()}
    for queued, expected in (
        (set(), ["a/b/c", "a/e", "f/h", "k"]), ({"a/b"}, ["a/e", "f/h", "k"]), ({"a", "k", "f/g"}, ["f/h"]),
    ):  # fmt: skip
        assert [one.account for one in unserved(issued, queued)] == expected
