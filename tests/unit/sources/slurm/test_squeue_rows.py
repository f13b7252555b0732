import json
from typing import Any

import pytest

from gpuledger.kernel.errors import BadRecord
from gpuledger.sources.protocol import ImportOptions
from gpuledger.sources.slurm.job import SlurmJob
from gpuledger.sources.slurm.squeue_rows import found_in
from gpuledger.sources.slurm.squeue_text import Objects
from gpuledger.sources.slurm.states import Kind

ROW = {
    "JOBID": "77",
    "ARRAY_JOB_ID": "77",
    "ARRAY_TASK_ID": "N/A",
    "STATE": "RUNNING",
    "SUBMIT_TIME": "2026-11-29T14:53:50",
    "START_TIME": "2026-11-29T14:54:00",
    "END_TIME": "2026-11-29T15:54:00",
    "TIME_LIMIT": "1:00:00",
    "USER": "ada",
    "ACCOUNT": "proj",
    "PARTITION": "gpu",
    "QOS": "normal",
    "NODELIST": "n[1-2]",
    "NODES": "2",
    "REASON": "None",
    "TRES_ALLOC": "cpu=8,gres/gpu=16,gres/gpu:h100=16",
}


def jobs(**changes: Any) -> list[SlurmJob]:  # noqa: ANN401
    row = {key: value for key, value in {**ROW, **changes}.items() if value is not None}
    return list(Objects(ImportOptions()).parse(json.dumps(row).encode()))


def job(**changes: Any) -> SlurmJob:  # noqa: ANN401
    (found,) = jobs(**changes)
    return found


def test_a_row_is_a_run() -> None:
    found = job()
    assert (found.job, found.state.kind, found.user, found.account) == ("77", Kind.RUNNING, "ada", "proj")
    assert (found.submitted_s, found.started_s, found.ended_s) == (1795964030, 1795964040, 1795967640)
    assert found.held is not None
    assert (found.held.milli, found.held.model, found.hosts) == (16000, "h100", ("n1", "n2"))
    assert (found.time_limit_s, found.untracked) == (3600, None)
    assert found.labels == {"account": "proj", "partition": "gpu", "qos": "normal"}


@pytest.mark.parametrize(
    ("changes", "number"),
    [
        ({"JOBID": "70_3"}, "70_3"),
        ({"JOBID": "70_3", "JOBID#2": "91"}, "70_3"),
        ({"JOBID": "91", "JOBID#2": "70_3"}, "70_3"),
        ({"JOBID": "91", "JOBARRAYID": "70_3"}, "70_3"),
        ({"JOBID": "91", "ARRAY_JOB_ID": "70", "ARRAY_TASK_ID": "3"}, "70_3"),
        ({"JOBID": "70+1", "JOBID#2": "71"}, "70+1"),
        ({"JOBID": "71", "HET_JOB_ID": "70", "HET_JOB_OFFSET": "1"}, "70+1"),
        ({"JOBID": "77", "HET_JOB_ID": "N/A", "HET_JOB_OFFSET": "N/A"}, "77"),
    ],
)
def test_the_number_is_the_one_that_accounting_knows(changes: dict[str, str], number: str) -> None:
    assert job(**changes).job == number


@pytest.mark.parametrize(
    ("changes", "tasks"),
    [
        ({"JOBID": "70_[2-9%3]"}, ["70_2", "70_3", "70_4"]),
        ({"JOBID": "70_[2,4]"}, ["70_2", "70_4"]),
        ({"JOBID": "70_[2-4...]"}, None),
        ({"JOBID": "77", "ARRAY_JOB_ID": "70", "ARRAY_TASK_ID": "2-9%1"}, ["70_2"]),
    ],
)
def test_tasks_that_wait_are_told_apart(changes: dict[str, str], tasks: list[str] | None) -> None:
    waiting = {"STATE": "PENDING", "NODELIST": "", "TRES_ALLOC": "gres/gpu=16", **changes}
    if tasks is None:
        with pytest.raises(BadRecord, match="is no list of tasks"):
            jobs(**waiting)
        return
    found = jobs(**waiting)
    assert [each.job for each in found] == tasks
    assert {each.asked and each.asked.milli for each in found} == {16000}
    assert {each.held for each in found} == {None}


@pytest.mark.parametrize(
    ("changes", "asked", "held"),
    [
        ({"TRES_ALLOC": None, "TRES_PER_NODE": "gres:gpu:8"}, 16000, None),
        ({"TRES_ALLOC": None, "TRES_PER_NODE": "gres/gpu:h100:4"}, 8000, None),
        ({"TRES_ALLOC": None, "TRES_PER_JOB": "gres/gpu:3", "TRES_PER_NODE": "gpu:8"}, 3000, None),
        ({"TRES_ALLOC": None, "TRES_PER_NODE": "gres:gpu:8", "NODES": "1-4"}, None, None),
        ({"TRES_ALLOC": None, "TRES_PER_NODE": "gres:gpu:8", "NODES": "125000"}, 10**9, None),
        ({"TRES_ALLOC": None, "TRES_PER_NODE": "gres:gpu:8", "NODES": "²"}, None, None),
        ({"TRES_ALLOC": None, "TRES_PER_NODE": "N/A"}, None, None),
        ({"TRES_PER_NODE": "gres/gpu:0"}, 0, 16000),
        ({"TRES_ALLOC": "cpu=8"}, None, None),
    ],
)
def test_what_was_asked_for_is_never_taken_for_what_is_held(
    changes: dict[str, str | None], asked: int | None, held: int | None
) -> None:
    found = job(**changes)
    assert (found.asked and found.asked.milli) == asked
    assert (found.held and found.held.milli) == held
    assert (found.untracked is None) == ("TRES_ALLOC" not in changes or changes["TRES_ALLOC"] is not None)


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"SUBMIT_TIME": "N/A"}, "missing-value"),
        ({"SUBMIT_TIME": None}, "missing-value"),
        ({"START_TIME": "N/A"}, "missing-value"),
        ({"STATE": ""}, "missing-value"),
        ({"STATE": "R"}, "unknown-state"),
        ({"JOBID": "x", "ARRAY_TASK_ID": None}, "bad-job-id"),
        ({"JOBID": None, "ARRAY_TASK_ID": None}, "bad-job-id"),
        ({"END_TIME": "soon"}, "not-a-time"),
        ({"TIME_LIMIT": "4 h"}, "not-a-number"),
        ({"NODELIST": "n[2-1]"}, "bad-hosts"),
        ({"RESTART_COUNT": "-1"}, "out-of-bounds"),
        ({"TRES_ALLOC": "gres/gpu=lots"}, "not-a-number"),
        ({"TRES_PER_NODE": "gpu:8", "NODES": "125001"}, "out-of-bounds"),
        ({"TRES_PER_NODE": "gpu:8", "NODES": "9" * 5000}, "not-a-number"),
        ({"NODELIST": f"n[1-{'9' * 5000}]"}, "bad-hosts"),
    ],
)
def test_what_money_depends_on_is_read_or_a_fault(changes: dict[str, str | None], code: str) -> None:
    with pytest.raises(BadRecord) as caught:
        jobs(**changes)
    assert caught.value.code == code


def test_hosts_and_reason_may_share_a_column() -> None:
    waiting = job(
        **{"STATE": "PENDING", "NODELIST": None, "REASON": None, "NODELIST(REASON)": "(Dependency)"}
    )
    assert (waiting.hosts, waiting.is_eligible) == ((), False)
    running = job(**{"NODELIST": None, "REASON": None, "NODELIST(REASON)": "n[1-2]"})
    assert running.hosts == ("n1", "n2")


def test_both_names_of_a_column_are_known() -> None:
    assert found_in(["STARTTIME", "SUBMIT_TIME", "tres"]) == {"start": "STARTTIME", "submit": "SUBMIT_TIME"}
