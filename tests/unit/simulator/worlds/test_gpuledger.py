"""The production policy on small clusters: decisions become orders, and what they promise is kept."""

from collections.abc import Sequence
from typing import Any

import pytest
from tests.simulating import T0, job, outages, scenario, told

from gpuledger.kernel.errors import Refused
from gpuledger.simulator import engine
from gpuledger.simulator.engine import simulate
from gpuledger.simulator.facts import Fact, Started
from gpuledger.simulator.jobs import Job
from gpuledger.simulator.scenario import AccountSpec, Scenario
from gpuledger.simulator.worlds.gpuledger import Gpuledger

HOUR_S = 3_600


def play(world: Scenario) -> list[Fact]:
    return list(simulate(world, Gpuledger(world)))


def played(jobs: Sequence[Job], **more: Any) -> list[str]:  # noqa: ANN401 - what a scenario takes
    return [line for line in told(play(scenario(jobs, **more))) if "submitted" not in line]


def test_what_fits_starts_at_once_and_is_protected_for_its_minimum_runtime() -> None:
    facts = play(
        scenario(
            [job("j", 4, 1_000, at_s=7, minimum_runtime_s=600), job("free", 1, at_s=7, minimum_runtime_s=0)]
        )
    )
    starts = {fact.job: fact for fact in facts if isinstance(fact, Started)}
    assert {fact.at_s - T0 for fact in starts.values()} == {7}
    assert (starts["j"].klass, starts["j"].protected_s) == ("allocated", 600)
    assert (starts["free"].klass, starts["free"].protected_s) == ("unallocated", 0)


def test_an_account_without_a_share_runs_unallocated() -> None:
    accounts = (AccountSpec(account="org/a", share=1), AccountSpec(account="org/b", share=0))
    facts = play(scenario([job("j", 1, account="org/b")], accounts=accounts))
    assert [(f.klass, f.protected_s) for f in facts if isinstance(f, Started)] == [("unallocated", 0)]


def test_unallocated_work_leaves_for_funded_work_after_the_grace() -> None:
    jobs = [job("free", 8, 1_000, minimum_runtime_s=0), job("paid", 8, 100, at_s=100)]
    assert played(jobs) == [
        "0 free started run 1 on h0:8",
        "100 free told to leave by 160",
        "160 free left, preempted: kept 0 lost 160 loading 0 idle 0, waits again",
        "160 paid started run 1 on h0:8",
        "260 paid left, done: kept 100 lost 0 loading 0 idle 0",
        "260 free started run 2 on h0:8",
        "1260 free left, done: kept 1000 lost 0 loading 0 idle 0",
    ]


def test_who_was_told_to_leave_stays_when_nobody_needs_its_gpus_any_more() -> None:
    jobs = [job("free", 8, 1_000, minimum_runtime_s=0), job("paid", 8, 100, at_s=100, patience_s=30)]
    assert played(jobs)[1:] == [
        "100 free told to leave by 160",
        "130 paid cancelled",
        "1000 free left, done: kept 1000 lost 0 loading 0 idle 0",
    ]


def test_without_grace_gpus_are_handed_over_a_second_later_as_there_is_one_cycle_of_an_instant() -> None:
    jobs = [job("free", 8, 1_000, minimum_runtime_s=0), job("paid", 8, 100, at_s=100)]
    lines = played(jobs, grace_s=0)
    assert lines[2:5] == [
        "100 free left, preempted: kept 0 lost 100 loading 0 idle 0, waits again",
        "100 reserved {'h0': 8000}",
        "101 paid started run 1 on h0:8",
    ]


def test_a_gap_between_cycles_decides_at_once_about_all_that_came_meanwhile() -> None:
    jobs = [job("j", 1, at_s=10), job("k", 1, at_s=12), job("l", 1, at_s=19)]
    lines = played(jobs, worlds={"gpuledger": {"gap_s": 15}}, cycle_s=3_600)
    assert [line for line in lines if "started" in line] == [
        "15 j started run 1 on h0:1", "15 k started run 1 on h0:1", "30 l started run 1 on h0:1",
    ]  # fmt: skip


def test_a_setting_that_is_not_known_or_below_0_is_refused() -> None:
    with pytest.raises(Refused, match="'gap'"):
        Gpuledger(scenario(worlds={"gpuledger": {"gap": 1}}))
    with pytest.raises(Refused, match=r"gap_s.*is -1"):
        Gpuledger(scenario(worlds={"gpuledger": {"gap_s": -1}}))


def test_what_a_waiting_gang_has_reserved_is_told_as_far_as_nobody_occupies_it() -> None:
    """The gang waits for what is protected; from then on what is free beside is kept for it."""
    jobs = [
        job("long", 4, 7_200, minimum_runtime_s=3_600),
        job("gang", 16, 100, at_s=10, minimum_runtime_s=600),
    ]
    lines = played(jobs, hosts=(8, 8))
    assert lines[:2] == ["0 long started run 1 on h0:4", "10 reserved {'h0': 4000, 'h1': 8000}"]
    assert "3600 long told to leave by 3660" in lines
    assert lines[lines.index("3600 long told to leave by 3660") + 1 :][:3] == [
        "3660 long left, preempted: kept 0 lost 3660 loading 0 idle 0, waits again",
        "3660 gang started run 1 on h0:8 h1:8",
        "3660 reserved {}",
    ]


def test_a_drain_empties_by_itself_once_nothing_protects_what_runs_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    due = {"h0": outages((100, 600))}
    monkeypatch.setattr(engine, "wishes", lambda _, host, **__: iter(due.get(host, ())))
    lines = played([job("j", 8, 10_000, minimum_runtime_s=7_200)], hosts=(8, 8))
    assert lines[1:6] == [
        "100 h0 draining, planned",
        "7200 j told to leave by 7260",
        "7260 j left, preempted: kept 0 lost 7260 loading 0 idle 0, waits again",
        "7260 h0 down, planned",
        "7260 j started run 2 on h1:8",
    ]


def test_while_no_gpus_are_healthy_there_is_no_cycle_and_afterwards_there_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(engine, "faults", lambda *_, **__: iter(outages((100, 600))))
    lines = played([job("j", 8, 50, at_s=300)])
    assert lines[:3] == ["100 h0 down", "700 h0 healthy", "700 j started run 1 on h0:8"]
