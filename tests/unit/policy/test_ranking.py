"""Whose runs leave first: the furthest beyond its share, and who used most without paying."""

from dataclasses import replace

from tests.unit.policy.forests import forest

from gpuledger.policy.ranking import Ranking
from gpuledger.policy.state import PolicyConfig

ACCOUNTS = {
    "a": {"share": 2, "used": 100, "unallocated_gpu_ms": 30},
    "p": {"share": 1},
    "p/x": {"share": 1, "used": 90, "unallocated_gpu_ms": 20},
    "p/y": {"share": 3, "used": 60},
    "z": {"share": 0, "used": 1},
}


def test_who_is_furthest_beyond_comes_first_and_each_before_what_is_below_it() -> None:
    ranking = Ranking(forest(ACCOUNTS), PolicyConfig())
    assert sorted(ranking.excess_rank, key=ranking.excess_rank.__getitem__) == ["z", "p", "p/x", "p/y", "a"]
    assert sorted(ranking.unpaid_rank, key=ranking.unpaid_rank.__getitem__) == ["z", "p", "p/x", "p/y", "a"]


def test_the_floor_is_a_part_of_the_entitlement_and_what_is_issued_where_credits_divide() -> None:
    tree = forest(ACCOUNTS, gpus=12)
    floors = Ranking(tree, PolicyConfig(floor_alpha_permille=250)).floor_milli
    assert floors == {"a": 6000, "p": 3000, "p/x": 750, "p/y": 2250, "z": 0}
    assert Ranking(tree, PolicyConfig()).present_milli == {
        "a": 8000,
        "p": 4000,
        "p/x": 1000,
        "p/y": 3000,
        "z": 0,
    }
    issued = dict.fromkeys(tree.nodes, 1000)
    by_credits = Ranking(replace(tree, floors_milli=issued), PolicyConfig())
    assert by_credits.floor_milli == by_credits.present_milli == issued


def test_who_used_more_than_its_part_without_paying_by_more_than_delta() -> None:
    accounts = {
        "a": {"share": 1, "unallocated_gpu_ms": 1050},
        "b": {"share": 1, "unallocated_gpu_ms": 950},
        "p": {"share": 2},
        "p/x": {"share": 1, "unallocated_gpu_ms": 1500},
        "p/y": {"share": 1, "unallocated_gpu_ms": 500},
        "z": {"share": 0},
    }
    exactly = Ranking(forest(accounts), PolicyConfig())
    assert {path for path, place in exactly.unpaid_beyond.items() if not place} == {"p/x"}
    accounts["a"]["unallocated_gpu_ms"] = 1074  # of 4024 a quarter is 1006, and 5 % more is 1056.3
    accounts["z"]["unallocated_gpu_ms"] = 1
    more = Ranking(forest(accounts), PolicyConfig())
    assert {path for path, place in more.unpaid_beyond.items() if not place} == {"a", "p/x", "z"}


def test_below_who_used_more_than_its_part_everybody_is_beyond() -> None:
    accounts = {
        "a": {"share": 1, "unallocated_gpu_ms": 1},
        "p": {"share": 1},
        "p/x": {"share": 1, "unallocated_gpu_ms": 9},
        "p/y": {"share": 1},
    }
    assert Ranking(forest(accounts), PolicyConfig()).unpaid_beyond == {"a": 1, "p": 0, "p/x": 0, "p/y": 0}


def test_two_leaves_are_compared_where_their_paths_part() -> None:
    ranking = Ranking(forest(ACCOUNTS), PolicyConfig(hysteresis_permille=1000))
    assert ranking.is_beyond("a", "p/y")
    assert not ranking.is_beyond("p/y", "a")
    assert not ranking.is_beyond("a", "a")
    assert ranking.is_beyond("p/x", "z")
    assert not ranking.exceeds("p", "a")  # not by delta
    assert ranking.exceeds("z", "a")
