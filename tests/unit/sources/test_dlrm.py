"""Instances of the DLRM trace, cut at both of its edges."""

from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.unit.sources.rows import codes, data, events, one, only, read, table
from tests.unit.sources.traces import anomalies, faults, fixture, gpu_seconds

from gpuledger.events.workload import Ended, Started, Submitted
from gpuledger.sources.protocol import Translated
from gpuledger.sources.registry import source

COLUMNS: Mapping[str, str] = {
    "instance_sn": "instance_1",
    "role": "HN",
    "app_name": "app_0",
    "gpu_request": "2",
    "gpu_limit": "2",
    "creation_time": "1000.0",
    "scheduled_time": "1010.0",
    "deletion_time": "8210.0000000002",
}
EDGES = {"creation_time": "", "scheduled_time": "", "deletion_time": ""}


def test_the_fixture_has_its_gpu_seconds_by_hand() -> None:
    items = fixture("dlrm", "disaggregated_DLRM_trace.csv")
    assert gpu_seconds(items) == {
        "instance_1": 9000,
        "instance_2": 3600,
        "instance_3": 2 * 7200,
        "instance_4": 7000,
        "instance_5": 0,
        "instance_7": 600,
    }
    assert faults(items) == []
    assert anomalies(items) == []


def test_an_instance_waits_runs_and_ends(tmp_path: Path) -> None:
    submitted, started, ended = events(one("dlrm", tmp_path / "d", table(COLUMNS)))
    named = {"cluster": "dlrm", "workload": "instance_1"}
    assert (submitted.at_s, started.at_s, ended.at_s) == (1000, 1010, 8210)
    assert submitted.data == Submitted(
        **named,
        account="dlrm/app_0",
        user="-",
        gpus_milli=2000,
        labels={"app": "app_0", "role": "HN"},
    )
    assert started.data == Started(**named, run="1", attempt=1, gpus_milli=2000, hosts=[])
    assert ended.data == Ended(**named, run="1", reason="deleted")


def test_an_instance_older_than_the_trace_counts_from_its_beginning_and_says_nothing_of_a_wait(
    tmp_path: Path,
) -> None:
    started, ended = events(
        one("dlrm", tmp_path / "d", table(COLUMNS, creation_time="NaN", scheduled_time=""))
    )
    assert (started.at_s, ended.at_s) == (0, 8210)
    assert (started.data.account, started.data.user) == ("dlrm/app_0", "-")  # type: ignore[attr-defined]


def test_an_instance_that_outlived_the_trace_is_cut_at_its_last_second(tmp_path: Path) -> None:
    rows = table(COLUMNS) + table(COLUMNS, instance_sn="instance_2", **EDGES).split(b"\n")[1] + b"\n"
    item = read("dlrm", tmp_path / "d", rows)[1]
    assert isinstance(item, Translated)
    assert [event.at_s for event in events(item)] == [0, 8210]
    assert (data(item)[-1].reason, data(item)[-1].estimated) == ("trace-end", True)


def test_an_instance_that_was_never_scheduled_holds_nothing(tmp_path: Path) -> None:
    _, ended = data(one("dlrm", tmp_path / "d", table(COLUMNS, scheduled_time="")))
    assert (ended.run, ended.reason) == (None, "never-started")


@pytest.mark.parametrize(
    ("changes", "odd"),
    [
        ({"role": "XN"}, ["unknown-state"]),
        ({"gpu_limit": "3"}, ["gpu-count-differs"]),
        ({"scheduled_time": "999"}, ["start-before-submit"]),
    ],
)
def test_what_is_odd_is_told(tmp_path: Path, changes: dict[str, str], odd: list[str]) -> None:
    assert codes(one("dlrm", tmp_path / "d", table(COLUMNS, **changes))) == odd


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"deletion_time": "1009"}, "end-before-start"),
        ({"deletion_time": "999", "scheduled_time": ""}, "end-before-start"),
        ({"creation_time": "soon"}, "not-a-number"),
        ({"gpu_request": "0.5"}, "not-a-number"),
        ({"app_name": ""}, "missing-value"),
    ],
)
def test_a_row_that_cannot_be_read_is_a_dead_letter(
    tmp_path: Path, changes: dict[str, str], code: str
) -> None:
    assert faults(read("dlrm", tmp_path / "d", table(COLUMNS, **changes))) == [(2, code)]


def test_a_retry_knows_where_the_trace_ends(tmp_path: Path) -> None:
    bad = table(COLUMNS, instance_sn="instance_2", role="", **EDGES).split(b"\n")[1]
    fault = only(read("dlrm", tmp_path / "d", table(COLUMNS) + bad + b"\n"))
    item = source("dlrm").retry(bad.replace(b",,app", b",HN,app"), fault.context)
    assert gpu_seconds([item]) == {"instance_2": 2 * 8210}
