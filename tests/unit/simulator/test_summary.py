"""Figures of a report, from days that are told by hand."""

from tests.unit.simulator.stories import (
    DAY_S,
    HOUR_S,
    START_S,
    host,
    in_order,
    left,
    scenario,
    started,
    submitted,
)

from gpuledger.simulator.document import Simulation
from gpuledger.simulator.facts import Departure, Fact, HostCondition, Reserved
from gpuledger.simulator.measures import measure
from gpuledger.simulator.summary import summarise

H = HOUR_S


def report(*facts: Fact, days: int = 1) -> Simulation:
    told = scenario(days=days)
    return summarise(measure(in_order(*facts), told), told, world="fifo", seed=3, wall_s=1.5)


def test_occupancy_and_what_is_missing_sum_to_the_healthy_capacity() -> None:
    """A host of two is repaired all day: of the other's 8 GPUs 4 work, 1 of them unallocated, and 2 are kept."""
    found = report(
        host("h2", 0, HostCondition.DRAINING, planned=True), host("h2", 0, HostCondition.DOWN, planned=True),
        submitted("a", 0, gpus=3), started("a", 0, {"h1": 3}),
        submitted("b", 0), started("b", 0, {"h1": 1}, unallocated=True),
        Reserved(at_s=START_S, placement={"h1": 2000}),
    )  # fmt: skip
    assert (found.occupancy, found.occupancy_with_overhead, found.availability) == (0.5, 0.5, 0.5)
    assert (found.shortfall.reserved, found.shortfall.free, found.shortfall.overhead) == (0.25, 0.25, 0)
    assert found.unallocated_share == 0.25
    assert found.partition_gpu_ms["maintenance"] == 8000 * DAY_S
    assert found.residual_gpu_ms == 0
    assert found.human_repairs == 0


def test_delivered_over_owed_by_account() -> None:
    """a gets half of the 6 GPUs that it waits for all day, b all of its 4."""
    found = report(
        submitted("a1", 0, gpus=3), started("a1", 0, {"h1": 3}), submitted("a2", 0, gpus=3),
        submitted("b", 0, account="org/b", gpus=4), started("b", 0, {"h2": 4}),
    ).delivered_over_owed  # fmt: skip
    assert found.accounts == {"org/a": 0.5, "org/b": 1.0}
    assert (found.window, found.raw, found.hourly) == (0.7, 0.7, 0.7)
    assert (found.worst, found.worst_account, found.at_least_95, found.of) == (0.5, "org/a", 1, 2)
    assert (found.worst_7_days, found.worst_7_days_accounts["org/a"]) == (0.7, 0.5)
    assert found.placeable.window == found.window
    assert found.not_placeable_gpu_hours == 0


def test_what_can_never_be_placed_is_shown_apart() -> None:
    """400 GPU-hours of protection do not fit into the 288 of the day."""
    found = report(
        submitted("big", 0, gpus=10, minimum_runtime_s=40 * H),
        submitted("small", 0), started("small", 0, {"h1": 1}),
    ).delivered_over_owed  # fmt: skip
    assert found.window == round(1 / 11, 4)
    assert found.placeable.window == 1
    assert found.not_placeable_gpu_hours == 240


def test_no_data_is_none() -> None:
    found = report()
    assert found.delivered_over_owed.window is None
    assert found.delivered_over_owed.worst is None
    assert found.unallocated_share is None
    assert found.wait_s["all"].p50 is None
    assert found.occupancy == 0


def test_the_rows_of_an_account() -> None:
    found = report(
        submitted("s", 0, gpus=2), started("s", H, {"h1": 2}),
        left("s", 5 * H, why=Departure.PREEMPTED, idle_s=H, loading_s=600, lost_s=1800),
    )  # fmt: skip
    row = found.accounts["org/a"]
    assert (row.allocated, row.idle, row.loading, row.lost, row.preemptions) == (8, 2, 0.333, 1, 1)
    assert (row.entitled, row.demand, row.owed, row.unmet, row.window) == (288, 10, 10, 0, 0.8)
    assert row.wait_s.p50 == H
    assert found.gpu_hours == {"org/a": 8}
    assert found.lost_gpu_hours_by == {"preempted": 1}
    assert found.accounts["org/b"].window is None


def test_over_time_in_steps_of_six_hours() -> None:
    found = report(submitted("a", 0, gpus=8), started("a", 6 * H, {"h1": 8}), left("a", 12 * H), days=2)
    assert found.over_time.step_s == 6 * H
    assert found.over_time.occupancy == [0, 0.5, 0, 0, 0, 0, 0, 0]
    assert found.over_time.demand_over_supply[:3] == [0.5, 0.5, 0]
    assert found.over_time.largest_gang[:3] == [16, 8, 16]
    assert (found.largest_startable_gang.least, found.largest_startable_gang.mean) == (8, 15)
