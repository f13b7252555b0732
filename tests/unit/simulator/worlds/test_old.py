"""The old world: who starts, who is sent away, who may stay, and who has to be asked."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
from tests.simulating import T0, Listed, job, outages, scenario, told

from gpuledger.simulator import engine
from gpuledger.simulator.engine import simulate
from gpuledger.simulator.facts import Fact, Left, Started, Submitted, UserAsked
from gpuledger.simulator.jobs import Job
from gpuledger.simulator.scenario import AccountSpec, FaultModel
from gpuledger.simulator.worlds.old import SETTINGS, Old
from gpuledger.simulator.worlds.releases import UNLIMITED_S


def facts(jobs: Sequence[Job] | Listed, *, old: dict[str, int] | None = None, **more: Any) -> list[Fact]:  # noqa: ANN401 - what a scenario takes
    """With a day's patience before anybody learns and nobody who wants to stay, unless given."""
    settings = {"long_wait_s": 86_400, "stay_permille": 0, **(old or {})}
    played = scenario(jobs, worlds={"old": settings}, **more)
    return list(simulate(played, Old(played, 1)))


def lines(jobs: Sequence[Job], **more: Any) -> list[str]:  # noqa: ANN401 - what a scenario takes
    return [line for line in told(facts(jobs, **more)) if "submitted" not in line]


def test_by_priority_then_by_arrival_and_whoever_fits() -> None:
    jobs = [
        job("runs", 8, 100, priority=2),
        job("low", 8, 10, at_s=1),
        job("second", 8, 10, at_s=2, priority=1),
        job("third", 8, 10, at_s=3, priority=1),
        job("high", 8, 10, at_s=4, priority=2),
    ]
    starts = [fact.job for fact in facts(jobs) if isinstance(fact, Started)]
    assert starts == ["runs", "high", "second", "third", "low"]
    small = [job("runs", 6, 100, priority=2), job("waits", 8, 10, at_s=1), job("fits", 2, 10, at_s=2)]
    assert [fact.job for fact in facts(small) if isinstance(fact, Started)] == ["runs", "fits", "waits"]


def test_a_higher_priority_takes_the_latest_start_of_the_lowest_and_keeps_what_it_took() -> None:
    """``late`` and ``early`` are low; nobody gets the GPUs of ``late`` while its grace lasts but ``high``."""
    jobs = [
        job("medium", 4, 500, priority=1),
        job("early", 2, 500, at_s=1),
        job("late", 2, 500, at_s=2),
        job("high", 2, 500, at_s=10, priority=2),
        job("higher", 2, 10, at_s=70, priority=2),
    ]
    assert lines(jobs)[3:8] == [
        "10 late told to leave by 70",
        "70 late left, preempted: kept 0 lost 68 loading 0 idle 0, waits again",
        "70 early told to leave by 130",
        "70 high started run 1 on h0:2",
        "130 early left, preempted: kept 0 lost 129 loading 0 idle 0, waits again",
    ]


def test_two_who_took_gpus_of_one_host_start_each_when_there_is_room_for_it() -> None:
    """Both wait for four of its GPUs; at 65 four are free, at 75 eight."""
    jobs = [
        job("early", 4, 500),
        job("late", 4, 500, at_s=1),
        job("high", 4, 500, at_s=5, priority=1),
        job("higher", 4, 500, at_s=15, priority=2),
    ]
    started = [(fact.job, fact.at_s - T0) for fact in facts(jobs) if isinstance(fact, Started)]
    assert started[:4] == [("early", 0), ("late", 1), ("high", 65), ("higher", 75)]


def test_who_starts_in_the_instant_in_which_a_higher_priority_asks_is_told_to_leave_a_second_later() -> None:
    """``medium`` gets at 65 what it took; ``high`` asks for the same in that instant."""
    jobs = [
        job("low", 8, 5000),
        job("medium", 8, 5000, at_s=5, priority=1),
        job("high", 8, 100, at_s=65, priority=2),
    ]
    assert lines(jobs)[2:6] == [
        "65 low left, preempted: kept 0 lost 65 loading 0 idle 0, waits again",
        "65 medium started run 1 on h0:8",
        "66 medium told to leave by 126",
        "126 medium left, preempted: kept 0 lost 61 loading 0 idle 0, waits again",
    ]


def test_nobody_is_sent_away_by_an_equal() -> None:
    jobs = [job("runs", 8, 100, priority=2), job("asks", 8, 10, at_s=1, priority=2)]
    assert [line for line in lines(jobs) if "told" in line] == []


def test_who_wants_to_stay_stays_within_the_limit_of_the_team() -> None:
    """Four of the team's GPUs stay; the rest may be taken. The other team has no limit, and its runs stay."""
    accounts = (
        AccountSpec(account="org/a", share=1, team_limit_milli=4000),
        AccountSpec(account="org/b", share=1),
    )
    jobs = [
        job("stays", 4, 500, account="org/a/deep"),
        job("moves", 1, 500, at_s=1, account="org/a/deep"),
        job("other", 3, 500, at_s=2, account="org/b"),
        job("high", 8, 500, at_s=3, priority=2),
        job("one", 1, 500, at_s=4, priority=2),
    ]
    found = facts(jobs, old={"stay_permille": 1000}, accounts=accounts)
    started = [(fact.job, fact.protected_s) for fact in found if isinstance(fact, Started)]
    assert started[:3] == [("stays", UNLIMITED_S), ("moves", 0), ("other", UNLIMITED_S)]
    assert [line for line in told(found) if "told" in line] == ["4 moves told to leave by 64"]


def test_the_limit_is_there_again_when_a_run_ends() -> None:
    accounts = (AccountSpec(account="org/a", share=1, team_limit_milli=4000),)
    jobs = [job("first", 4, 100), job("next", 4, 100, at_s=200)]
    found = facts(jobs, old={"stay_permille": 1000}, accounts=accounts)
    assert [fact.protected_s for fact in found if isinstance(fact, Started)] == [UNLIMITED_S, UNLIMITED_S]


def test_hosts_are_kept_for_a_gang_that_has_waited_for_long() -> None:
    """Jobs of a host each come forever; two hosts are never free at once unless they are kept."""
    stream = [job(f"s{n}", 8, 100, at_s=50 * n) for n in range(60)]
    gang = job("gang", 16, 100, at_s=10)
    queue = sorted([*stream, gang], key=lambda each: each.submitted_s)

    def started_s(hold_after_s: int) -> int:
        found = facts(queue, hosts=(8, 8), old={"hold_after_s": hold_after_s})
        return next(fact.at_s - T0 for fact in found if isinstance(fact, Started) and fact.job == "gang")

    assert started_s(86_400) > 3000
    assert started_s(1000) <= 1200


def test_one_host_is_emptied_for_who_needs_it_whole() -> None:
    """Single GPUs come forever and fill what becomes free, until that is kept."""
    small = [job(f"s{n:03}", 1, 400, at_s=40 * n) for n in range(150)]
    whole = job("whole", 8, 100, at_s=500)
    queue = sorted([*small, whole], key=lambda each: each.submitted_s)

    def started_s(hold_after_s: int) -> int:
        found = facts(queue, hosts=(8,), old={"hold_after_s": hold_after_s})
        return next(fact.at_s - T0 for fact in found if isinstance(fact, Started) and fact.job == "whole")

    assert started_s(86_400) > 6000
    assert started_s(1000) <= 1500 + 400


def test_users_are_asked_before_a_host_is_repaired(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever may be moved leaves at once; whoever stays is asked, and leaves when the user answers."""
    wished = {"h0": outages((100, 1000))}
    monkeypatch.setattr(engine, "wishes", lambda _, host, **__: iter(wished.get(host, ())))
    accounts = (AccountSpec(account="org/a", share=1, team_limit_milli=4000),)
    jobs = [job("stays", 4, 90_000), job("moves", 4, 90_000, at_s=1)]
    found = lines(jobs, old={"stay_permille": 1000, "answer_s": 3600}, accounts=accounts)
    assert found[2:5] == [
        "100 h0 draining, planned",
        "100 moves told to leave by 160",
        "100 h0 asked for stays",
    ]
    asked = next(int(line.split()[0]) for line in found if "stays told to leave" in line)
    assert asked > 100
    assert f"{asked + 60} h0 down, planned" in found


def test_an_answer_after_the_run_ended_moves_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    wished = {"h0": outages((100, 1000))}
    monkeypatch.setattr(engine, "wishes", lambda _, host, **__: iter(wished.get(host, ())))
    jobs = [job("stays", 4, 101), job("again", 4, 5000, at_s=1300)]
    found = lines(jobs, old={"stay_permille": 1000, "answer_s": 3600})
    assert [line for line in found if "told" in line] == []
    assert "101 h0 down, planned" in found


def closed_loop(users: int, days: int) -> Listed:
    """Each user always has three jobs outstanding, of 1 to 16 GPUs and up to some hours; states what they like."""

    def asked(user: int, number: int, at_s: int) -> Job:
        seed = 7 * user + 13 * number
        return job(
            f"u{user}-{number}",
            (1, 2, 4, 8, 16)[seed % 5],
            1800 + 611 * seed % 20_000,
            at_s=at_s,
            user=f"u{user}",
            account=f"org/t{user % 3}",
            priority=seed % 2,
            checkpoint_s=1800,
            startup_s=60,
        )

    def following(last: Job, at_s: int) -> list[Job]:
        user, number = last.job[1:].split("-")
        return [asked(int(user), int(number) + 3, at_s - T0 + 300)]

    return Listed([asked(user, n, 0) for user in range(users) for n in range(3)], following)


def test_in_the_long_run_everybody_asks_for_the_highest_priority() -> None:
    """Demand is some twice what there is. At first nobody does; in the second week all of 30 users do."""
    demand = closed_loop(30, 14)
    accounts = tuple(AccountSpec(account=f"org/t{n}", share=1, team_limit_milli=16_000) for n in range(3))
    found = facts(
        demand,
        hosts=(8,) * 8,
        days=14,
        accounts=accounts,
        old=dict(SETTINGS),
        faults=FaultModel(mtbf_s=20 * 86_400, drain_mtbf_s=10 * 86_400),
    )
    by_day: dict[int, Counter[int | None]] = {}
    for fact in found:
        if isinstance(fact, Started):
            by_day.setdefault((fact.at_s - T0) // 86_400, Counter())[fact.priority] += 1
    at_first = [fact.priority for fact in found if isinstance(fact, Started) and fact.at_s == T0]
    assert at_first
    assert 2 not in at_first
    assert all(by_day[day].keys() == {2} for day in range(7, 14))
    assert any(isinstance(fact, Left) and fact.why == "preempted" for fact in found)
    assert any(isinstance(fact, UserAsked) for fact in found)
    assert sum(isinstance(fact, Submitted) for fact in found) > 500
