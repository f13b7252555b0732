"""Combinations of settings, and which of them no other beats."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.simulator.stories import scenario

from gpuledger.kernel.errors import Refused
from gpuledger.simulator.document import Simulation
from gpuledger.simulator.measures import measure
from gpuledger.simulator.summary import summarise
from gpuledger.simulator.sweep import GOALS, USUAL, Goal, goals_named, grid, judge, one_of_each

REPORT = summarise(measure([], scenario()), scenario(), world="fifo", seed=1, wall_s=0)
MORE = Goal(lambda report: report.occupancy, more_is_better=True, unit="part")
LESS = Goal(lambda report: report.wall_s, more_is_better=False, unit="s")


def report(occupancy: float | None, wall_s: float = 0) -> Simulation:
    return msgspec.structs.replace(REPORT, occupancy=occupancy, wall_s=wall_s)


def test_every_combination_the_last_key_turning_fastest() -> None:
    assert grid(["policy.window_s=1,2", "policy.mode=window,half-life"]) == [
        {"policy.window_s": 1, "policy.mode": "window"}, {"policy.window_s": 1, "policy.mode": "half-life"},
        {"policy.window_s": 2, "policy.mode": "window"}, {"policy.window_s": 2, "policy.mode": "half-life"},
    ]  # fmt: skip
    assert grid([]) == [{}]


@pytest.mark.parametrize("option", ["window", "=1", "a=", "a=1,,2"])
def test_what_is_no_setting_is_refused(option: str) -> None:
    with pytest.raises(Refused, match="KEY=VALUE"):
        grid([option])


def test_a_key_stands_once_and_combinations_have_a_bound() -> None:
    with pytest.raises(Refused, match="a stands twice"):
        grid(["a=1", "a=2"])
    many = ",".join(str(n) for n in range(200))
    with pytest.raises(Refused, match="40000 combinations"):
        grid([f"a={many}", f"b={many}"])


def test_goals_are_known_by_name() -> None:
    assert tuple(goals_named([])) == USUAL
    assert list(goals_named(["lost", "window"])) == ["lost", "window"]
    with pytest.raises(Refused) as refused:
        goals_named(["windows"])
    assert "window" in refused.value.hint


def test_every_goal_reads_what_it_is_called() -> None:
    put = msgspec.structs.replace
    waits = {
        group: put(REPORT.wait_s[group], p50=n, p90=n + 1)
        for group, n in (("debug", 10), ("all", 20), ("largest", 30))
    }
    told = put(
        REPORT,
        delivered_over_owed=put(REPORT.delivered_over_owed, window=0.1, worst=0.2, worst_7_days=0.3),
        occupancy=0.4,
        wait_s=REPORT.wait_s | waits,
        lost_gpu_hours=5.5,
        preemptions=6,
        human_repairs=7,
    )
    assert {name: goal.of(told) for name, goal in GOALS.items()} == {
        "window": 0.1, "worst": 0.2, "worst_7_days": 0.3, "occupancy": 0.4, "debug_p90": 11, "all_p50": 20,
        "all_p90": 21, "largest_p90": 31, "lost": 5.5, "preemptions": 6, "human_repairs": 7,
    }  # fmt: skip


def test_the_best_are_those_that_no_other_beats() -> None:
    points = [({"n": 0}, [report(0.9, 5)]), ({"n": 1}, [report(0.8, 3)]), ({"n": 2}, [report(0.8, 4)]),
              ({"n": 3}, [report(None, 2)]), ({"n": 4}, [report(0.9, 5)])]  # fmt: skip
    found = judge(points, {"more": MORE, "less": LESS})
    assert [each.best for each in found] == [True, True, False, True, True]


def test_the_median_of_the_seeds_is_one_of_their_values_and_the_worse_of_two() -> None:
    (found,) = judge([({}, [report(0.9, 1), report(0.5, 9)])], {"more": MORE, "less": LESS})
    assert found.goals == {"more": 0.5, "less": 9}
    assert (found.least, found.most) == ({"more": 0.5, "less": 1}, {"more": 0.9, "less": 9})
    (found,) = judge([({}, [report(None), report(0.7), report(0.9)])], {"more": MORE})
    assert (found.goals["more"], found.least["more"]) == (0.7, 0.7)


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=8))
def test_something_is_best_and_whatever_is_not_is_beaten_by_it(values: list[tuple[int, int]]) -> None:
    found = judge(
        [({"n": n}, [report(a, b)]) for n, (a, b) in enumerate(values)], {"more": MORE, "less": LESS}
    )
    best = [value for value, each in zip(values, found, strict=True) if each.best]
    assert best
    for value, each in zip(values, found, strict=True):
        assert each.best or any(a >= value[0] and b <= value[1] and (a, b) != value for a, b in best)


def test_one_value_of_each_key() -> None:
    assert one_of_each(["a=1", "b=x"]) == {"a": 1, "b": "x"}
    assert one_of_each([]) == {}
    with pytest.raises(Refused, match="one value each"):
        one_of_each(["a=1,2"])
