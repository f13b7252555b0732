"""Users who keep asking: what they ask for, and when."""

import datetime as dt
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import pytest

from gpuledger.kernel.clock import instant, seconds
from gpuledger.simulator.demand.closed_loop import ClosedLoop, Rhythm, UserSpec
from gpuledger.simulator.demand.mix import Length, WorkKind
from gpuledger.simulator.jobs import Job

MONDAY_S = seconds(dt.datetime(2026, 1, 5, tzinfo=dt.UTC))
HOUR_S = 3_600
DAY_S = 86_400

TRAINING = WorkKind(
    name="training",
    sizes={1: 2, 2: 1, 4: 1},
    work=Length(median_s=3600, spread_permille=1000),
    minimum_runtimes={3600: 1},
    think=Length(median_s=60, spread_permille=500),
)
DEBUG = WorkKind(
    name="debug",
    kind="debug",
    is_session=True,
    sizes={1: 1},
    work=Length(median_s=300),
    minimum_runtimes={900: 1},
    think=Length(median_s=600),
)


def user(
    name: str = "ann", stock: int = 20, works: Sequence[WorkKind] = (TRAINING,), season_s: int = 0
) -> UserSpec:
    return UserSpec(user=name, account="org/a", stock_milli=stock * 1000, works=works, season_s=season_s)


def loop(*users: UserSpec, seed: int = 1, **rhythm: Any) -> ClosedLoop:  # noqa: ANN401
    return ClosedLoop(users, Rhythm(**rhythm), start_s=MONDAY_S, seed=seed)


def gpus(jobs: Sequence[Job]) -> float:
    return sum(job.gpus_milli for job in jobs) / 1000


def test_a_user_asks_at_first_for_the_stock_give_or_take_half_a_job() -> None:
    for seed in range(20):
        assert abs(gpus(list(loop(user(stock=20), seed=seed).first())) - 20) <= 2


def test_the_first_stock_is_asked_for_in_order_within_the_first_hours() -> None:
    jobs = list(loop(user("ann"), user("ben"), user("cem"), spread_s=HOUR_S).first())
    times = [job.submitted_s for job in jobs]
    assert times == sorted(times)
    assert times[0] >= MONDAY_S
    assert {job.user for job in jobs} == {"ann", "ben", "cem"}


def test_nothing_is_asked_for_while_the_stock_is_full_and_the_next_when_a_job_is_over() -> None:
    demand = loop(user(stock=20))
    outstanding = {job.job: job for job in demand.first()}
    for step in range(200):
        over = outstanding.pop(next(iter(outstanding)))
        at_s = MONDAY_S + DAY_S + step * HOUR_S
        following = list(demand.after(over, at_s))
        assert all(job.submitted_s >= at_s for job in following)
        outstanding |= {job.job: job for job in following}
        assert abs(gpus(list(outstanding.values())) - 20) <= 2


def test_jobs_are_numbered_without_gaps_and_each_once() -> None:
    demand = loop(user(stock=8))
    jobs = list(demand.first())
    for job in jobs[:3]:
        jobs += demand.after(job, MONDAY_S + DAY_S)
    assert sorted(int(job.job.removeprefix("ann-batch-")) for job in jobs) == list(range(1, len(jobs) + 1))


def test_the_kth_job_of_a_user_is_the_same_whatever_became_of_the_others() -> None:
    """In one world jobs end in order of arrival, in the other anyhow."""
    found: list[dict[str, tuple[object, ...]]] = []
    for stride in (0, 7):
        demand = loop(user("ann", works=(TRAINING, DEBUG)), user("ben"), user("cem", stock=5))
        waiting = list(demand.first())
        seen = {}
        for step in range(400):
            over = waiting.pop(step * stride % len(waiting))
            waiting += demand.after(over, MONDAY_S + DAY_S + step * 50)
            seen[over.job] = (over.gpus_milli, over.work_s, over.minimum_runtime_s, over.startup_s, over.kind)
        found.append(seen)
    both = found[0].keys() & found[1].keys()
    assert len(both) > 100
    assert {name: found[0][name] for name in both} == {name: found[1][name] for name in both}


def test_another_seed_brings_other_jobs_and_another_user_nobody_elses() -> None:
    mine = list(loop(user("ann")).first())
    assert mine == [job for job in loop(user("ann"), user("ben")).first() if job.user == "ann"]
    assert mine != list(loop(user("ann"), seed=2).first())


def test_somebody_elses_job_is_nobodys_business() -> None:
    demand = loop(user())
    stranger = next(iter(loop(user("eve")).first()))
    assert list(demand.after(stranger, MONDAY_S)) == []


def test_nobody_with_a_stock_asks_for_nothing() -> None:
    jobs = list(loop(user(stock=1, works=(TRAINING,)), user("tiny", stock=0)).first())
    assert {job.user for job in jobs} == {"ann", "tiny"}


def test_who_has_no_room_for_large_gangs_asks_for_none() -> None:
    gangs = WorkKind(
        name="gangs", sizes={64: 1, 128: 1}, work=Length(median_s=3600), minimum_runtimes={3600: 1}
    )
    small = {job.gpus_milli for job in loop(user(stock=40, works=(gangs, TRAINING))).first()}
    large = {job.gpus_milli for job in loop(user(stock=100, works=(gangs, TRAINING)), seed=3).first()}
    assert max(small) == 4_000
    assert max(large) == 64_000


def test_kinds_take_the_parts_of_gpu_time_that_are_said() -> None:
    short = WorkKind(
        name="s", part_permille=250, sizes={1: 1}, work=Length(median_s=600), minimum_runtimes={0: 1}
    )
    long = WorkKind(
        name="l", part_permille=750, sizes={2: 1}, work=Length(median_s=6000), minimum_runtimes={9: 1}
    )
    demand = loop(user(stock=12, works=(short, long)))
    waiting = list(demand.first())
    time: dict[int, int] = defaultdict(int)
    for step in range(6_000):
        over = waiting.pop(0)
        time[over.minimum_runtime_s] += over.gpus_milli * over.work_s
        waiting += demand.after(over, MONDAY_S + DAY_S + step)
    assert time[0] / sum(time.values()) == pytest.approx(0.25, abs=0.02)


def test_sessions_come_one_after_another_in_working_hours() -> None:
    demand = loop(user(stock=4, works=(TRAINING, DEBUG)))
    (session,) = [job for job in demand.first() if job.kind == "debug"]
    for _ in range(120):
        at = instant(session.submitted_s)
        assert at.weekday() < 5
        assert 8 <= at.hour < 20
        over_s = session.submitted_s + session.work_s
        (following,) = demand.after(session, over_s)
        assert following.submitted_s >= over_s + 600
        session = following


def test_only_part_of_the_people_have_sessions() -> None:
    some = WorkKind(
        name="debug",
        kind="debug",
        part_permille=400,
        is_session=True,
        sizes={1: 1},
        work=DEBUG.work,
        minimum_runtimes={900: 1},
    )
    users = [user(f"u{n}", stock=4, works=(TRAINING, some)) for n in range(300)]
    have = {job.user for job in loop(*users).first() if job.kind == "debug"}
    assert len(have) / 300 == pytest.approx(0.4, abs=0.08)


def test_a_stock_swings_with_the_season_of_its_team() -> None:
    rhythm = {"season_s": 28 * DAY_S, "swing_permille": 500}
    high = gpus(list(loop(user(stock=100, season_s=7 * DAY_S), spread_s=0, **rhythm).first()))
    low = gpus(list(loop(user(stock=100, season_s=21 * DAY_S), spread_s=0, **rhythm).first()))
    assert abs(high - 150) <= 2
    assert abs(low - 50) <= 2


@pytest.mark.parametrize(
    ("day", "permille"),
    [(0, 1000), (3, 1107), (7, 1250), (14, 1000), (21, 750), (25, 892), (28, 1000), (35, 1250)],
)
def test_a_season_rises_and_falls_evenly(day: int, permille: int) -> None:
    assert Rhythm(season_s=28 * DAY_S, swing_permille=250).level_permille(day * DAY_S) == permille


@pytest.mark.parametrize(
    ("at", "late", "expected"),
    [
        ("2026-01-05T08:00", 0.5, "2026-01-05T08:00"),  # Monday, at work
        ("2026-01-05T19:59", 0.5, "2026-01-05T19:59"),
        ("2026-01-05T20:00", 0.5, "2026-01-06T09:00"),  # in the evening: tomorrow, somewhat late
        ("2026-01-06T03:00", 0.0, "2026-01-06T08:00"),  # at night: this morning
        ("2026-01-09T21:00", 0.0, "2026-01-12T08:00"),  # Friday evening: Monday
        ("2026-01-10T12:00", 0.25, "2026-01-12T08:30"),  # Saturday
        ("2026-01-11T23:59", 0.0, "2026-01-12T08:00"),  # Sunday
        ("1970-01-01T00:00", 0.0, "1970-01-01T08:00"),  # a Thursday
    ],
)
def test_what_comes_when_nobody_works_waits_for_the_morning(at: str, late: float, expected: str) -> None:
    at_s = seconds(dt.datetime.fromisoformat(at + "+00:00"))
    assert Rhythm().at_work(at_s, late) == seconds(dt.datetime.fromisoformat(expected + "+00:00"))


def test_with_seven_working_days_there_is_no_weekend() -> None:
    at_s = seconds(dt.datetime(2026, 1, 10, 21, tzinfo=dt.UTC))
    assert Rhythm(days=7).at_work(at_s, 0) == at_s + 11 * HOUR_S
