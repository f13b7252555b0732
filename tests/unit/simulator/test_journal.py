"""What a ledger is told of a simulation."""

import json
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest
from tests.unit.simulator.stories import START_S, host, left, scenario, started, submitted

from gpuledger.events.acceptance import understood
from gpuledger.kernel.clock import seconds
from gpuledger.simulator.facts import Cancelled, Departure, Fact, HostCondition, Reserved, Told
from gpuledger.simulator.journal import Journal


def journal() -> Journal:
    return Journal(scenario(), world="fifo", seed=7)


def written(*facts: Fact) -> list[dict[str, Any]]:
    told = journal()
    lines = [line for fact in facts for line in told.lines(fact)]
    assert [understood(line).source for line in lines] == ["simulator/story/fifo/7"] * len(lines)
    return [json.loads(line) for line in lines]


def types(*facts: Fact) -> list[str]:
    return [event["type"].removeprefix("org.gpuledger.").removesuffix(".v1") for event in written(*facts)]


def test_it_opens_with_accounts_shares_and_hosts() -> None:
    lines = list(journal().opening())
    found = [understood(line) for line in lines]
    assert [event.name for event in found] == ["account.created", "budget.share_set"] * 2 + [
        "host.registered"
    ] * 2
    assert {event.at_s for event in found} == {START_S}
    assert all(line.endswith(b"\n") and line.count(b"\n") == 1 for line in lines)


def test_a_run_and_what_was_asked_for() -> None:
    asked, start, ready, ended = written(
        submitted("j", 0, gpus=2), started("j", 60, {"h1": 2}), left("j", 3600, loading_s=90)
    )
    assert asked["data"]["minimum_runtime_s"] == 3600
    assert (start["data"]["class"], start["data"]["hosts"], start["data"]["gpus_milli"]) == (
        "allocated",
        ["h1"],
        2000,
    )
    assert ready["time"] == "2026-01-01T00:02:30Z"
    assert (ended["type"], ended["data"]["reason"]) == ("org.gpuledger.workload.ended.v1", "completed")


@pytest.mark.parametrize(
    ("why", "requeued", "expected"),
    [
        (Departure.DONE, False, "workload.ended"),
        (Departure.TIME_LIMIT, False, "workload.ended"),
        (Departure.PREEMPTED, True, "workload.preempted"),
        (Departure.PREEMPTED, False, "workload.ended"),
        (Departure.HOST_FAILED, True, "workload.requeued"),
    ],
)
def test_how_a_run_left(why: Departure, *, requeued: bool, expected: str) -> None:
    facts = (
        submitted("j", 0),
        started("j", 0, {"h1": 1}),
        left("j", 60, why=why, requeued=requeued, loading_s=60),
    )
    assert types(*facts)[2:] == [expected]


def saving(every_s: int | None, *, why: Departure, kept_s: int, lost_s: int) -> list[int]:
    """Return when a run said that its work is saved, from its beginning; it loads for a minute first."""
    asked = submitted("j", 0)
    asked = replace(asked, job=replace(asked.job, checkpoint_s=every_s))
    gone = left(
        "j", 60 + kept_s + lost_s, why=why, requeued=why is not Departure.DONE, loading_s=60, lost_s=lost_s
    )
    events = written(asked, started("j", 0, {"h1": 1}), replace(gone, kept_s=kept_s))
    times = [event["time"] for event in events if event["type"].endswith("checkpointed.v1")]
    return [seconds(datetime.fromisoformat(time)) - START_S for time in times]


def test_work_is_told_to_be_saved_first_and_last() -> None:
    """From the first follows how often it is, from the last what is lost."""
    assert saving(900, why=Departure.PREEMPTED, kept_s=2_700, lost_s=100) == [960, 2_760]
    assert saving(900, why=Departure.PREEMPTED, kept_s=900, lost_s=100) == [960]
    assert saving(900, why=Departure.PREEMPTED, kept_s=0, lost_s=100) == []
    assert saving(900, why=Departure.DONE, kept_s=2_800, lost_s=0) == [960]
    assert saving(900, why=Departure.DONE, kept_s=800, lost_s=0) == []
    assert saving(None, why=Departure.DONE, kept_s=2_800, lost_s=0) == []


def test_what_hosts_are_good_for() -> None:
    changes = [
        (HostCondition.DRAINING, True, "draining"), (HostCondition.DOWN, True, "maintenance"),
        (HostCondition.DOWN, False, "unhealthy"), (HostCondition.HEALTHY, False, "healthy"),
    ]  # fmt: skip
    found = written(*(host("h1", 0, condition, planned=planned) for condition, planned, _ in changes))
    assert [event["data"]["state"] for event in found] == [state for _, _, state in changes]


def test_a_job_that_was_given_up_ends_without_a_run() -> None:
    (_, ended) = written(submitted("j", 0), Cancelled(at_s=START_S + 5, job="j"))
    assert "run" not in ended["data"]


def test_a_ledger_is_told_no_plans() -> None:
    told = Told(at_s=START_S, job="j", run=1, leaves_s=START_S + 60)
    assert types(told, Reserved(at_s=START_S, placement={"h1": 1000})) == []


def test_the_same_simulation_gives_the_same_bytes() -> None:
    assert list(journal().opening()) == list(journal().opening())
