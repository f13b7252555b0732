"""Lives of workloads as jobs that can be run again."""

from dataclasses import replace

from gpuledger.simulator.backtest.jobs import USUAL_S, jobs_of
from gpuledger.simulator.backtest.lives import Life, LivedRun, Piece
from gpuledger.simulator.facts import Departure
from gpuledger.simulator.jobs import Job

START_S, END_S, KNOWN_S = 1_000, 100_000, 120_000


def run(from_s: int, to_s: int | None, why: Departure | None = Departure.DONE, **more: object) -> LivedRun:
    pieces = [Piece(from_s, to_s, "allocated", {"h": 1_000})]
    return LivedRun(pieces, None if to_s is None else why, **more)  # type: ignore[arg-type]


LIFE = Life(
    workload="w",
    account="org/a",
    user="u",
    kind="train",
    gpus_milli=1_000,
    gpu_model=None,
    minimum_runtime_s=900,
    time_limit_s=None,
    priority=0,
    resumable=True,
    labels=None,
    eligible_s=2_000,
    is_submitted=True,
    runs=(),
    waits=[],
)


def of(*runs: LivedRun, **more: object) -> Job:
    (job,), _ = jobs_of(
        [replace(LIFE, runs=runs, **more)],  # type: ignore[arg-type]
        start_s=START_S, end_s=END_S, known_s=KNOWN_S,
    )  # fmt: skip
    return job


def notes(*lives: Life) -> tuple[str, ...]:
    return jobs_of(lives, start_s=START_S, end_s=END_S, known_s=KNOWN_S)[1]


def test_one_run_is_all_of_its_work() -> None:
    job = of(run(2_500, 6_000), waits=[(2_000, 2_500)])
    assert (job.submitted_s, job.work_s, job.startup_s, job.checkpoint_s) == (2_000, 3_500, 0, None)
    assert (job.patience_s, job.resumable) == (None, True)


def test_what_it_loads_is_no_work() -> None:
    job = of(run(2_500, 6_000, ready_s=2_600, saved_s=[3_600, 4_600, 5_600]))
    assert (job.startup_s, job.work_s, job.checkpoint_s) == (100, 3_400, 1_000)


def test_what_an_interrupt_left_of_a_run_is_what_it_had_saved() -> None:
    job = of(
        run(2_000, 5_000, Departure.PREEMPTED, ready_s=2_100, saved_s=[3_100, 4_100]),
        run(6_000, 9_000, ready_s=6_100),
        waits=[(5_000, 6_000)],
    )
    assert job.work_s == 2_000 + 2_900
    assert job.checkpoint_s == 1_000


def test_work_that_tells_of_no_checkpoint_begins_anew() -> None:
    job = of(run(2_000, 5_000, Departure.PREEMPTED), run(6_000, 9_000), waits=[(5_000, 6_000)])
    assert (job.work_s, job.checkpoint_s) == (3_000, None)


def test_a_run_that_was_cut_takes_longer_than_it_was_seen_to() -> None:
    open_, taken = run(2_000, None), run(2_000, 5_000, Departure.PREEMPTED)
    failed = run(2_000, 5_000, Departure.HOST_FAILED)
    assert of(open_).work_s == KNOWN_S - 2_000 + 1
    assert (of(taken).work_s, of(taken).resumable) == (3_001, False)  # it was not queued again
    assert (of(failed).work_s, of(failed).resumable) == (3_001, False)
    waiting = of(taken, waits=[(5_000, None)])
    assert (waiting.work_s, waiting.resumable) == (3_001, True)
    assert notes(replace(LIFE, runs=[open_])) == (
        "cut: 1 jobs were not seen to finish their work; each takes longer than was seen, by a second",
    )


def test_it_takes_longer_than_any_of_its_runs() -> None:
    job = of(
        run(2_000, 9_000, Departure.PREEMPTED),
        run(10_000, 10_500, Departure.PREEMPTED),
        waits=[(9_000, 10_000), (10_500, None)],
    )
    assert job.work_s == 7_001


def test_a_run_without_an_end_goes_on_to_its_limit_at_most() -> None:
    job = of(run(2_000, None), time_limit_s=3_000)
    assert (job.work_s, job.time_limit_s) == (3_001, 3_000)


def test_a_run_that_met_its_limit_meets_it_again() -> None:
    job = of(run(2_000, 5_000, Departure.TIME_LIMIT), time_limit_s=3_000)
    assert (job.work_s, job.time_limit_s) == (3_001, 3_000)


def test_a_limit_that_a_run_outlived_is_raised() -> None:
    assert of(run(2_000, 6_000), time_limit_s=3_600).time_limit_s == 4_000


def test_who_gave_up_gives_up_after_as_long() -> None:
    job = of(waits=[(2_000, 7_000)])
    assert (job.patience_s, job.work_s) == (5_000, USUAL_S)
    # It had waited longer before, and had not given up.
    again = of(run(9_000, 9_500, Departure.PREEMPTED), waits=[(2_000, 9_000), (9_500, 9_900)])
    assert again.patience_s == 7_001


def test_who_never_ran_needs_what_its_like_needs() -> None:
    alike = replace(LIFE, workload="a", runs=[run(2_000, 2_700)])
    other = replace(LIFE, workload="b", user="v", gpus_milli=2_000, runs=[run(2_000, 9_000)])
    never = replace(LIFE, workload="n", waits=[(2_000, None)])
    larger = replace(LIFE, workload="m", gpus_milli=2_000, waits=[(2_000, None)])
    jobs, told = jobs_of([alike, other, never, larger], start_s=START_S, end_s=END_S, known_s=KNOWN_S)
    assert {job.job: job.work_s for job in jobs} == {"a": 700, "b": 7_000, "n": 700, "m": 7_000}
    assert told == (
        "never ran: 2 jobs; each is taken to need what jobs of its user and size, or of its account, usually need",
    )


def test_what_is_under_way_begins_with_it_and_has_its_place_before_what_is_submitted() -> None:
    running = replace(LIFE, workload="r", eligible_s=100, runs=[run(200, 4_000)])
    waiting = replace(LIFE, workload="w", eligible_s=1_000, waits=[(1_000, None)])
    over = replace(LIFE, workload="o", eligible_s=100, runs=[run(200, 1_000)])
    later = replace(LIFE, workload="l", eligible_s=END_S, waits=[(END_S, None)])
    jobs, told = jobs_of([waiting, running, over, later], start_s=START_S, end_s=END_S, known_s=KNOWN_S)
    assert [(job.job, job.submitted_s) for job in jobs] == [("r", START_S), ("w", START_S)]
    assert jobs[0].work_s == 3_000
    assert any(line.startswith("under way: 1 jobs") for line in told)


def test_jobs_of_an_instant_come_as_they_became_known() -> None:
    lives = [replace(LIFE, workload=name, runs=[run(2_000, 3_000)]) for name in ("z", "a", "m")]
    jobs, _ = jobs_of(lives, start_s=START_S, end_s=END_S, known_s=KNOWN_S)
    assert [job.job for job in jobs] == ["z", "a", "m"]


def test_whose_submission_nobody_told_is_counted() -> None:
    told = notes(replace(LIFE, is_submitted=False, runs=[run(2_000, 3_000)]))
    assert told == ("not told of: the submission of 1 jobs; each is submitted when its first run began",)
