"""Jobs of Beaker: GPUs from the schedule to the exit, paid by the budget, whatever they did meanwhile."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.unit.sources.rows import codes, data, events, one, only, read
from tests.unit.sources.traces import anomalies, facts, faults, fixture, gpu_seconds

from gpuledger.events.workload import Ended, Preempted, Started, Submitted
from gpuledger.sources.registry import source

DAY = "2026-11-02T"
CREATED_S = 1_793_606_400  # 2026-11-02T08:00:00Z


def job(status: dict[str, Any] | None = None, **changes: Any) -> dict[str, Any]:  # noqa: ANN401
    times = {"created": "08:00:00", "scheduled": "08:05:00", "exited": "09:05:00"}
    told = {"status": "STATUS_SUCCEEDED", **{key: f"{DAY}{time}Z" for key, time in times.items()}}
    return {
        "id": "job-1",
        "task_id": "task-1",
        "author_id": "ada",
        "workspace_id": "ws-1",
        "budget_id": "budget-a",
        "status": {key: value for key, value in {**told, **(status or {})}.items() if value is not None},
        "container_spec": {"resource_request": {"gpu_count": 8}},
        **changes,
    }


def lines(*jobs: dict[str, Any]) -> bytes:
    return b"".join(json.dumps(job).encode() + b"\n" for job in jobs)


def test_the_fixture_has_its_gpu_seconds_by_hand() -> None:
    items = fixture("beaker", "jobs.ndjson")
    assert gpu_seconds(items) == {
        "task-1": 8 * 3600,
        "task-2": 8 * (30 + 60) * 60,
        "task-3": 2 * (50 * 60 + 5),
        "task-6": 15 * 60 + 10,
    }
    assert faults(items) == []
    assert anomalies(items) == [(6, "no-budget")]


def test_a_job_is_submitted_started_and_ended(tmp_path: Path) -> None:
    assigned = {"node_id": "n1", "resource_assignment": {"gpus": [f"GPU-{n}" for n in range(8)]}}
    system = {"priority": "JOB_PRIORITY_HIGH", "preemptible": True, "timeout": "28800s"}
    content = lines(job({"exit_code": 0}, assignment_details=assigned, system_details=system))
    submitted, started, ended = events(one("beaker", tmp_path / "b", content))
    named = {"cluster": "beaker", "workload": "task-1"}
    assert (submitted.at_s, started.at_s, ended.at_s) == (CREATED_S, CREATED_S + 300, CREATED_S + 3900)
    assert {event.source for event in (submitted, started, ended)} == {"beaker/beaker"}
    assert submitted.data == Submitted(
        **named,
        account="beaker/budget-a",
        user="ada",
        gpus_milli=8000,
        time_limit_s=28_800,
        labels={"workspace": "ws-1", "priority": "HIGH", "preemptible": "true"},
    )
    assert started.data == Started(
        **named,
        run="job-1",
        attempt=1,
        gpus_milli=8000,
        hosts=["n1"],
        gpu_uuids=[f"GPU-{n}" for n in range(8)],
    )
    assert ended.data == Ended(**named, run="job-1", reason="succeeded", exit="0")


def test_keys_may_be_written_in_either_way(tmp_path: Path) -> None:
    camel = lines(job()).replace(b"task_id", b"taskId").replace(b"budget_id", b"budgetId")
    camel = camel.replace(b"container_spec", b"containerSpec").replace(
        b"resource_request", b"resourceRequest"
    )
    camel = camel.replace(b"gpu_count", b"gpuCount").replace(b"author_id", b"authorId")
    camel = camel.replace(b"workspace_id", b"workspaceId")
    assert one("beaker", tmp_path / "b", camel).events == one("beaker", tmp_path / "b", lines(job())).events


@pytest.mark.parametrize("code", ["SYSTEM_PREEMPTION", "USER_PREEMPTION", "SIBLING_TASK_PREEMPTION"])
@pytest.mark.parametrize("prefix", ["", "CANCELATION_CODE_"])
def test_a_preempted_job_was_preempted_when_it_exited(tmp_path: Path, code: str, prefix: str) -> None:
    status = {"status": "STATUS_CANCELED", "canceled": f"{DAY}09:04:00Z", "canceled_code": prefix + code}
    ended = events(one("beaker", tmp_path / "b", lines(job(status))))[-1]
    assert ended.data == Preempted(cluster="beaker", workload="task-1", run="job-1", reason=code.lower())
    assert ended.at_s == CREATED_S + 3900


@pytest.mark.parametrize(
    ("code", "odd"),
    [("IDLE", []), ("MANUAL", []), ("TIMEOUT", []), ("NODE_UNAVAILABLE", []), ("IMPOSSIBLE_TO_SCHEDULE", []),
     ("SIBLING_TASK_FAILED", []), ("SIBLING_TASK_RETRY", []), ("HEALTHCHECK_FAILED", []),
     ("BOREDOM", ["unknown-state"])],
)  # fmt: skip
def test_another_code_is_the_reason_of_the_end(tmp_path: Path, code: str, odd: list[str]) -> None:
    item = one("beaker", tmp_path / "b", lines(job({"status": "STATUS_CANCELED", "canceled_code": code})))
    assert (data(item)[-1].reason, codes(item)) == (code.lower(), odd)
    assert isinstance(data(item)[-1], Ended)


@pytest.mark.parametrize("field", ["failed", "finalized", "canceled"])
def test_a_job_that_never_exited_is_over_when_it_says_so(tmp_path: Path, field: str) -> None:
    status = {"status": "STATUS_FAILED", "exited": None, field: f"{DAY}08:15:00Z"}
    assert gpu_seconds([one("beaker", tmp_path / "b", lines(job(status)))]) == {"task-1": 8 * 600}


@pytest.mark.parametrize("state", ["STATUS_RUNNING", "STATUS_STOPPING", "STATUS_INITIALIZING"])
def test_a_job_that_is_being_stopped_holds_its_gpus_until_it_exits(tmp_path: Path, state: str) -> None:
    status = {"status": state, "exited": None, "canceled": f"{DAY}08:15:00Z"}
    assert [event.name for event in events(one("beaker", tmp_path / "b", lines(job(status))))] == [
        "workload.submitted",
        "workload.started",
    ]


def test_a_job_cancelled_in_the_queue_holds_nothing(tmp_path: Path) -> None:
    status = {
        "status": "STATUS_CANCELED",
        "scheduled": None,
        "exited": None,
        "canceled": f"{DAY}08:30:00Z",
        "canceled_code": "SYSTEM_PREEMPTION",
    }
    ended = data(one("beaker", tmp_path / "b", lines(job(status))))[-1]
    assert ended == Ended(cluster="beaker", workload="task-1", reason="system_preemption")


def test_tries_of_a_task_are_runs_of_one_workload_submitted_once(tmp_path: Path) -> None:
    first = job(workload_created=f"{DAY}07:00:00Z")
    second = job({"created": f"{DAY}09:10:00Z", "scheduled": f"{DAY}09:20:00Z", "exited": f"{DAY}09:30:00Z"},
                 id="job-2", workload_created=f"{DAY}07:00:00Z")  # fmt: skip
    items = facts(read("beaker", tmp_path / "b", lines(first, second)))
    assert events(items[0])[0] == events(items[1])[0]
    assert gpu_seconds(list(items)) == {"task-1": 8 * (3600 + 600)}


def test_a_session_is_interactive(tmp_path: Path) -> None:
    (submitted, *_) = data(one("beaker", tmp_path / "b", lines(job(task_id="", environment_id="env-1"))))
    assert (submitted.workload, submitted.kind) == ("env-1", "interactive")


def test_gpus_that_were_assigned_count_and_not_those_that_were_asked_for(tmp_path: Path) -> None:
    assigned = {"node_id": "n1", "resource_assignment": {"gpus": ["GPU-1", "GPU-2", "GPU-2"]}}
    item = one("beaker", tmp_path / "b", lines(job(assignment_details=assigned)))
    assert codes(item) == ["gpu-count-differs"]
    assert gpu_seconds([item]) == {"task-1": 2 * 3600}


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        (job({"exited": None}), "missing-value"),
        (job({"exited": f"{DAY}08:04:00Z"}), "end-before-start"),
        (job({"created": ""}), "missing-value"),
        (job({"created": None}), "bad-field"),
        (job({"created": "now"}), "not-a-time"),
        (job(id=""), "missing-value"),
        (job(container_spec={"resource_request": {"gpu_count": -8}}), "out-of-bounds"),
        (job(container_spec={"resource_request": {"gpu_count": 0.5}}), "bad-field"),
        ({**job(), "status": "STATUS_RUNNING"}, "bad-field"),
    ],
)
def test_a_job_that_cannot_be_read_is_a_dead_letter(
    tmp_path: Path, changed: dict[str, Any], code: str
) -> None:
    items = read("beaker", tmp_path / "b", lines(changed, job(id="job-2")))
    assert faults(items) == [(1, code)]
    assert len(items) == 2


def test_a_retry_gives_the_budget_the_same_account(tmp_path: Path) -> None:
    bad = job(id="", budget_id="BUDGET-A")
    fault = only(read("beaker", tmp_path / "b", lines(job(), bad)))
    item = source("beaker").retry(json.dumps({**bad, "id": "job-2"}).encode(), fault.context)
    assert data(item)[0].account.startswith("beaker/budget-a~")


def test_an_array_of_jobs_is_read_too(tmp_path: Path) -> None:
    content = json.dumps([job(), job(id="job-2")]).encode()
    assert len(facts(read("beaker", tmp_path / "b", content))) == 2
