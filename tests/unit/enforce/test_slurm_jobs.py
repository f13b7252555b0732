"""Slurm's jobs and nodes, out of a cycle."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.enforce.slurms import NAMED, job, seen
from tests.unit.enforce.told import CYCLE, facts, leaves, record, run, waits

from gpuledger.enforce.config import Order
from gpuledger.enforce.slurm_jobs import TOP, departures, host_states, job_of, ordered, priorities
from gpuledger.enforce.slurm_seen import Job, Node

BASE = 1_000_000


def wanted(cycle: dict[str, object], *jobs: Job, many: int = 200, age_s: int = 0) -> dict[str, str]:
    told = ordered(facts(cycle, age_s=age_s), seen(jobs=jobs), NAMED, Order(jobs=many, base=BASE))
    return {target.object: target.wanted for target in told.targets}


def test_jobs_get_priorities_in_the_order_of_the_cycle() -> None:
    cycle = record(waits("7-1000", 1), waits("5-1000", 2), waits("6-1000", 3))
    assert wanted(cycle, job("5", 30), job("6", 20), job("7", 10)) == {
        "job 7": "1003000", "job 5": "1002000", "job 6": "1001000",
    }  # fmt: skip
    told = ordered(facts(cycle), seen(jobs=[job("7", 10)]), NAMED, Order(base=BASE))
    assert told.targets[0].action.shown == "scontrol update JobId=7 Priority=1001000"


def test_a_job_that_comes_between_two_moves_no_other() -> None:
    cycle = record(waits("1-9", 1), waits("2-9", 2), waits("3-9", 3))
    assert wanted(cycle, job("1", 1_005_000), job("2", 8), job("3", 1_001_000)) == {
        "job 1": "1005000", "job 2": "1002000", "job 3": "1001000",
    }  # fmt: skip


def test_jobs_that_were_set_together_make_room_for_others() -> None:
    first = priorities([1, 2, 3], BASE)
    assert first == [1_003_000, 1_002_000, 1_001_000]
    assert priorities([1_003_000, 7, 1_002_000, 8, 9, 1_001_000, 5], BASE) == [
        1_003_000, 1_002_500, 1_002_000, 1_001_666, 1_001_333, 1_001_000, 1_000_500,
    ]  # fmt: skip
    assert priorities([5, *first], BASE) == [1_004_000, *first]


def test_an_array_stands_where_its_first_task_stands_and_held_jobs_and_those_of_others_are_left_alone() -> (
    None
):
    cycle = record(waits("9_3-1", 1), waits("4-1", 2), waits("9_4-1", 3), waits("5-1", 4), waits("6-1", 5))
    jobs = [Job("9_[3-4]", "9", "PENDING", 3, "a", 1), job("4", 2), job("5", 0), job("6", 9, of="else")]
    assert wanted(cycle, *jobs) == {"job 9": "1002000", "job 4": "1001000"}


def test_a_job_that_left_the_head_gets_back_what_slurm_computes() -> None:
    cycle = record(waits("1-9", 1), waits("2-9", 2))
    released = wanted(cycle, job("1", 7), job("2", 1_001_000), job("3", 1_009_000), many=1)
    assert released == {"job 1": "1001000", "job 2": "what Slurm computes", "job 3": "what Slurm computes"}
    told = ordered(facts(record()), seen(jobs=[job("3", BASE + 1)]), NAMED, Order(base=BASE))
    assert told.targets[0].action.shown == "scontrol release 3"


def test_an_old_cycle_orders_nothing() -> None:
    told = ordered(facts(record(waits("1-9", 1)), age_s=601), seen(jobs=[job("1", 7)]), NAMED, Order())
    assert told.targets == ()
    assert "601 s old" in told.notes[0]


@given(st.lists(st.integers(0, TOP + 10_000), max_size=30), st.integers(1, 2 * 10**9))
def test_priorities_fall_lie_above_the_base_and_stay_once_they_are_set(now: list[int], base: int) -> None:
    found = priorities(now, base)

    assert all(first > second for first, second in pairwise(found))
    assert all(base < priority <= TOP for priority in found)
    assert priorities(found, base) == found


@given(st.lists(st.integers(1, 100).map(lambda n: BASE + 1000 * n), max_size=8))
def test_no_fewer_jobs_could_be_touched_among_those_behind_the_last_in_disorder(now: list[int]) -> None:
    found = priorities(now, BASE)
    for place in range(len(now)):
        behind = found[place + 1] if place + 1 < len(found) else BASE
        assert found[place] == now[place] or now[place] <= behind


def test_a_run_past_its_minimum_runtime_is_requeued_and_no_other() -> None:
    cycle = record(
        leaves("1-50", "50"),
        leaves("2-50", "50"),
        leaves("3-50", "50"),
        leaves("4-50", "60"),
        leaves("5_1-50", "50"),
    )
    runs = [
        run("1-50", "50", protected_for_s=0),
        run("2-50", "50", protected_for_s=1),
        run("3-50", "50", protected_for_s=0),
        run("4-50", "60", protected_for_s=0),
        run("5_1-50", "50", protected_for_s=0),
    ]
    jobs = [
        job("1", 1, state="RUNNING", submitted_s=50),
        job("2", 1, state="RUNNING", submitted_s=50),
        job("3", 1, state="RUNNING", submitted_s=50, of="else"),
        job("4", 1, state="RUNNING", submitted_s=70),  # another run of it by now
        job("5_1", 1, state="RUNNING", submitted_s=50),
    ]
    told = departures(facts(cycle, *runs), seen(jobs=jobs), NAMED)

    assert [(t.object, t.action.shown, t.destructive) for t in told.targets] == [
        ("job 1", "scontrol requeue 1", True), ("job 5_1", "scontrol requeue 5_1", True),
    ]  # fmt: skip
    assert told.targets[0].why == f"by {CYCLE}: Leaves for x."
    assert told.notes == (
        "job 2 stays: it is within its minimum runtime for 1 s more",
        "job 3: no such run of a managed account runs any more",
        "job 4: no such run of a managed account runs any more",
    )


@pytest.mark.parametrize(
    ("state", "reason", "draining", "wanted_state"),
    [
        ("idle", "none", True, "drain"),
        ("draining", "gpuledger: to be repaired", True, "drain"),
        ("drained", "gpuledger: to be repaired", False, "in use"),
        ("drained", "somebody else", False, None),
        ("drained", "gpuledger: to be repaired", None, None),
        ("idle", "none", False, None),
    ],
)
def test_hosts_are_drained_and_only_those_drained_here_are_resumed(
    state: str, reason: str, draining: object, wanted_state: str | None
) -> None:
    told = facts(record(), draining={} if draining is None else {"n": bool(draining)})
    targets = list(host_states(told, seen(nodes=[Node("n", state, reason)])))
    assert [target.wanted for target in targets] == ([] if wanted_state is None else [wanted_state])


def test_a_drain_says_that_it_was_ordered_here() -> None:
    (target,) = host_states(facts(record(), draining={"n": True}), seen(nodes=[Node("n", "mixed", "none")]))
    assert target.action.shown == "scontrol update NodeName=n State=DRAIN 'Reason=gpuledger: to be repaired'"


def test_the_number_of_a_job_is_the_part_before_the_submit_second() -> None:
    assert [job_of("8841_7-1796037849"), job_of("12+1-5")] == ["8841_7", "12+1"]
