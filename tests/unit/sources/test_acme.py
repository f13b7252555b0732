"""Rows of the Acme trace: the times are booked, what the row computes from them is compared."""

from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.unit.sources.rows import codes, data, events, one, only, read, table
from tests.unit.sources.traces import FIXTURES, anomalies, faults, fixture, gpu_seconds

from gpuledger.events.workload import Ended, Started, Submitted
from gpuledger.kernel.errors import Refused
from gpuledger.sources.protocol import ImportOptions
from gpuledger.sources.registry import source

COLUMNS: Mapping[str, str] = {
    "job_id": "5778432",
    "user": "u5907",
    "node_num": "1",
    "gpu_num": "8",
    "cpu_num": "128",
    "type": "Pretrain",
    "state": "FAILED",
    "submit_time": "2023-03-01 00:18:22+08:00",
    "start_time": "2023-03-01 00:18:54+08:00",
    "end_time": "2023-03-01 00:20:51+08:00",
    "duration": "117",
    "queue": "32",
    "gpu_time": "936.0",
}


def test_the_published_rows_have_their_gpu_seconds() -> None:
    assert gpu_seconds(fixture("acme", "trace_seren.csv")) == {
        "5778432-1677601102": 936,
        "5778469-1677601438": 21_544,
    }
    kalos = fixture("acme", "trace_kalos.csv")
    assert gpu_seconds(kalos) == {
        "dlctk696s0jbvitv-1684321258": 64 * 8,
        "dlc1t2ypl09b8qtp-1684322922": 64 * 70,
    }
    assert anomalies(kalos) == [(2, "duration-with-queue"), (3, "duration-with-queue")]


def test_a_job_is_submitted_started_and_ended(tmp_path: Path) -> None:
    submitted, started, ended = events(one("acme", tmp_path / "a", table(COLUMNS)))
    workload = "5778432-1677601102"
    assert (submitted.at_s, started.at_s, ended.at_s) == (1677601102, 1677601134, 1677601251)
    assert submitted.data == Submitted(
        cluster="acme",
        workload=workload,
        account="acme/pretrain",
        user="u5907",
        gpus_milli=8000,
        labels={"type": "Pretrain"},
    )
    assert started.data == Started(
        cluster="acme", workload=workload, run="1", attempt=1, gpus_milli=8000, hosts=[]
    )
    assert ended.data == Ended(cluster="acme", workload=workload, run="1", reason="failed")


@pytest.mark.parametrize(
    ("changes", "odd"),
    [
        ({"duration": "118", "gpu_time": "944"}, ["duration-differs"]),
        ({"duration": "149", "gpu_time": "1192"}, ["duration-with-queue"]),
        ({"duration": "x"}, ["duration-differs"]),
        ({"queue": "33"}, ["queue-differs"]),
        ({"gpu_time": "937"}, ["gpu-time-differs"]),
        ({"duration": "", "queue": "NaN", "gpu_time": ""}, []),
        ({"state": "VANISHED"}, ["unknown-state"]),
        ({"start_time": "2023-03-01 00:18:20+08:00", "duration": "151", "gpu_time": "1208", "queue": "0"},
         ["queue-differs", "start-before-submit"]),
    ],
)  # fmt: skip
def test_what_differs_from_the_times_is_told_and_not_booked(
    tmp_path: Path, changes: dict[str, str], odd: list[str]
) -> None:
    item = one("acme", tmp_path / "a", table(COLUMNS, **changes))
    assert sorted(codes(item)) == odd
    start_s, end_s = (event.at_s for event in events(item)[1:])
    assert sum(gpu_seconds([item]).values()) == 8 * (end_s - start_s)


@pytest.mark.parametrize("missing", ["", "NaT", "None"])
def test_a_job_without_a_start_never_held_anything(tmp_path: Path, missing: str) -> None:
    item = one("acme", tmp_path / "a", table(COLUMNS, start_time=missing, duration="", queue="", gpu_time=""))
    _, ended = data(item)
    assert (ended.run, ended.reason) == (None, "never-started")
    assert codes(item) == []


def test_a_job_without_gpus_is_booked_with_0(tmp_path: Path) -> None:
    item = one("acme", tmp_path / "a", table(COLUMNS, gpu_num="0", gpu_time="0"))
    assert sum(gpu_seconds([item]).values()) == 0


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"end_time": ""}, "missing-value"),
        ({"end_time": "2023-03-01 00:18:53+08:00"}, "end-before-start"),
        ({"gpu_num": "8.5"}, "not-a-number"),
        ({"type": ""}, "missing-value"),
        ({"user": ""}, "missing-value"),
    ],
)
def test_a_row_that_cannot_be_read_is_a_dead_letter(
    tmp_path: Path, changes: dict[str, str], code: str
) -> None:
    assert faults(read("acme", tmp_path / "a", table(COLUMNS, **changes))) == [(2, code)]


def test_a_retry_gives_the_type_the_same_account(tmp_path: Path) -> None:
    content = table(COLUMNS) + table(COLUMNS, type="PRETRAIN", user="").split(b"\n")[1] + b"\n"
    fault = only(read("acme", tmp_path / "a", content))
    mended = fault.raw.replace(b"5778432,,", b"5778433,u1,")
    account = data(source("acme").retry(mended, fault.context))[0].account
    assert account.startswith("acme/pretrain~")


def test_totals_of_clusters_are_no_jobs() -> None:
    with pytest.raises(Refused, match="holds totals of whole clusters, no jobs"):
        source("acme").read(FIXTURES / "acme/cluster_summary.csv", ImportOptions())
