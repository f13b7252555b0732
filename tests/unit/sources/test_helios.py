"""The Helios trace: jobs of its log, and which of its tables is which."""

from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.unit.sources.rows import codes, data, events, one, read, table
from tests.unit.sources.traces import FIXTURES, SHANGHAI, anomalies, faults, fixture, gpu_seconds

from gpuledger.events.host import Registered
from gpuledger.events.workload import Ended, Started, Submitted
from gpuledger.kernel.errors import Refused
from gpuledger.sources.protocol import ImportOptions
from gpuledger.sources.registry import source

COLUMNS: Mapping[str, str] = {
    "job_id": "1425512",
    "user": "uVMrF",
    "vc": "vchbv",
    "gpu_num": "4",
    "cpu_num": "16",
    "node_num": "1",
    "state": "FAILED",
    "submit_time": "2020-06-09 18:41:27",
    "start_time": "2020-06-09 18:41:37",
    "end_time": "2020-06-09 18:45:46",
    "duration": "249",
    "queue": "10",
}
SUBMITTED_S = 1_591_699_287


def test_the_published_rows_have_their_gpu_seconds() -> None:
    items = fixture("helios", "cluster_log.csv", SHANGHAI)
    assert gpu_seconds(items) == {
        "1425511-1591699261": 36_848,
        "1425512-1591699287": 4 * 249,
        "1425513-1591699288": 675_233,
    }
    assert anomalies(items) == []


def test_a_job_is_submitted_started_and_ended_in_the_zone_that_is_named(tmp_path: Path) -> None:
    submitted, started, ended = events(one("helios", tmp_path / "h", table(COLUMNS), SHANGHAI))
    named = {"cluster": "helios", "workload": f"1425512-{SUBMITTED_S}"}
    assert (submitted.at_s, started.at_s, ended.at_s) == (SUBMITTED_S, SUBMITTED_S + 10, SUBMITTED_S + 259)
    assert submitted.data == Submitted(
        **named, account="helios/vchbv", user="uVMrF", gpus_milli=4000, labels={"vc": "vchbv"}
    )
    assert started.data == Started(**named, run="1", attempt=1, gpus_milli=4000, hosts=[])
    assert ended.data == Ended(**named, run="1", reason="failed")


@pytest.mark.parametrize(
    "name", ["cluster_log.csv", "Earth_gpu_number.csv", "earth_vc_state_changes_2020-05.csv.gz"]
)
def test_none_of_its_tables_is_read_without_a_zone(name: str) -> None:
    with pytest.raises(Refused, match="--tz: the times of the Helios trace have no zone") as refused:
        source("helios").read(FIXTURES / "helios" / name, ImportOptions())
    assert "--tz Asia/Shanghai" in refused.value.hint


def test_a_zone_without_summer_time_moves_every_time_alike(tmp_path: Path) -> None:
    content = table(COLUMNS)
    fixed = events(one("helios", tmp_path / "h", content, ImportOptions(timezone="Etc/GMT-8")))
    assert next(event.at_s for event in fixed) == SUBMITTED_S


@pytest.mark.parametrize(
    ("changes", "odd"),
    [
        ({"duration": "250"}, ["duration-differs"]),
        ({"queue": "11"}, ["queue-differs"]),
        ({"state": "SUSPENDED"}, []),
        ({"state": "VANISHED"}, ["unknown-state"]),
    ],
)
def test_what_is_odd_is_told(tmp_path: Path, changes: dict[str, str], odd: list[str]) -> None:
    assert codes(one("helios", tmp_path / "h", table(COLUMNS, **changes), SHANGHAI)) == odd


def test_a_job_that_never_started_holds_nothing(tmp_path: Path) -> None:
    content = table(COLUMNS, start_time="None", state="CANCELLED", duration="0", queue="")
    _, ended = data(one("helios", tmp_path / "h", content, SHANGHAI))
    assert (ended.run, ended.reason) == (None, "never-started")


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"end_time": "2020-06-09 18:41:36"}, "end-before-start"),
        ({"gpu_num": "-1"}, "out-of-bounds"),
        ({"vc": ""}, "missing-value"),
        ({"submit_time": "2020-06-09"}, "not-a-time"),
    ],
)
def test_a_row_that_cannot_be_read_is_a_dead_letter(
    tmp_path: Path, changes: dict[str, str], code: str
) -> None:
    assert faults(read("helios", tmp_path / "h", table(COLUMNS, **changes), SHANGHAI)) == [(2, code)]


def test_a_cluster_is_named_by_who_imports_it(tmp_path: Path) -> None:
    options = ImportOptions(cluster="earth", timezone="Asia/Shanghai")
    item = one("helios", tmp_path / "h", table(COLUMNS), options)
    assert (events(item)[0].source, data(item)[0].account) == ("trace/helios/earth", "earth/vchbv")


def test_a_table_is_known_by_its_columns() -> None:
    first = fixture("helios", "Venus_gpu_number.csv", SHANGHAI)[0]
    assert isinstance(data(first)[0], Registered)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["helios_cluster_summary.csv"])
def test_totals_of_clusters_are_no_jobs(name: str) -> None:
    with pytest.raises(Refused, match="holds totals of whole clusters, no jobs"):
        source("helios").read(FIXTURES / "helios" / name, SHANGHAI)


def test_a_table_of_none_of_the_three_kinds_is_refused_with_the_columns_of_a_log(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="missing job_id") as refused:
        read("helios", tmp_path / "h", b"vc,node num\n", SHANGHAI)
    assert "submit_time" in refused.value.hint
