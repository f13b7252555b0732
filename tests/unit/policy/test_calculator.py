"""The policy for a tree written by hand."""

import pytest
from tests.unit.policy.forests import GPU_HOUR, account

from gpuledger.kernel.errors import Refused
from gpuledger.policy.calculator import divide_by_hand, rank_by_hand


def test_without_use_the_shares_alone_divide() -> None:
    teams = [account(name, share=share, demand=60) for name, share in zip("abcd", (4, 3, 2, 1), strict=True)]
    division = divide_by_hand(teams, supply_milli=100_000)
    assert division.issue.issued_milli == {"a": 40_000, "b": 30_000, "c": 20_000, "d": 10_000}
    assert division.issue.idle_milli == 0


def test_who_used_more_of_the_window_weighs_less_and_goes_last() -> None:
    """Equal shares; a used all 1,680 GPU-hours of a week of 10 GPUs: weights max(1/4, 1/2 - 7/2) and 1/2 + 7/2."""
    division = divide_by_hand(
        [account("a", demand=10, used=1680), account("b", demand=10)], supply_milli=10_000
    )
    assert division.issue.issued_milli == {"a": 1000, "b": 9000}  # exactly 10/17 and 160/17
    assert division.order == ("b", "a")


def test_the_window_may_be_of_another_size_than_the_supply_says() -> None:
    """a used 1 GPU-hour more of 34 than it was entitled to, of the 240 in which ten GPUs make it good."""
    teams = [account("a", demand=9.999, used=18), account("b", demand=9.999, used=16)]
    division = divide_by_hand(teams, supply_milli=10_000, window_gpu_ms=34 * GPU_HOUR)
    assert division.issue.issued_milli == {"a": 4958, "b": 5042}  # 10 GPUs x (1/2 -+ 1/240)
    assert division.order == ("b", "a")
    assert division.tree.nodes["a"].entitled == 17 * GPU_HOUR
    assert division.tree.nodes["a"].ahead * 168 == 8 * 17 * GPU_HOUR


def test_the_floor_does_not_apply_as_nobody_runs() -> None:
    """b waits for everything and runs nothing; its ratio alone decides."""
    division = divide_by_hand([account("a", used=1), account("b", demand=9, used=2)], supply_milli=9000)
    assert division.order == ("a", "b")


def test_supply_may_be_nothing() -> None:
    division = divide_by_hand([account("a", demand=9)], supply_milli=0)
    assert (division.issue.issued_milli, division.issue.idle_milli) == ({"a": 0}, 0)


def test_an_account_that_stands_twice() -> None:
    with pytest.raises(Refused, match="listed twice"):
        divide_by_hand([account("a"), account("a")], supply_milli=1)


def test_fair_tree_ranks_the_same_tree() -> None:
    """Work of an inner account counts in its ``~own``, which has no share and comes last."""
    tree = divide_by_hand(
        [account("a", used=5), account("a/x", used=2), account("a/y", used=1), account("b", share=0)],
        supply_milli=1000,
    ).tree
    assert [user.path for user in rank_by_hand(tree)] == ["a/y", "a/x", "a/~own", "b"]
    assert rank_by_hand(tree, transparent={"b"})[0].path == "b"
