"""The lesson's four teams and the edges of the division."""

from fractions import Fraction

import pytest
from tests.unit.policy.forests import WEEK_S, forest

from gpuledger.kernel.errors import Refused
from gpuledger.policy.cycle import PolicyConfig
from gpuledger.policy.issue import issue, issue_without_history, lag_weights

CONFIG = PolicyConfig()
WEEK_H = WEEK_S // 3600


def lesson(shares: tuple[int, ...], demands: tuple[float, ...], gpus: int = 100) -> tuple[list[float], float]:
    """Issued GPUs per team, and idle GPUs."""
    teams = {
        f"team{n}": {"share": share, "demand": demand}
        for n, (share, demand) in enumerate(zip(shares, demands, strict=True))
    }
    outcome = issue_without_history(forest(teams, gpus=gpus), supply_milli=gpus * 1000)
    return [outcome.issued_milli[team] / 1000 for team in teams], outcome.idle_milli / 1000


@pytest.mark.parametrize(
    ("shares", "demands", "issued", "idle"),
    [
        pytest.param((40, 30, 20, 10), (60, 60, 60, 60), [40, 30, 20, 10], 0, id="budgets"),
        pytest.param((0, 30, 20, 10), (60, 60, 60, 60), [0, 50, 33, 17], 0, id="one-set-to-zero"),
        pytest.param((25, 25, 25, 25), (60, 60, 60, 60), [25, 25, 25, 25], 0, id="all-equal"),
        pytest.param((40, 30, 20, 10), (10, 60, 60, 60), [10, 45, 30, 15], 0, id="unused-flows-by-share"),
        pytest.param((40, 30, 20, 10), (60, 60, 5, 5), [51, 39, 5, 5], 0, id="two-below-their-budget"),
        pytest.param((40, 30, 20, 10), (10, 10, 10, 10), [10, 10, 10, 10], 60, id="all-satisfied"),
        pytest.param((40, 30, 20, 10), (0, 0, 0, 0), [0, 0, 0, 0], 100, id="no-demand"),
        pytest.param((0, 0, 0, 0), (60, 60, 60, 60), [0, 0, 0, 0], 100, id="all-shares-zero"),
        pytest.param((0, 30, 20, 10), (60, 1, 1, 1), [0, 1, 1, 1], 97, id="idle-rather-than-to-share-zero"),
        pytest.param((1, 1), (0.5, 200), [0.5, 99.5], 0, id="fractional-demand-counts-in-milli-gpu"),
    ],
)
def test_four_teams_share_a_hundred_gpus(
    shares: tuple[int, ...], demands: tuple[float, ...], issued: list[float], idle: float
) -> None:
    assert lesson(shares, demands) == (issued, idle)


def test_no_supply_issues_nothing() -> None:
    assert lesson((40, 30, 20, 10), (60, 60, 60, 60), gpus=0) == ([0, 0, 0, 0], 0)


def test_unused_share_goes_to_siblings_before_it_goes_up() -> None:
    tree = forest(
        {
            "a": {"share": 1},
            "a/x": {"share": 1, "demand": 0},
            "a/y": {"share": 1, "demand": 60},
            "b": {"share": 1, "demand": 100},
        }
    )
    issued = issue_without_history(tree, supply_milli=100_000).issued_milli
    assert issued == {"a": 50_000, "a/x": 0, "a/y": 50_000, "b": 50_000}


def test_what_a_program_cannot_use_goes_up() -> None:
    tree = forest({"a/x": {"demand": 10}, "a/y": {"demand": 15}, "b": {"demand": 100}})
    issued = issue_without_history(tree, supply_milli=100_000).issued_milli
    assert issued == {"a": 25_000, "a/x": 10_000, "a/y": 15_000, "b": 75_000}


def test_a_whole_remainder_goes_to_the_larger_share_then_to_the_earlier_path() -> None:
    # 6 x 1/4, 1/4, 1/2: remainders .5 .5 0
    tied = forest(
        {"x": {"share": 1, "demand": 9}, "y": {"share": 1, "demand": 9}, "z": {"share": 2, "demand": 9}}
    )
    assert issue_without_history(tied, supply_milli=6000).issued_milli == {"x": 2000, "y": 1000, "z": 3000}
    # 3 x 1/6, 1/2, 1/3: remainders .5 .5 0, the second has the larger share
    larger = forest(
        {"x": {"share": 1, "demand": 9}, "y": {"share": 3, "demand": 9}, "z": {"share": 2, "demand": 9}}
    )
    assert issue_without_history(larger, supply_milli=3000).issued_milli == {"x": 0, "y": 2000, "z": 1000}


def test_a_team_that_fell_behind_is_issued_more_and_the_other_keeps_half_its_weight() -> None:
    # Both own half. a used the whole week's 100 GPUs, b nothing: lag = -/+ half a week = 3.5 horizons.
    tree = forest({"a": {"demand": 100, "used": 100 * WEEK_H}, "b": {"demand": 100}})
    assert lag_weights(tree, CONFIG) == {"a": Fraction(1, 4), "b": Fraction(4)}
    assert issue(tree, supply_milli=100_000, config=CONFIG).issued_milli == {"a": 6000, "b": 94_000}


def test_equal_history_changes_nothing() -> None:
    tree = forest(
        {"a": {"share": 3, "demand": 100, "used": 300}, "b": {"share": 1, "demand": 100, "used": 100}}
    )
    assert issue(tree, supply_milli=100_000, config=CONFIG).issued_milli == {"a": 75_000, "b": 25_000}


def test_a_share_cut_is_not_held_against_past_use() -> None:
    """Team a was entitled to 40 % while it used 40 %; its share is 10 % since this minute."""
    week = 100_000 * WEEK_S
    tree = forest(
        {
            "a": {"share": 10, "demand": 100, "used": 40 * WEEK_H, "entitled_gpu_ms": week * 4 // 10},
            "b": {"share": 90, "demand": 100, "used": 60 * WEEK_H, "entitled_gpu_ms": week * 6 // 10},
        }
    )
    assert issue(tree, supply_milli=100_000, config=CONFIG).issued_milli == {"a": 10_000, "b": 90_000}


@pytest.mark.parametrize("used_percent", [0, 50, 100, 150])
def test_who_used_alike_is_issued_by_its_share_however_much_the_cluster_was_used(used_percent: int) -> None:
    """As above; both used the same part of what they were entitled to, and a's share is another since this minute."""
    week_h = used_percent * WEEK_H // 100
    for share in (10, 90):
        tree = forest(
            {
                "a": {"share": share, "demand": 100, "used": 40 * week_h, "entitled_gpu_ms": 40_000 * WEEK_S},
                "b": {"share": 90, "demand": 100, "used": 60 * week_h, "entitled_gpu_ms": 60_000 * WEEK_S},
            }
        )
        issued = issue(tree, supply_milli=100_000, config=CONFIG).issued_milli
        assert issued["a"] == 100_000 * share // (90 + share)


def test_what_was_used_without_any_entitlement_is_weighed_by_the_shares() -> None:
    tree = forest(
        {
            "a": {"used": 100 * 24, "entitled_gpu_ms": 0, "demand": 100},
            "b": {"entitled_gpu_ms": 0, "demand": 100},
        }
    )
    assert lag_weights(tree, CONFIG) == {"a": Fraction(1, 4), "b": Fraction(1)}


def test_the_correction_inside_a_small_department_is_as_strong_as_at_the_top() -> None:
    """The case in which correction by cluster-wide use fades with depth (K9)."""
    top = forest({"a": {"used": 10 * WEEK_H}, "b": {}}, gpus=10)
    deep = forest(
        {
            "small": {"share": 10},
            "small/a": {"used": 10 * WEEK_H},
            "small/b": {},
            "rest": {"share": 90, "used": 3 * WEEK_H},
        },
        gpus=100,
    )
    at_top, at_depth = lag_weights(top, CONFIG), lag_weights(deep, CONFIG)
    assert (at_depth["small/a"], at_depth["small/b"]) == (at_top["a"], at_top["b"]) == (Fraction(1, 4), 4)


def test_an_over_served_department_still_corrects_between_its_children() -> None:
    tree = forest(
        {"d/a": {"used": 120 * WEEK_H, "demand": 9}, "d/b": {"used": 80 * WEEK_H, "demand": 9}, "e": {}},
        gpus=100,
    )
    weights = lag_weights(tree, CONFIG)
    assert weights["d/b"] > weights["d/a"]


def test_without_healthy_capacity_the_weights_are_the_shares() -> None:
    tree = forest({"a": {"share": 3, "used": 9}, "b": {"share": 1}, "c": {"share": 0}}, gpus=0)
    assert lag_weights(tree, CONFIG) == {"a": Fraction(3, 4), "b": Fraction(1, 4), "c": 0}


def test_a_negative_supply_is_refused() -> None:
    with pytest.raises(Refused, match="supply of -1"):
        issue_without_history(forest({"a": {}}), supply_milli=-1)
