"""What happened, as the facts that a simulation would have told."""

from dataclasses import replace

from tests.unit.simulator.backtest.test_jobs import END_S, KNOWN_S, LIFE, START_S, run

from gpuledger.simulator.backtest.jobs import jobs_of
from gpuledger.simulator.backtest.lives import ANYWHERE, Life, LivedRun, Piece
from gpuledger.simulator.backtest.past import past
from gpuledger.simulator.facts import (
    Cancelled,
    Departure,
    Fact,
    HostChanged,
    HostCondition,
    Left,
    Started,
    Submitted,
)
from gpuledger.simulator.scenario import HostSpec

HOSTS = (
    HostSpec(host="h", gpus_milli=8_000, gpu_model="H100"),
    HostSpec(host="i", gpus_milli=8_000, gpu_model="H100"),
)


def told(*lives: Life, changes: tuple[HostChanged, ...] = ()) -> tuple[list[Fact], tuple[str, ...]]:
    jobs, _ = jobs_of(lives, start_s=START_S, end_s=END_S, known_s=KNOWN_S)
    return past(lives, {job.job: job for job in jobs}, HOSTS, changes, start_s=START_S, end_s=END_S)


def test_a_run_that_was_taken_and_another_that_was_done() -> None:
    one = replace(
        LIFE,
        runs=[
            run(2_500, 5_000, Departure.PREEMPTED, ready_s=2_600, saved_s=[3_600]),
            run(6_000, 9_000, ready_s=6_100),
        ],
        waits=[(2_000, 2_500), (5_000, 6_000)],
    )
    facts, notes = told(one)
    assert [type(fact) for fact in facts] == [Submitted, Started, Left, Started, Left]
    first, last = (fact for fact in facts if isinstance(fact, Left))
    assert (first.why, first.requeued, first.loading_s, first.kept_s, first.lost_s) == (
        Departure.PREEMPTED, True, 100, 1_000, 1_400,
    )  # fmt: skip
    assert (last.run, last.requeued, last.loading_s, last.kept_s, last.lost_s) == (2, False, 100, 2_900, 0)
    assert notes == ()


def test_who_gave_up_is_told() -> None:
    facts, _ = told(replace(LIFE, waits=[(2_000, 7_000)]))
    assert facts[1:] == [Cancelled(at_s=7_000, job="w")]


def test_what_began_before_begins_with_it_and_what_ends_later_does_not_end() -> None:
    before = replace(LIFE, workload="b", eligible_s=100, runs=[run(200, 4_000)])
    after = replace(LIFE, workload="a", runs=[run(5_000, END_S + 5)])
    facts, _ = told(before, after)
    assert [(type(fact), fact.at_s) for fact in facts] == [
        (Submitted, START_S), (Started, START_S), (Submitted, 2_000), (Left, 4_000), (Started, 5_000),
    ]  # fmt: skip


def test_a_change_of_class_ends_a_stretch_and_begins_another() -> None:
    pieces = [
        Piece(2_000, 3_000, "allocated", {"h": 1_000}),
        Piece(3_000, 4_000, "unallocated", {"h": 1_000}),
    ]
    facts, _ = told(replace(LIFE, runs=[LivedRun(pieces, Departure.DONE)]))
    starts = [(fact.at_s, fact.klass, fact.run) for fact in facts if isinstance(fact, Started)]
    assert starts == [(2_000, "allocated", 1), (3_000, "unallocated", 2)]
    assert [fact.requeued for fact in facts if isinstance(fact, Left)] == [True, False]


def test_of_one_instant_what_is_over_comes_first() -> None:
    gone = replace(LIFE, workload="g", runs=[run(2_000, 3_000)])
    comes = replace(LIFE, workload="c", eligible_s=3_000, runs=[run(3_000, 4_000)])
    broken = HostChanged(at_s=3_000, host="i", condition=HostCondition.DOWN)
    facts, _ = told(gone, comes, changes=(broken,))
    assert [type(fact) for fact in facts if fact.at_s == 3_000] == [Left, HostChanged, Submitted, Started]


def test_two_that_were_told_to_hold_the_same_gpus_are_both_counted() -> None:
    whole = Piece(2_000, 3_000, "allocated", {"h": 8_000})
    lives = [
        replace(LIFE, workload=name, gpus_milli=8_000, runs=[LivedRun([whole], Departure.DONE)])
        for name in "ab"
    ]
    facts, notes = told(*lives)
    assert [dict(fact.placement) for fact in facts if isinstance(fact, Started)] == [
        {"h": 8_000},
        {"i": 8_000},
    ]
    assert notes == ("the past: 1 runs held GPUs that others were told to hold; counted on others",)


def test_a_run_whose_hosts_nobody_told_is_counted_where_there_is_room() -> None:
    lives = [
        replace(
            LIFE,
            workload=name,
            gpus_milli=6_000,
            runs=[LivedRun([Piece(2_000, 3_000, "allocated", {ANYWHERE: 6_000})], Departure.DONE)],
        )
        for name in "ab"
    ]
    facts, notes = told(*lives)
    assert [dict(fact.placement) for fact in facts if isinstance(fact, Started)] == [
        {"h": 6_000},
        {"h": 2_000, "i": 4_000},
    ]
    assert notes == ("the past: the hosts of 2 runs are not told; they are counted where there is room",)


def test_what_has_room_nowhere_is_said() -> None:
    whole = Piece(2_000, 3_000, "allocated", {"h": 8_000, "i": 8_000})
    lives = [
        replace(LIFE, workload=name, gpus_milli=16_000, runs=[LivedRun([whole], Departure.DONE)])
        for name in "ab"
    ]
    facts, notes = told(*lives)
    assert [sum(fact.placement.values()) for fact in facts if isinstance(fact, Started)] == [16_000, 0]
    assert notes[1] == f"the past: {16_000 * 1_000} gpu_ms of runs had room nowhere and are not counted"
