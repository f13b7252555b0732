"""Rows of a ClusterCockpit archive become jobs with devices and measured use."""

from decimal import Decimal
from pathlib import Path

import pytest
from tests.unit.sources.rows import COCKPIT_COLUMNS, codes, data, events, one, only, read, table

from gpuledger.sources.protocol import ImportOptions


def test_a_cockpit_job_has_devices_limit_and_measured_use(tmp_path: Path) -> None:
    item = one("clustercockpit", tmp_path / "c", table(COCKPIT_COLUMNS))
    submitted, started, ended, first, second = data(item)
    workload = "679694-1675777167"
    assert [event.id for event in events(item)] == [
        f"{workload}/{suffix}"
        for suffix in ("submitted", "started", "ended", "node001/sampled", "node002/sampled")
    ]
    assert (submitted.cluster, submitted.account, submitted.user) == ("alex", "alex/proj001", "user001")
    assert (submitted.time_limit_s, submitted.gpu_model, submitted.gpus_milli) == (86_340, "a40", 2000)
    assert started.hosts == ["node001", "node002"]
    assert started.gpu_uuids == ["node001/00000000:E1:00.0", "node002/00000000:E1:00.0"]
    assert ended.reason == "completed"
    for sample, host in ((first, "node001"), (second, "node002")):
        assert (sample.host, sample.interval_s) == (host, 83)
        (gpu,) = sample.gpus
        assert (gpu.uuid, gpu.run) == (f"{host}/00000000:E1:00.0", f"{workload}/1")
        assert gpu.gpu_util == Decimal("71.86")
    assert events(item)[3].at_s == 1_675_777_167


@pytest.mark.parametrize("changes", [{"acc_utilization_avg": ""}, {"duration": "0"}, {"accelerators": ""}])
def test_what_was_not_measured_is_absent(tmp_path: Path, changes: dict[str, str]) -> None:
    item = one("clustercockpit", tmp_path / "c", table(COCKPIT_COLUMNS, **changes))
    assert [event.name for event in events(item)] == [
        "workload.submitted",
        "workload.started",
        "workload.ended",
    ]


def test_a_mean_over_more_than_a_year_is_not_measured(tmp_path: Path) -> None:
    """No reader of the stream takes a sample that long; the job itself is booked."""
    year_s = 366 * 86_400
    for duration_s, samples, found in ((year_s, 2, []), (year_s + 1, 0, ["impossible-value"])):
        told = {"duration": str(duration_s), "walltime": ""}
        item = one("clustercockpit", tmp_path / "c", table(COCKPIT_COLUMNS, **told))
        assert sum(event.name == "telemetry.sampled" for event in events(item)) == samples
        assert codes(item) == found
        assert events(item)[2].at_s == 1_675_777_167 + duration_s


def test_a_job_without_gpus_is_accepted_with_none(tmp_path: Path) -> None:
    none = {"num_acc": "0", "accelerators": "", "acc_utilization_avg": "", "subcluster": "main"}
    item = one("clustercockpit", tmp_path / "c", table(COCKPIT_COLUMNS, **none))
    submitted, started, _ = data(item)
    assert (submitted.gpus_milli, submitted.gpu_model, started.gpu_uuids) == (0, None, None)


def test_the_oddities_of_cockpit_jobs(tmp_path: Path) -> None:
    for changes, code in (
        ({"duration": "90000"}, "past-time-limit"),
        ({"num_acc": "3"}, "gpu-count-differs"),
        ({"accelerators": "node001/;node002/00000000:E1:00.0"}, "gpu-count-differs"),
        ({"state": "vanished"}, "unknown-state"),
    ):
        item = one("clustercockpit", tmp_path / "c", table(COCKPIT_COLUMNS, **changes))
        assert codes(item) == [code]
        assert "c:2: " in item.anomalies[0].message


def test_a_cockpit_job_that_runs_has_no_end(tmp_path: Path) -> None:
    item = one("clustercockpit", tmp_path / "c", table(COCKPIT_COLUMNS, state="running", duration="0"))
    assert [event.name for event in events(item)] == ["workload.submitted", "workload.started"]


def test_clusters_imported_as_one_keep_their_jobs_apart(tmp_path: Path) -> None:
    item = one("clustercockpit", tmp_path / "c", table(COCKPIT_COLUMNS), ImportOptions(cluster="nhr"))
    assert data(item)[0].workload == "alex:679694-1675777167"
    assert data(item)[0].account == "nhr/proj001"
    assert events(item)[0].source == "trace/clustercockpit/nhr"


@pytest.mark.parametrize(
    ("changes", "code", "told"),
    [
        ({"duration": "-1"}, "end-before-start", "duration: '-1'"),
        ({"num_acc": "x"}, "not-a-number", "num_acc: 'x'"),
        ({"start_time": "0"}, "missing-value", "start_time"),
        ({"start_time": "1675777167000"}, "time-out-of-range", "start_time"),
        ({"start_time": "2023-02-07 13:39:27"}, "not-a-number", "start_time"),
        ({"acc_utilization_avg": "100.1"}, "out-of-bounds", "acc_utilization_avg: '100.1'"),
        ({"acc_utilization_avg": "-0.1"}, "out-of-bounds", "acc_utilization_avg"),
        ({"acc_utilization_avg": "nan"}, "not-a-number", "acc_utilization_avg"),
        ({"acc_utilization_avg": "1e-999999"}, "out-of-bounds", "acc_utilization_avg"),
        ({"accelerators": "node009/00000000:E1:00.0"}, "bad-device", "node009"),
        ({"accelerators": "00000000:E1:00.0"}, "bad-device", "00000000:E1:00.0"),
        ({"project": ""}, "missing-value", "project"),
        ({"user": ""}, "missing-value", "user"),
        ({"cluster": ""}, "missing-value", "cluster"),
        ({"subcluster": ""}, "missing-value", "subcluster"),
        ({"walltime": "-5"}, "out-of-bounds", "walltime"),
    ],
)
def test_clustercockpit_checks_its_fields(
    tmp_path: Path, changes: dict[str, str], code: str, told: str
) -> None:
    fault = only(read("clustercockpit", tmp_path / "c.csv", table(COCKPIT_COLUMNS, **changes)))
    assert fault.code == code
    assert told in fault.message
    assert "c.csv:2: " in fault.message
