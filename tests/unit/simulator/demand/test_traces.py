"""Traces as demand."""

import gzip
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path

import pytest

from gpuledger.demo import DATA
from gpuledger.kernel.amounts import gpu_hours
from gpuledger.kernel.errors import Refused
from gpuledger.simulator.demand.traces import Trace, TraceDemand, read_trace
from gpuledger.simulator.jobs import Job
from gpuledger.sources.protocol import ImportOptions

HELIOS = "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue\n"
STATES = (
    "time,vc,total_job_num,running_job_num,pending_job_num,total_gpu_num,running_gpu_num,pending_gpu_num,"
    "idle_gpu_num,gpu_utilization\n2020-05-01 00:00:00,vc1,3,2,1,8,8,4,0,1.0\n"
)


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def swf(tmp_path: Path, *lines: str) -> Trace:
    text = "; UnixStartTime: 1000000\n; Note: processors are GPUs\n" + "".join(line + "\n" for line in lines)
    return read_trace("swf", [write(tmp_path / "log.swf", text)], ImportOptions())


def jobs(trace: Trace, start_s: int = 0, minimum_runtime_s: int = 3600) -> Sequence[Job]:
    return list(TraceDemand(trace, start_s, minimum_runtime_s).first())


def test_a_log_in_the_standard_format_is_demand_in_order_of_submission(tmp_path: Path) -> None:
    trace = swf(
        tmp_path,
        "2 50 7 300 4 -1 -1 4 600 -1 1 5 9 -1 -1 -1 -1 -1",
        "1 20 0 100 2 -1 -1 2 -1 -1 1 6 9 -1 -1 -1 -1 -1",
    )
    first, second = jobs(trace)
    assert (first.gpus_milli, first.submitted_s, first.work_s, first.user) == (2000, 1_000_020, 100, "6")
    assert (second.gpus_milli, second.submitted_s, second.work_s, second.time_limit_s) == (
        4000, 1_000_050, 300, 600,
    )  # fmt: skip
    assert {job.account for job in (first, second)} == {"swf/9"}
    assert {job.minimum_runtime_s for job in (first, second)} == {3600}
    assert trace.accounts == ["swf/9"]
    assert trace.notes == []


def test_a_job_that_ran_in_parts_works_for_as_long_as_all_of_them(tmp_path: Path) -> None:
    trace = swf(
        tmp_path,
        "1 0 5 300 2 -1 -1 2 -1 -1 1 1 1 -1 -1 -1 -1 -1",
        "1 0 5 100 2 -1 -1 2 -1 -1 2 1 1 -1 -1 -1 -1 -1",
        "1 0 40 200 2 -1 -1 2 -1 -1 3 1 1 -1 -1 -1 -1 -1",
    )
    assert [job.work_s for job in jobs(trace)] == [300]


def test_what_is_no_demand_is_left_out_and_told(tmp_path: Path) -> None:
    trace = swf(
        tmp_path,
        "1 0 0 100 2 -1 -1 2 -1 -1 1 1 1 -1 -1 -1 -1 -1",
        "2 1 9 0 -1 -1 -1 2 -1 -1 5 1 1 -1 -1 -1 -1 -1",
        "3 2 9 50 0 -1 -1 0 -1 -1 1 1 1 -1 -1 -1 -1 -1",
        "4 3 -1 50 1 -1 -1 1 -1 -1 1 1 1 -1 -1 -1 -1 -1",
        "5 4 6 50",
    )
    assert [job.job for job in jobs(trace)] == ["1-1000000"]
    assert [note.partition(", the first")[0] for note in trace.notes] == [
        "left out: 2 records that cannot be read",
        "left out: 1 jobs without GPUs",
        "left out: 1 jobs that never started: how long they would have run is not known",
    ]
    assert "log.swf:6: wait time" in trace.notes[0]


def test_a_longer_run_than_was_asked_for_gets_the_time_that_it_took(tmp_path: Path) -> None:
    (job,) = jobs(swf(tmp_path, "1 0 0 100 2 -1 -1 2 60 -1 1 1 1 -1 -1 -1 -1 -1"))
    assert (job.work_s, job.time_limit_s) == (100, 100)


def test_a_run_of_no_time_works_for_a_second(tmp_path: Path) -> None:
    assert [job.work_s for job in jobs(swf(tmp_path, "1 0 0 0 2 -1 -1 2 -1 -1 1 1 1 -1 -1 -1 -1 -1"))] == [1]


def test_what_was_submitted_before_the_beginning_is_left_out(tmp_path: Path) -> None:
    trace = swf(tmp_path, *(f"{n} {n * 10} 0 5 1 -1 -1 1 -1 -1 1 1 1 -1 -1 -1 -1 -1" for n in range(4)))
    assert [job.submitted_s for job in jobs(trace, 1_000_015)] == [1_000_020, 1_000_030]


def test_who_declares_none_has_the_minimum_runtime_of_the_scenario(tmp_path: Path) -> None:
    trace = swf(tmp_path, "1 0 0 100 2 -1 -1 2 -1 -1 1 1 1 -1 -1 -1 -1 -1")
    assert [job.minimum_runtime_s for job in jobs(trace, minimum_runtime_s=900)] == [900]


def test_nobody_asks_again(tmp_path: Path) -> None:
    trace = swf(tmp_path, "1 0 0 100 2 -1 -1 2 -1 -1 1 1 1 -1 -1 -1 -1 -1")
    demand = TraceDemand(trace, 0)
    assert list(demand.after(next(demand.first()), 1)) == []


def test_the_bundled_philly_trace_is_whole() -> None:
    """82 247 jobs and 978 078.473 GPU-hours, as the data's README says."""
    trace = read_trace("philly", [DATA / "philly.csv.gz"], ImportOptions())
    found = jobs(trace)
    assert len(found) == 82_247
    assert gpu_hours(sum(job.gpus_milli * job.work_s for job in found)) == Decimal("978078.473")
    assert [job.submitted_s for job in found] == sorted(job.submitted_s for job in found)
    assert len(trace.accounts) == 15
    assert trace.notes == []


def test_the_bundled_openb_trace_brings_its_hosts() -> None:
    files = [DATA / "openb_node_list_gpu_node.csv.gz", DATA / "openb_pod_list_default.csv.gz"]
    trace = read_trace("openb", files, ImportOptions())
    assert sum(host.gpus_milli for host in trace.hosts) == 6_212_000
    assert len(trace.hosts) == 1_213
    assert (len(jobs(trace)), trace.start_s, trace.days_from(0)) == (6_203, 0, 150)
    assert trace.notes == [
        "left out: 1088 jobs without GPUs",
        "left out: 861 jobs that never started: how long they would have run is not known",
    ]


def test_job_tables_of_helios_are_demand(tmp_path: Path) -> None:
    text = (
        HELIOS
        + "7,u1,vc1,8,4,1,COMPLETED,2020-05-01 00:00:00,2020-05-01 01:00:00,2020-05-01 03:00:00,7200,3600\n"
    )
    path = tmp_path / "cluster_log.csv.gz"
    path.write_bytes(gzip.compress(text.encode()))
    (job,) = jobs(read_trace("helios", [path], ImportOptions(timezone="Asia/Shanghai")))
    assert (job.account, job.user, job.work_s, job.gpus_milli) == ("helios/vc1", "u1", 7200, 8000)


def test_states_by_the_minute_are_no_demand(tmp_path: Path) -> None:
    path = write(tmp_path / "states.csv", STATES)
    with pytest.raises(Refused, match="no job of it was submitted and ran") as caught:
        read_trace("helios", [path], ImportOptions(timezone="Asia/Shanghai"))
    assert "left out: 1 jobs whose submission is not told" in caught.value.message
    assert "when it was submitted" in caught.value.hint


def test_a_source_that_is_not_known_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="source 'phily' is not known"):
        read_trace("phily", [tmp_path / "x"], ImportOptions())
