"""What the controller tells in JSON, on what it told while every case happened."""

import gzip
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.unit.sources.slurm.live import FIXTURES, Items, codes, events, fault, read, read_text

from gpuledger.events import workload
from gpuledger.kernel.errors import BadRecord, Refused
from gpuledger.sources.registry import source

SOURCE = "slurm-squeue-json"
JOB: dict[str, Any] = {
    "job_id": 77,
    "cluster": "alpha",
    "account": "proj",
    "user_name": "ada",
    "partition": "gpu",
    "qos": "normal",
    "job_state": ["RUNNING"],
    "state_reason": "None",
    "submit_time": {"set": True, "infinite": False, "number": 1795964000},
    "eligible_time": {"set": True, "infinite": False, "number": 1795964000},
    "start_time": {"set": True, "infinite": False, "number": 1795964100},
    "end_time": {"set": True, "infinite": False, "number": 1795967700},
    "nodes": "n[1-2]",
    "tres_req_str": "cpu=2,node=2,gres/gpu=16",
    "tres_alloc_str": "cpu=2,node=2,gres/gpu=16,gres/gpu:h100=16",
    "time_limit": {"set": True, "infinite": False, "number": 60},
    "restart_cnt": 0,
}
PENDING = JOB | {"job_state": "PENDING", "nodes": "", "tres_alloc_str": ""}


def of(tmp_path: Path, *jobs: dict[str, Any], **options: Any) -> Items:  # noqa: ANN401
    return read_text(SOURCE, tmp_path, json.dumps({"jobs": jobs}, indent=1), **options)


def submissions(items: Items) -> list[tuple[str, int, bool]]:
    """Return what was submitted, how many GPUs it asks for, and whether it may start."""
    return [
        (event.data.workload.partition("-")[0], event.data.gpus_milli // 1000, event.data.eligible_at is None)
        for event in events(items)
        if isinstance(event.data, workload.Submitted)
    ]


@pytest.mark.parametrize(
    ("file", "records", "facts"),
    [
        ("lab-squeue-running.json.gz", 15, {"submitted": 15, "started": 12, "located": 2}),
        (
            "lab-squeue-suspended.json.gz",
            17,
            {"submitted": 18, "started": 12, "located": 2, "ended": 6, "suspended": 1},
        ),
        (
            "lab-squeue-nodedown.json.gz",
            18,
            {"submitted": 18, "started": 17, "located": 4, "ended": 17, "resumed": 1},
        ),
        (
            "../slurm/captures/squeue-live.json.gz",
            29,
            {"submitted": 29, "started": 27, "located": 6, "ended": 29, "resumed": 1},
        ),
        ("../slurm/rivos/squeue_out.json.gz", 2, {"submitted": 11, "started": 1, "resumed": 1}),
        ("../slurm/slurm-web/slurm-job-gpus-multi-nodes.json.gz", 1, {"submitted": 1, "started": 1}),
        ("../slurm/telegraf/slurmrestd-jobs.json.gz", 3, {"submitted": 3, "started": 3, "ended": 1}),
    ],
)
def test_every_job_of_a_real_picture_is_read(file: str, records: int, facts: dict[str, int]) -> None:
    items = read(SOURCE, file)
    assert len(items) == records
    names = [event.name.removeprefix("workload.") for event in events(items)]
    assert {name: names.count(name) for name in names} == facts
    assert not codes(items)


def test_an_expected_start_or_end_is_none(tmp_path: Path) -> None:
    assert [event.name for event in events(of(tmp_path, PENDING))] == ["workload.submitted"]
    assert [event.name for event in events(of(tmp_path, JOB))] == ["workload.submitted", "workload.started"]


def test_one_picture_after_another_tells_a_fact_once_and_then_better(tmp_path: Path) -> None:
    """Nothing that goes on changes a fact; what happened since is another one, which counts more."""
    first = [event.id for event in events(of(tmp_path, JOB))]
    later = JOB | {"end_time": 1795967999, "priority": 5, "last_sched_evaluation": 1795964500}
    assert [event.id for event in events(of(tmp_path, later))] == first
    over = events(of(tmp_path, JOB | {"job_state": "COMPLETED"}))
    assert [event.data.version for event in over] == [3, 3, 3]
    assert {event.data.workload for event in over} == {"77-1795964000"}


@pytest.mark.parametrize("state", ["CANCELLED", ["CANCELLED"], "FAILED", ["DEADLINE"]])
def test_what_was_over_before_it_had_a_host_never_started(tmp_path: Path, state: object) -> None:
    gone = PENDING | {"job_state": state, "start_time": 1795964100, "end_time": 1795964100}
    assert [event.name for event in events(of(tmp_path, gone))] == ["workload.submitted", "workload.ended"]


@pytest.mark.parametrize(
    ("reason", "eligible"),
    [
        ("Resources", True),
        ("Priority", True),
        ("QOSMaxGRESPerUser", True),
        ("AssocGrpGRES", True),
        ("Dependency", False),
        ("DependencyNeverSatisfied", False),
        ("JobHeldUser", False),
        ("JobHeldAdmin", False),
        ("BadConstraints", False),
        ("launch failed requeued held", False),
    ],
)
def test_what_waits_for_something_else_than_gpus_is_not_eligible(
    tmp_path: Path, reason: str, *, eligible: bool
) -> None:
    assert submissions(of(tmp_path, PENDING | {"state_reason": reason})) == [("77", 16, eligible)]


def test_a_job_that_was_held_back_and_is_no_more_counts_as_it_is_now(tmp_path: Path) -> None:
    held, free = (
        events(of(tmp_path, PENDING | {"state_reason": reason}))[0].data
        for reason in ("Dependency", "Priority")
    )
    assert held.version < free.version


def test_an_announced_begin_is_when_it_is_eligible(tmp_path: Path) -> None:
    begin = PENDING | {"state_reason": "BeginTime", "eligible_time": 1795990000}
    (submitted,) = events(of(tmp_path, begin))
    assert submitted.data.eligible_at.timestamp() == 1795990000


ARRAY = PENDING | {"array_job_id": 70, "array_task_id": None, "array_task_string": "2-9%4"}


def task(number: int, state: str) -> dict[str, Any]:
    return JOB | {"job_id": 90 + number, "array_job_id": 70, "array_task_id": number, "job_state": state}


@pytest.mark.parametrize(
    ("tasks", "running", "waiting"),
    [
        ("2-9%4", 0, ["70_2", "70_3", "70_4", "70_5"]),
        ("2-9%4", 1, ["70_2", "70_3", "70_4"]),
        ("2-3%4", 1, ["70_2", "70_3"]),
        ("2,5,7-9:2", 2, ["70_2", "70_5", "70_7", "70_9"]),
    ],
)
def test_of_an_array_as_many_tasks_wait_as_its_limit_lets_start(
    tmp_path: Path, tasks: str, running: int, waiting: list[str]
) -> None:
    others = [task(number, "RUNNING") for number in range(running)]
    items = of(tmp_path, ARRAY | {"array_task_string": tasks}, *others)
    assert submissions(items[:1]) == [(name, 16, True) for name in waiting]


def test_an_array_at_its_limit_asks_for_nothing_more(tmp_path: Path) -> None:
    running = [task(0, "RUNNING"), task(1, "SUSPENDED"), task(10, "RUNNING"), task(11, "RUNNING")]
    items = of(tmp_path, ARRAY, *running, task(12, "COMPLETED"))
    assert submissions(items[:1]) == [("70_2", 16, False)]


def test_gpus_that_are_not_tracked_are_counted_from_what_each_host_holds() -> None:
    started = events(read(SOURCE, "../slurm/slurm-web/slurm-job-gpus-multi-nodes.json.gz"))[1].data
    assert (started.gpus_milli, started.gpu_model, started.hosts) == (8000, "h100", ["gpu1", "gpu2"])


def test_a_size_that_changed_begins_another_run_as_it_does_in_accounting() -> None:
    found = [
        event
        for event in events(read(SOURCE, "../slurm/captures/squeue-live.json.gz"))
        if event.data.workload.startswith("27-")
    ]
    assert [(event.name, event.at_s) for event in found] == [
        ("workload.submitted", 1795964238),
        ("workload.started", 1795964238),
        ("workload.ended", 1795964247),
    ]


def test_a_broken_job_is_told_and_the_others_are_read(tmp_path: Path) -> None:
    items = of(tmp_path, JOB | {"submit_time": 0}, JOB | {"job_state": "ASLEEP"}, JOB)
    assert codes(items) == ["missing-value", "unknown-state"]
    assert len(events(items[2:])) == 2


def test_a_fault_is_mended_by_a_retry(tmp_path: Path) -> None:
    found = fault(of(tmp_path, JOB | {"job_state": "ASLEEP"}, cluster="alpha"))
    context = msgspec.json.decode(msgspec.json.encode(found.context))
    with pytest.raises(BadRecord):
        source(SOURCE).retry(found.raw, context)
    mended = source(SOURCE).retry(found.raw.replace(b"ASLEEP", b"RUNNING"), context)
    assert [event for event, _ in mended.events] == events(of(tmp_path, JOB, cluster="alpha"))


@pytest.mark.parametrize("text", [b"", b"{}", b'{"jobs": 5}', b"No jobs", b'{"nodes": []}'])
def test_another_file_is_refused(tmp_path: Path, text: bytes) -> None:
    with pytest.raises(Refused):
        read_text(SOURCE, tmp_path, text)


def test_the_size_is_that_on_disk_and_a_banner_is_told(tmp_path: Path) -> None:
    path = FIXTURES / "../slurm/rivos/squeue_out.json.gz"
    assert source(SOURCE).size(path) == path.stat().st_size
    assert codes(read_text(SOURCE, tmp_path, b"hi\n" + gzip.decompress(path.read_bytes()))) == ["banner"]
