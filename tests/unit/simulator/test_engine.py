"""The rules of the engine, each in a case that can be worked out by hand."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest
from tests.simulating import (
    T0,
    Listed,
    Move,
    Scripted,
    at_once,
    job,
    leave,
    outages,
    scenario,
    start,
    told,
)

from gpuledger.kernel.errors import Refused
from gpuledger.simulator import engine
from gpuledger.simulator.engine import simulate
from gpuledger.simulator.facts import Submitted
from gpuledger.simulator.jobs import Job
from gpuledger.simulator.ordering import ImpossibleOrder
from gpuledger.simulator.worlds.protocol import Cluster, Orders, Start


def played(jobs: Sequence[Job], moves: dict[int, Move], **more: Any) -> list[str]:  # noqa: ANN401 - what a scenario takes
    return told(simulate(scenario(jobs, **more), Scripted(moves)))


def test_a_run_loads_works_and_idles() -> None:
    jobs = [job("j", 2, 100, at_s=5, startup_s=10, idle_s=30)]
    assert played(jobs, {20: start("j", h0=2)}) == [
        "5 j submitted",
        "20 j started run 1 on h0:2",
        "160 j left, done: kept 100 lost 0 loading 10 idle 30",
    ]


def test_who_is_told_to_leave_works_on_during_the_grace_and_goes_on_from_its_checkpoint() -> None:
    jobs = [job("j", 8, 500, startup_s=10, checkpoint_s=100)]
    moves = {0: start("j", h0=8), 200: leave("j"), 300: start("j", h0=8)}
    assert played(jobs, moves) == [
        "0 j submitted",
        "0 j started run 1 on h0:8",
        "200 j told to leave by 260",
        "260 j left, preempted: kept 200 lost 50 loading 10 idle 0, waits again",
        "300 j started run 2 on h0:8",
        "610 j left, done: kept 300 lost 0 loading 10 idle 0",
    ]


def test_who_never_saves_loses_all_and_who_loads_loses_nothing() -> None:
    jobs = [job("never", 4, 500), job("loads", 4, 500, startup_s=300)]
    moves = {
        0: lambda c: Orders(
            starts=[*start("never", h0=4)(c).starts, *start("loads", h0=4)(c).starts]  # type: ignore[union-attr]
        ),
        100: leave("never", "loads"),
    }
    assert played(jobs, moves)[-2:] == [
        "160 never left, preempted: kept 0 lost 160 loading 0 idle 0, waits again",
        "160 loads left, preempted: kept 0 lost 0 loading 160 idle 0, waits again",
    ]


def test_a_job_that_cannot_resume_ends_when_it_is_taken() -> None:
    demand = Listed([job("j", 1, 500, resumable=False)])
    moves = {0: start("j", h0=1), 10: leave("j")}
    lines = told(simulate(scenario(demand), Scripted(moves)))
    assert lines[-1] == "70 j left, preempted: kept 0 lost 70 loading 0 idle 0"
    assert demand.over == [("j", 70)]


def test_whoever_is_done_within_the_grace_is_done() -> None:
    jobs = [job("j", 1, 100)]
    assert played(jobs, {0: start("j", h0=1), 40: leave("j")})[-2:] == [
        "40 j told to leave by 100",
        "100 j left, done: kept 100 lost 0 loading 0 idle 0",
    ]


def test_a_session_that_is_taken_after_its_work_is_over() -> None:
    demand = Listed([job("j", 1, 100, idle_s=1000)])
    lines = told(simulate(scenario(demand), Scripted({0: start("j", h0=1), 200: leave("j")})))
    assert lines[-1] == "260 j left, preempted: kept 100 lost 0 loading 0 idle 160"
    assert demand.over == [("j", 260)]


def test_who_may_stay_after_all_stays_and_may_be_told_again() -> None:
    jobs = [job("j", 1, 500)]
    moves: dict[int, Move] = {
        0: start("j", h0=1),
        100: leave("j"),
        130: lambda _: Orders(stay=["j"]),
        150: leave("j"),
    }
    assert played(jobs, moves)[2:] == [
        "100 j told to leave by 160",
        "150 j told to leave by 210",
        "210 j left, preempted: kept 0 lost 210 loading 0 idle 0, waits again",
    ]


def test_a_run_that_was_told_is_not_told_again() -> None:
    moves = {0: start("j", h0=1), 100: leave("j"), 130: leave("j")}
    assert played([job("j", 1, 500)], moves)[2:] == [
        "100 j told to leave by 160",
        "160 j left, preempted: kept 0 lost 160 loading 0 idle 0, waits again",
    ]


def test_without_grace_the_gpus_are_there_in_the_same_instant() -> None:
    jobs = [job("low", 8, 500), job("high", 8, 50, at_s=100)]
    moves = {0: start("low", h0=8), 100: leave("low")}

    def otherwise(cluster: Cluster) -> Orders | None:
        return start("high", h0=8)(cluster) if "high" in cluster.waiting else None

    world = Scripted(moves, otherwise)
    assert told(simulate(scenario(jobs, grace_s=0), world))[2:5] == [
        "100 high submitted",
        "100 low told to leave by 100",
        "100 low left, preempted: kept 0 lost 100 loading 0 idle 0, waits again",
    ]
    assert world.asked[:4] == [0, 100, 100, 150]


@pytest.mark.parametrize(
    ("limit_s", "last"),
    [
        (60, "60 j left, time limit: kept 50 lost 10 loading 0 idle 0"),
        (100, "100 j left, time limit: kept 100 lost 0 loading 0 idle 0"),
        (110, "110 j left, time limit: kept 100 lost 0 loading 0 idle 10"),
        (120, "120 j left, done: kept 100 lost 0 loading 0 idle 20"),
    ],
)
def test_a_run_ends_at_its_time_limit(limit_s: int, last: str) -> None:
    demand = Listed([job("j", 1, 100, idle_s=20, checkpoint_s=50, time_limit_s=limit_s)])
    lines = told(simulate(scenario(demand), Scripted({0: start("j", h0=1)})))
    assert lines[-1] == last
    assert [name for name, _ in demand.over] == ["j"]


def test_who_loses_patience_cancels_what_waits_and_each_wait_is_one_of_its_own() -> None:
    jobs = [job("gone", 1, 100, patience_s=50), job("back", 1, 500, patience_s=200)]
    moves = {0: start("back", h0=1), 100: leave("back")}
    assert played(jobs, moves) == [
        "0 gone submitted",
        "0 back submitted",
        "0 back started run 1 on h0:1",
        "50 gone cancelled",
        "100 back told to leave by 160",
        "160 back left, preempted: kept 0 lost 160 loading 0 idle 0, waits again",
        "360 back cancelled",
    ]


def test_what_users_ask_for_next_comes_when_a_job_is_over() -> None:
    def following(last: Job, at_s: int) -> list[Job]:
        return [job("next", 1, 10, at_s=at_s - T0 + 7)] if last.job == "j" else []

    demand = Listed([job("j", 1, 100)], following)
    lines = told(simulate(scenario(demand), Scripted(otherwise=at_once)))
    assert lines[-3:] == [
        "107 next submitted",
        "107 next started run 1 on h0:1",
        "117 next left, done: kept 10 lost 0 loading 0 idle 0",
    ]
    assert demand.over == [("j", 100), ("next", 117)]


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> dict[str, dict[str, list[tuple[int, int]]]]:
    """Faults and wishes by host, in place of drawn ones."""
    table: dict[str, dict[str, list[tuple[int, int]]]] = {"faults": {}, "wishes": {}}
    for kind, hosts in table.items():
        monkeypatch.setattr(
            engine, kind, lambda _, host, *, seed, start_s, hosts=hosts: iter(outages(*hosts.get(host, [])))
        )
    return table


Planned = dict[str, dict[str, list[tuple[int, int]]]]


def test_a_fault_ends_what_runs_there_on_all_its_hosts(planned: Planned) -> None:
    planned["faults"]["h1"] = [(100, 1000)]
    jobs = [job("gang", 16, 500, checkpoint_s=30), job("other", 8, 200)]
    moves = {
        0: lambda _: Orders(
            starts=[
                Start(job="gang", placement={"h0": 8000, "h1": 8000}),
                Start(job="other", placement={"h2": 8000}),
            ]
        )
    }
    world = Scripted(moves)
    assert told(simulate(scenario(jobs, hosts=(8, 8, 8)), world))[4:] == [
        "100 h1 down",
        "100 gang left, host failed: kept 90 lost 10 loading 0 idle 0, waits again",
        "200 other left, done: kept 200 lost 0 loading 0 idle 0",
        "1100 h1 healthy",
    ]


def test_hosts_that_are_down_have_nothing_free_and_do_not_break(planned: Planned) -> None:
    planned["faults"]["h0"] = [(100, 1000), (500, 9)]
    planned["wishes"]["h0"] = [(600, 9)]
    free: dict[int, int] = {}

    def look(cluster: Cluster) -> None:
        free[cluster.at_s - T0] = cluster.hosts["h0"].free_milli

    assert told(simulate(scenario(), Scripted({}, look))) == ["100 h0 down", "1100 h0 healthy"]
    assert free == {0: 8000, 100: 0, 1100: 8000}


def test_a_draining_host_is_repaired_once_it_is_empty(planned: Planned) -> None:
    planned["wishes"].update({"h0": [(100, 1000)], "h1": [(100, 50)]})
    lines = played([job("j", 1, 300)], {0: start("j", h0=1)}, hosts=(8, 8))
    assert lines[2:] == [
        "100 h0 draining, planned",
        "100 h1 draining, planned",
        "100 h1 down, planned",
        "150 h1 healthy",
        "300 j left, done: kept 300 lost 0 loading 0 idle 0",
        "300 h0 down, planned",
        "1300 h0 healthy",
    ]


def test_a_fault_ends_a_drain(planned: Planned) -> None:
    planned["wishes"]["h0"], planned["faults"]["h0"] = [(100, 1000)], [(200, 50)]
    lines = played([job("j", 1, 300, resumable=False)], {0: start("j", h0=1)})
    assert lines[2:] == [
        "100 h0 draining, planned",
        "200 h0 down",
        "200 j left, host failed: kept 0 lost 200 loading 0 idle 0",
        "250 h0 healthy",
    ]


def test_users_are_asked_about_hosts_that_drain(planned: Planned) -> None:
    planned["wishes"]["h0"] = [(100, 1000)]
    moves: dict[int, Move] = {0: start("j", h0=1), 100: lambda _: Orders(asks=[("h0", "j")])}
    assert "100 h0 asked for j" in played([job("j", 1, 300)], moves)


def test_reservations_are_told_when_they_change() -> None:
    moves: dict[int, Move] = {
        at_s: (lambda _, reserved=reserved: Orders(reserved=reserved))  # type: ignore[misc]
        for at_s, reserved in {1: {"h0": 3000}, 2: {"h0": 3000}, 3: None, 4: {}}.items()
    }
    assert played([], moves) == ["1 reserved {'h0': 3000}", "4 reserved {}"]


def test_a_world_is_asked_once_for_each_instant_and_when_it_wants_to_be() -> None:
    jobs = [job("a", at_s=10), job("b", at_s=10), job("c", at_s=30)]
    world = Scripted({}, lambda cluster: Orders(wake_s=T0 + 25) if cluster.at_s < T0 + 25 else None)
    list(simulate(scenario(jobs), world))
    assert world.asked == [0, 10, 25, 30]


def test_a_word_of_a_world_replaces_the_one_before() -> None:
    """At 0 it wants to be asked at 50; at 10 it takes that back."""
    world = Scripted({}, lambda cluster: Orders(wake_s=T0 + 50) if cluster.at_s == T0 else None)
    list(simulate(scenario([job("a", at_s=10)]), world))
    assert world.asked == [0, 10]


def test_nothing_is_told_of_the_end_and_after() -> None:
    jobs = [job("j", 1, 86_400), job("late", at_s=86_400)]
    assert played(jobs, {0: start("j", h0=1)}) == ["0 j submitted", "0 j started run 1 on h0:1"]


def test_the_seed_is_that_of_the_scenario_unless_given() -> None:
    seeds: list[int] = []

    def demand(seed: int) -> Listed:
        seeds.append(seed)
        return Listed([])

    seeded = replace(scenario(), demand=demand)
    list(simulate(seeded, Scripted()))
    list(simulate(seeded, Scripted(), seed=9))
    assert seeds == [1, 9]


def test_whoever_watches_hears_of_each_hour_once() -> None:
    seen: list[int] = []
    jobs = [job(f"j{at_s}", at_s=at_s) for at_s in (10, 20, 3500, 3600, 3700, 20_000)]
    list(simulate(scenario(jobs), Scripted(), watch=lambda at_s: seen.append(at_s - T0)))
    assert seen == [0, 3600, 20_000]


def test_demand_is_read_as_it_is_needed() -> None:
    read: list[str] = []

    class Lazy(Listed):
        def first(self) -> Iterator[Job]:
            for each in self.jobs:
                read.append(each.job)
                yield each

    jobs = [job(f"j{at_s}", at_s=at_s) for at_s in (10, 20, 30)]
    facts = simulate(scenario(Lazy(jobs)), Scripted())
    assert isinstance(next(facts), Submitted)
    assert read == ["j10", "j20"]


@pytest.mark.parametrize(
    ("jobs", "message"),
    [
        ([job("j", at_s=9), job("k", at_s=8)], "job 'k' is submitted at"),
        ([job("j", at_s=-1)], "job 'j' is submitted at"),
        ([job("j"), job("j", at_s=5)], "job 'j' is submitted twice"),
        ([job("j", 0)], "job 'j' asks for 0 milli-GPU"),
        ([job("j", 1, -5)], "work -5 s"),
    ],
)
def test_a_demand_that_is_out_of_order_is_refused(jobs: list[Job], message: str) -> None:
    with pytest.raises(Refused, match=message):
        played(jobs, {})


def test_what_follows_a_job_does_not_come_before_its_end() -> None:
    demand = Listed([job("j", 1, 100)], lambda _job, _at_s: [job("k", at_s=50)])
    with pytest.raises(Refused, match="job 'k' is submitted at"):
        list(simulate(scenario(demand), Scripted({0: start("j", h0=1)})))


def test_hosts_have_names_of_their_own() -> None:
    twice = scenario().hosts * 2
    with pytest.raises(Refused, match="host 'h0' is listed twice"):
        list(simulate(scenario(specs=twice), Scripted()))


def test_a_world_that_wants_to_be_asked_at_once_again_is_told_so() -> None:
    with pytest.raises(ImpossibleOrder, match="wants to be asked"):
        played([], {0: lambda _: Orders(wake_s=T0)})


def test_a_world_that_keeps_the_time_from_going_on_is_stopped() -> None:
    """A job without work is done at once, and its user submits it again at once."""
    demand = Listed([job("j", 1, 0)], lambda _job, at_s: [job("j", 1, 0, at_s=at_s - T0)])
    with pytest.raises(ImpossibleOrder, match="time does not go on"):
        list(simulate(scenario(demand), Scripted(otherwise=at_once)))
