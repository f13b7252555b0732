"""A day that is told by hand, and what is measured of it."""

import tracemalloc
from collections.abc import Iterator

import pytest
from tests.unit.simulator.stories import (
    DAY_S,
    GPU_HOUR,
    HOUR_S,
    START_S,
    host,
    in_order,
    left,
    scenario,
    started,
    submitted,
)

from gpuledger.kernel.errors import Corrupt
from gpuledger.simulator.facts import Cancelled, Departure, Fact, HostCondition, UserAsked
from gpuledger.simulator.measures import measure

H = HOUR_S


def test_a_wait_ends_when_gpus_are_handed_over_and_is_the_first_one() -> None:
    """The second wait of a job, after its GPUs were taken, stands apart."""
    found = measure(
        in_order(
            submitted("j", 0, gpus=2),
            started("j", 40, {"h1": 2}),
            left("j", 2 * H, why=Departure.PREEMPTED, requeued=True, lost_s=600),
            started("j", 2 * H + 300, {"h2": 2}, run=2),
            left("j", 3 * H, run=2),
        ),
        scenario(),
    )
    assert found.waits.by_group()["medium"].ended == {40: 1}
    assert found.waits.again_by_group()["medium"].ended == {300: 1}
    assert (found.jobs, found.preemptions, found.lost) == (
        1,
        1,
        {Departure.PREEMPTED: 2 * 600_000, Departure.DONE: 0},
    )


def test_who_never_starts_is_not_forgotten() -> None:
    facts = in_order(
        submitted("waits", 0, kind="debug"), submitted("goes", 0, kind="debug"),
        Cancelled(at_s=START_S + 50, job="goes"),
    )  # fmt: skip
    found = measure(facts, scenario())
    debug = found.waits.by_group()["debug"]
    assert debug.unended == {DAY_S: 1, 50: 1}
    assert debug.quantile(500) is None
    assert (found.jobs, found.cancelled) == (2, 1)


def test_the_warm_up_is_dropped() -> None:
    """What runs on from it holds its GPUs; whoever started in it is in no wait."""
    facts = in_order(
        submitted("old", 0, gpus=4), started("old", DAY_S - H, {"h1": 4}), left("old", DAY_S + H, loading_s=2 * H),
        submitted("new", DAY_S), started("new", DAY_S + 5, {"h1": 1}),
    )  # fmt: skip
    found = measure(facts, scenario(warm_up_days=1))
    assert found.jobs == 1
    assert found.waits.by_group()["all"].ended == {5: 1}
    assert found.partition.installed == 16_000 * DAY_S
    assert found.partition.allocated == 4 * GPU_HOUR + 1000 * (DAY_S - 5)
    assert found.accounts["org/a"].loading == 4 * GPU_HOUR  # the hour of it that lies in the window
    assert found.partition.residual == 0


def test_who_waited_when_the_window_began_is_not_forgotten() -> None:
    facts = in_order(
        submitted("stuck", 0, gpus=16), submitted("late", DAY_S - 60),
        submitted("gone", 0), Cancelled(at_s=START_S + DAY_S - 1, job="gone"),
        started("late", DAY_S + 40, {"h1": 1}), submitted("new", DAY_S), started("new", DAY_S + 5, {"h1": 1}),
    )  # fmt: skip
    found = measure(facts, scenario(warm_up_days=1))
    waits = found.waits.by_group()
    assert (found.jobs, waits["all"].count) == (1, 3)
    assert waits["large"].late == {(DAY_S, 2 * DAY_S, False): 1}
    assert waits["large"].quantile(500) is None
    assert waits["medium"].ended == {5: 1, 100: 1}
    assert waits["medium"].late == {(60, 100, True): 1}


def test_a_session_that_nobody_closes_costs_its_account() -> None:
    facts = in_order(
        submitted("s", 0, account="org/b", gpus=2, kind="interactive"), started("s", 0, {"h1": 2}),
        left("s", 5 * H, idle_s=3 * H),
    )  # fmt: skip
    found = measure(facts, scenario())
    assert found.accounts["org/b"].idle == 6 * GPU_HOUR
    assert found.accounts["org/b"].allocated == 10 * GPU_HOUR


@pytest.mark.parametrize(
    ("gpus", "model", "minimum_runtime_s", "asked"),
    [
        (16, None, H, True),
        (17, None, H, False),
        (2, "A100", H, False),
        (2, "H100", H, True),
        (2, None, 0, False),
    ],
)
def test_what_can_never_run_here_or_is_not_funded_is_no_demand(
    gpus: int, model: str | None, minimum_runtime_s: int, *, asked: bool
) -> None:
    facts = [submitted("j", 0, gpus=gpus, gpu_model=model, minimum_runtime_s=minimum_runtime_s)]
    found = measure(facts, scenario())
    demand = sum(d for _, d, _ in found.hours["org/a"].rows())
    assert demand == (gpus * 24 * GPU_HOUR if asked else 0)
    assert sum(found.series.waiting) == gpus * 24 * GPU_HOUR  # it waits all the same


def test_entitlement_follows_healthy_capacity() -> None:
    """3 : 1 of 16 GPUs for 12 hours, of 8 after a host failed."""
    found = measure([host("h1", 12 * H, HostCondition.DOWN)], scenario())
    assert [sum(e for e, _, _ in found.hours[path].rows()) // GPU_HOUR for path in ("org/a", "org/b")] == [
        216,
        72,
    ]
    assert found.partition.unhealthy == 12 * 8 * GPU_HOUR


def test_unallocated_time_is_not_delivered() -> None:
    facts = in_order(submitted("j", 0, gpus=4), started("j", 0, {"h1": 4}, unallocated=True))
    found = measure(facts, scenario())
    assert sum(given for _, _, given in found.hours["org/a"].rows()) == 0
    assert found.accounts["org/a"].unallocated == found.partition.unallocated == 96 * GPU_HOUR


def test_work_of_an_inner_account_is_counted_under_it() -> None:
    facts = in_order(submitted("j", 0, account="org/~own"), started("j", 0, {"h1": 1}))
    assert list(measure(facts, scenario()).accounts) == ["org"]


def test_a_drain_that_needed_a_human() -> None:
    facts = in_order(
        submitted("j", 0), started("j", 0, {"h1": 1}),
        host("h1", H, HostCondition.DRAINING, planned=True),
        UserAsked(at_s=START_S + H, host="h1", job="j"), UserAsked(at_s=START_S + 2 * H, host="h1", job="j"),
        left("j", 3 * H), host("h1", 3 * H, HostCondition.DOWN, planned=True),
        host("h2", 4 * H, HostCondition.DRAINING),
    )  # fmt: skip
    found = measure(facts, scenario()).drains
    assert (found.begun, found.asked) == (2, 1)
    assert found.lengths.ended == {2 * H: 1, 0: 1}


@pytest.mark.parametrize(
    ("facts", "told"),
    [
        ([started("j", 0, {"h1": 1})], "did not wait"),
        ([submitted("j", 0), left("j", 1)], "did not run"),
        ([submitted("j", 0), submitted("j", 1)], "twice"),
        ([submitted("j", 9), submitted("k", 1)], "came after"),
        ([submitted("j", 0), started("j", 0, {"h1": 1}), Cancelled(at_s=START_S, job="j")], "given up"),
    ],
)
def test_facts_that_cannot_be_are_an_error(facts: list[Fact], told: str) -> None:
    with pytest.raises(Corrupt, match=told):
        measure(facts, scenario())


def test_what_happens_at_the_end_is_not_looked_at() -> None:
    endless = iter([submitted("j", DAY_S), submitted("k", 0)])
    assert measure(endless, scenario()).jobs == 0
    assert next(endless).at_s == START_S


def test_memory_does_not_grow_with_the_number_of_jobs() -> None:
    def facts(jobs: int) -> Iterator[Fact]:
        """One job after the other; waits repeat each minute."""
        every_s = DAY_S // jobs
        for n in range(jobs):
            at_s = n * every_s
            yield submitted(f"j{n}", at_s)
            yield started(f"j{n}", at_s + n % 4, {"h1": 1})
            yield left(f"j{n}", at_s + every_s - 1)

    def peak(jobs: int) -> int:
        tracemalloc.start()
        try:
            measure(facts(jobs), scenario())
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    peak(100)  # what is imported and remembered once
    assert peak(8_000) < 1.2 * peak(500)
