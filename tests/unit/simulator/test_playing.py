"""What can be set of a scenario, and a simulation from its names."""

import pytest
from tests.unit.simulator.stories import scenario

from gpuledger.kernel.errors import Refused
from gpuledger.simulator.playing import set_all


def test_knobs_worlds_and_the_cycle_can_be_set() -> None:
    found = set_all(
        scenario(),
        {"policy.window_s": 86_400, "policy.mode": "half-life", "worlds.gpuledger.gap_s": 30, "cycle_s": 120},
    )
    assert (found.policy.window_s, found.policy.mode, found.cycle_s) == (86_400, "half-life", 120)
    assert found.worlds == {"gpuledger": {"gap_s": 30}}
    assert set_all(found, {"worlds.gpuledger.gap_s": 5}).worlds == {"gpuledger": {"gap_s": 5}}
    assert found.worlds == {"gpuledger": {"gap_s": 30}}


def test_knobs_that_bound_each_other_are_set_together() -> None:
    found = set_all(scenario(), {"policy.notice_s": 36_000, "policy.protection_cap_s": 40_000})
    assert found.policy.notice_s == 36_000


@pytest.mark.parametrize(
    ("key", "value", "told"),
    [
        ("policy.windows_s", 1, "windows_s is not known"),
        ("policy.window_s", 0, "window_s is 0"),
        ("cycle_s", 0, "whole number of at least 1"),
        ("cycle_s", "x", "whole number of at least 1"),
        ("worlds.old.answer_s", -1, "whole number of at least 0"),
        ("worlds.old.answers_s", 1, "the world old has no setting 'answers_s'"),
        ("worlds.fifo.backfill_s", 1, "the world fifo has no setting 'backfill_s'"),
        ("worlds.nowhere.x", 1, "nothing of that name"),
        ("worlds.gpuledger", 1, "nothing of that name"),
        ("hosts", 1, "nothing of that name"),
    ],
)
def test_what_cannot_be_set_is_refused(key: str, value: int | str, told: str) -> None:
    with pytest.raises(Refused, match=told):
        set_all(scenario(), {key: value})
