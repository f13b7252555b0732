"""From a neutral job to facts: what is told of a run, when, and how far its record had come."""

from typing import Any

import pytest
from msgspec.structs import replace
from tests.unit.sources.slurm.told import HOUR, T, gpu_seconds, histories

from gpuledger.events import workload as events
from gpuledger.events.envelope import Event
from gpuledger.kernel.errors import BadRecord
from gpuledger.sources.slurm.job import SlurmJob, facts_of
from gpuledger.sources.slurm.states import state_of
from gpuledger.sources.slurm.tres import Gpus

W = f"8841-{T}"


def job(state: str = "COMPLETED", **changes: Any) -> SlurmJob:  # noqa: ANN401
    told: dict[str, Any] = {
        "cluster": "alpha",
        "job": "8841",
        "state": state_of("s", state),
        "submitted_s": T,
        "started_s": T + 60,
        "ended_s": T + 60 + HOUR,
        "user": "ada",
        "account": "prog-a",
        "asked": Gpus(8000, "h100"),
        "held": Gpus(8000, "h100"),
        "hosts": ("n1",),
        "time_limit_s": 7200,
        **changes,
    }
    return SlurmJob(**told)


def facts(told: SlurmJob, workload: str = W) -> list[Event]:
    return [event for event, _ in facts_of(told, workload, "alpha/prog-a")[0]]


def names(told: SlurmJob) -> list[str]:
    return [event.name.removeprefix("workload.") for event in facts(told)]


def odd(told: SlurmJob) -> list[str]:
    return [code for code, _ in facts_of(told, W, "alpha/prog-a")[1]]


@pytest.mark.parametrize(
    ("number", "raw", "handles"),
    [
        ("8841_7", "8849", ["job/8849"]),
        ("8841_9", "8841", ["job/8841"]),
        ("8841+1", "8842", ["job/8842"]),
        ("8841", "8841", []),
        ("8841_7", None, []),
        ("8841_7", "(null)", []),
        ("8841_7", "9" * 21, []),
    ],
)
def test_hosts_know_a_task_and_a_component_by_the_raw_number(
    number: str, raw: str | None, handles: list[str]
) -> None:
    found = [event.data for event in facts(job(job=number, raw=raw))]
    located = [data for data in found if isinstance(data, events.Located)]
    assert [handle for data in located for handle in data.handles] == handles
    assert all((data.workload, data.run) == (W, str(T)) for data in located)


def test_what_never_started_is_on_no_host() -> None:
    assert names(job("PENDING", job="8841_7", raw="8849")) == ["submitted"]


@pytest.mark.parametrize(
    ("state", "told"),
    [
        ("PENDING", ["submitted"]),
        ("RUNNING", ["submitted", "started"]),
        ("SUSPENDED", ["submitted", "started"]),
        ("COMPLETED", ["submitted", "started", "ended"]),
        ("NODE_FAIL", ["submitted", "started", "ended"]),
        ("RESIZING", ["submitted", "started", "ended"]),
        ("REQUEUED", ["submitted", "started", "requeued"]),
        ("PREEMPTED", ["submitted", "started", "preempted", "ended"]),
        ("REVOKED", ["submitted", "ended"]),
    ],
)
def test_a_state_tells_so_much(state: str, told: list[str]) -> None:
    assert names(job(state)) == told


def test_a_submission_says_all_that_is_known_of_the_job() -> None:
    told = job(eligible_s=T + 30, labels={"partition": "gpu"})
    assert facts(told)[0].data == events.Submitted(
        cluster="alpha",
        workload=W,
        account="alpha/prog-a",
        user="ada",
        gpus_milli=8000,
        gpu_model="h100",
        time_limit_s=7200,
        eligible_at=facts(told)[0].data.eligible_at,
        labels={"partition": "gpu"},
        version=3,
    )
    assert facts(told)[0].data.eligible_at.timestamp() == T + 30
    assert facts(job(eligible_s=T))[0].data.eligible_at is None


def test_the_run_is_named_after_its_submission_and_begins_with_its_allocation() -> None:
    started = facts(job())[1]
    assert (started.data.run, started.at_s, started.source) == (str(T), T + 60, "slurm/alpha")
    assert (started.data.attempt, started.data.account, started.data.hosts) == (1, None, ["n1"])


def test_a_later_run_says_itself_who_pays_and_which_attempt_it_is() -> None:
    _, event, _ = facts(job(submitted_s=T + 10, restarts=2))
    started = event.data
    assert (started.workload, started.run, started.account, started.attempt) == (
        W,
        str(T + 10),
        "alpha/prog-a",
        3,
    )


@pytest.mark.parametrize(
    ("told", "version"),
    [
        (job("PENDING"), 1),
        (job("RUNNING"), 2),
        (job("SUSPENDED"), 2),
        (job("FAILED"), 3),
        (job(is_altered=True), 4),
    ],
)
def test_the_version_tells_how_far_the_record_had_come(told: SlurmJob, version: int) -> None:
    assert {event.data.version for event in facts(told)} == {version}


def test_the_same_record_gives_the_same_ids_and_another_record_others() -> None:
    ids = [event.id for event in facts(job())]
    assert ids == [event.id for event in facts(job())]
    edited = [event.id for event in facts(replace(job(), held=Gpus(4000, "h100")))]
    assert [a == b for a, b in zip(ids, edited, strict=True)] == [True, False, True]


def test_an_id_tells_nothing_of_a_person() -> None:
    assert [e.id for e in facts(job(user="ada"))] == [e.id for e in facts(job(user="bob"))]


def test_elapsed_time_of_a_run_that_goes_on_changes_nothing() -> None:
    polls = [job("RUNNING", ended_s=None, elapsed_s=n) for n in (10, 70)]
    assert facts(polls[0]) == facts(polls[1])


def test_what_runs_stays_open_whatever_end_is_expected() -> None:
    (history,) = histories(facts(job("RUNNING"))).values()
    assert [(s.from_s, s.to_s) for s in history.segments] == [(T + 60, None)]


@pytest.mark.parametrize(
    "told",
    [
        job("CANCELLED", started_s=None),
        job("CANCELLED", started_s=T + 9 * HOUR),
        job("CANCELLED", started_s=T + 60 + HOUR, held=None),
        job("REVOKED"),
    ],
)
def test_what_never_started_is_over_and_charges_nothing(told: SlurmJob) -> None:
    assert names(told) == ["submitted", "ended"]
    assert facts(told)[1].data.run is None
    assert gpu_seconds(facts(told)) == {}


def test_a_cancelled_run_that_had_started_is_charged() -> None:
    assert gpu_seconds(facts(job("CANCELLED"))) == {W: 8 * HOUR}


def test_a_start_before_the_submission_is_that_of_the_size_before() -> None:
    told = job(submitted_s=T + 100, ended_s=T + 160)
    assert gpu_seconds(facts(told)) == {W: 8 * 60}
    assert told.identity.is_resized


def test_a_resize_time_beside_the_first_start_begins_a_run_of_its_own() -> None:
    told = job(resized_s=T + 100, ended_s=T + 160)
    assert (told.run_s, told.held_from_s) == (T + 100, T + 100)
    assert (told.identity.first_s, told.identity.is_resized) == (T, True)


def test_gpus_that_nobody_counts_are_an_alarm_and_not_none() -> None:
    told = job(held=None, asked=None, untracked="gres asks for GPUs")
    assert names(told) == ["submitted", "ended"]
    assert odd(told) == ["gpus-not-tracked"]
    assert odd(job(held=None)) == ["gpus-not-tracked"]


def test_a_job_without_gpus_is_booked_with_none() -> None:
    told = job(held=None, asked=None)
    assert names(told) == ["submitted", "started", "ended"]
    assert (gpu_seconds(facts(told)), odd(told)) == ({}, [])


def test_an_end_that_is_lost_leaves_the_run_open() -> None:
    told = job(ended_s=None)
    assert names(told) == ["submitted", "started"]
    assert odd(told) == ["end-lost"]


def test_an_end_that_was_repaired_is_an_estimate() -> None:
    told = job(ended_s=T + 60)
    assert [e.data.estimated for e in facts(told) if e.name == "workload.ended"] == [True]
    assert odd(told) == ["zero-length"]
    assert odd(job("FAILED", ended_s=T + 60)) == []


def test_a_negative_length_is_kept_reported_and_charged_0() -> None:
    told = job("FAILED", ended_s=T + 30, elapsed_s=0)
    assert names(told) == ["submitted", "started", "ended"]
    assert (gpu_seconds(facts(told)), odd(told)) == ({}, ["end-before-start"])


def test_suspended_time_stays_charged_and_is_reported_where_its_times_are_not_told() -> None:
    told = job(suspended_s=600, elapsed_s=HOUR - 600)
    assert (gpu_seconds(facts(told)), odd(told)) == ({W: 8 * HOUR}, ["suspended"])


def test_suspensions_are_told_where_their_times_are() -> None:
    assert names(job("SUSPENDED", suspended_at_s=T + 90)) == ["submitted", "started", "suspended"]
    assert names(job("RUNNING", resumed_at_s=T + 95)) == ["submitted", "started", "resumed"]


def test_times_that_were_clipped_are_refused() -> None:
    with pytest.raises(BadRecord) as refused:
        facts(job(elapsed_s=9 * HOUR))
    assert refused.value.code == "clipped-times"
    assert facts(job(elapsed_s=HOUR + 1))


def test_a_preempted_job_is_over_until_it_is_submitted_again() -> None:
    alone = histories(facts(job("PREEMPTED")))[W]
    assert [wait.to_s for wait in alone.waits] == [T + 60]
    again = job("PENDING", submitted_s=T + 60 + HOUR, eligible_s=T + 70 + HOUR, started_s=None, ended_s=None)
    both = histories([*facts(job("PREEMPTED")), *facts(again)])[W]
    assert [(wait.from_s, wait.to_s) for wait in both.waits] == [(T, T + 60), (T + 70 + HOUR, None)]
