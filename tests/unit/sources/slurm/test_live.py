import pytest

from gpuledger.sources.lines import Broken, Line
from gpuledger.sources.protocol import ImportOptions
from gpuledger.sources.slurm.controller import ControllerReader
from gpuledger.sources.slurm.live import is_eligible, start_of
from gpuledger.sources.slurm.scontrol_jobs import JobBlocks
from gpuledger.sources.slurm.states import Kind
from gpuledger.sources.values import Odd


@pytest.mark.parametrize(
    ("kind", "reason", "eligible"),
    [
        (Kind.PENDING, "Priority", True),
        (Kind.PENDING, "", True),
        (Kind.PENDING, "Dependency", False),
        (Kind.PENDING, "job requeued in held state", False),
        (Kind.PENDING, "JobArrayTaskLimit", True),
        (Kind.RUNNING, "Dependency", True),
    ],
)
def test_only_what_waits_can_be_held_back(kind: Kind, reason: str, *, eligible: bool) -> None:
    assert is_eligible(kind, reason) is eligible


@pytest.mark.parametrize(
    ("kind", "hosts", "started_s"),
    [
        (Kind.ENDED, (), None),
        (Kind.ENDED, ("n1",), 5),
        (Kind.REQUEUED, (), None),
        (Kind.RUNNING, (), 5),
        (Kind.SUSPENDED, (), 5),
        (Kind.PENDING, (), 5),
    ],
)
def test_what_is_over_and_never_had_a_host_did_not_start(
    kind: Kind, hosts: tuple[str, ...], started_s: int | None
) -> None:
    assert start_of(kind, 5, hosts) == started_s


def line(raw: bytes) -> Line:
    return Line(1, raw, 0, ended=True)


WAITING = b'{"job_id": 1, "job_state": "PENDING", "submit_time": 5, "array_job_id": 1, "array_task_string": "1-5%2"}'
TASK = b'{"job_id": 2, "job_state": "RUNNING", "submit_time": 5, "start_time": 6, "array_job_id": 1, "array_task_id":0}'


def test_tasks_that_run_are_counted_per_cluster_and_broken_records_are_passed_over() -> None:
    reader = ControllerReader(ImportOptions())
    elsewhere = TASK.replace(b'"job_id": 2', b'"job_id": 3, "cluster": "other"')
    broken = Broken(1, "line-too-long", "", "", TASK, 0, partial=False)
    reader.count_tasks([line(WAITING), line(TASK), line(elsewhere), line(b"{"), broken])
    assert [job.job for job in reader.parse(WAITING)] == ["1_1"]


def test_a_task_that_a_listing_tells_twice_is_one() -> None:
    reader = ControllerReader(ImportOptions())
    reader.count_tasks([line(WAITING), line(TASK), line(TASK)])
    assert [job.job for job in reader.parse(WAITING)] == ["1_1"]


def test_without_a_limit_nothing_needs_to_be_counted() -> None:
    reader = ControllerReader(ImportOptions())
    reader.count_tasks([line(WAITING.replace(b"%2", b"")), line(TASK)])
    assert [job.job for job in reader.parse(WAITING)] == ["1_1", "1_2"]


@pytest.mark.parametrize(
    ("value", "at_s", "odd"),
    [
        ("2026-11-29T14:53:50", 1795992830, []),
        ("2026-11-01T01:30:00", 1793521800, ["ambiguous-time"]),
        ("Unknown", None, []),
        ("NONE", None, []),
        ("N/A", None, []),
        ("", None, []),
    ],
)
def test_times_are_local_and_doubtful_ones_are_told(value: str, at_s: int | None, odd: list[str]) -> None:
    oddities: list[Odd] = []
    reader = JobBlocks(ImportOptions(timezone="America/Los_Angeles"))
    assert reader.instant("StartTime", value, oddities) == at_s
    assert [code for code, _ in oddities] == odd
