"""Rows of the openb trace become hosts and pods with fractions of GPUs."""

import gzip
from pathlib import Path

import pytest
from tests.unit.sources.rows import POD_COLUMNS, codes, data, events, one, only, read, table

from gpuledger.kernel.errors import Refused
from gpuledger.sources.protocol import Fault, ImportOptions, Translated
from gpuledger.sources.registry import source


@pytest.mark.parametrize(
    ("changes", "code", "told"),
    [
        ({"deletion_time": "427099"}, "end-before-start", "scheduled_time 427100"),
        ({"deletion_time": "5", "scheduled_time": ""}, "end-before-start", "creation_time 427061"),
        ({"gpu_milli": "1001"}, "out-of-bounds", "gpu_milli: 1001"),
        ({"num_gpu": "2000000"}, "out-of-bounds", "num_gpu: 2000000"),
        ({"creation_time": "-1"}, "out-of-bounds", "creation_time: '-1'"),
        ({"creation_time": ""}, "missing-value", "creation_time"),
        ({"qos": ""}, "missing-value", "qos"),
        ({"name": ""}, "missing-value", "name"),
    ],
)
def test_openb_checks_its_fields(tmp_path: Path, changes: dict[str, str], code: str, told: str) -> None:
    fault = only(read("openb", tmp_path / "o.csv", table(POD_COLUMNS, **changes)))
    assert fault.code == code
    assert told in fault.message
    assert "o.csv:2: " in fault.message


def test_a_pod_holds_a_fraction_from_scheduling_to_deletion(tmp_path: Path) -> None:
    item = one("openb", tmp_path / "o", table(POD_COLUMNS))
    submitted, started, ended = events(item)
    assert (submitted.at_s, started.at_s, ended.at_s) == (427_061, 427_100, 12_902_960)
    assert submitted.id == "openb-pod-0001-427061/submitted"
    assert submitted.data.account == "openb/ls"  # type: ignore[attr-defined]
    assert submitted.data.eligible_at.timestamp() == 427_061  # type: ignore[attr-defined]
    assert started.data.gpus_milli == 460  # type: ignore[attr-defined]
    assert ended.data.reason == "Running"  # type: ignore[attr-defined]


def test_a_pod_that_was_never_scheduled_has_no_run(tmp_path: Path) -> None:
    item = one("openb", tmp_path / "o", table(POD_COLUMNS, scheduled_time="", pod_phase="Pending"))
    submitted, ended = data(item)
    assert (ended.run, ended.reason) == (None, "never-scheduled")
    assert submitted.gpus_milli == 460


def test_a_pod_without_end_is_still_open(tmp_path: Path) -> None:
    item = one("openb", tmp_path / "o", table(POD_COLUMNS, deletion_time=""))
    assert [event.name for event in events(item)] == ["workload.submitted", "workload.started"]


def test_whole_gpus_times_their_number(tmp_path: Path) -> None:
    for gpus, milli, expected, odd in (
        ("8", "1000", 8000, []),
        ("0", "0", 0, []),
        ("2", "500", 1000, ["fraction-of-many"]),
    ):
        item = one("openb", tmp_path / "o", table(POD_COLUMNS, num_gpu=gpus, gpu_milli=milli))
        assert data(item)[1].gpus_milli == expected
        assert codes(item) == odd


def test_oddities_of_pods(tmp_path: Path) -> None:
    item = one("openb", tmp_path / "o", table(POD_COLUMNS, scheduled_time="427000"))
    assert codes(item) == ["start-before-submit"]
    item = one("openb", tmp_path / "o", table(POD_COLUMNS, pod_phase="Evicted"))
    assert codes(item) == ["unknown-state"]


def test_the_model_a_pod_asks_for(tmp_path: Path) -> None:
    for asked, model in (("V100M16", "V100M16"), ("V100M16|V100M32", None), ("", None)):
        item = one("openb", tmp_path / "o", table(POD_COLUMNS, gpu_spec=asked))
        assert data(item)[0].gpu_model == model


def test_a_folder_gives_nodes_before_pods_and_hosts_without_gpus_are_passed_over(tmp_path: Path) -> None:
    nodes = b"sn,cpu_milli,memory_mib,gpu,model\nn1,1,1,2,P100\nn2,1,1,0,\nn3,1,1,8,\n"
    (tmp_path / "openb_node_list_all_node.csv").write_bytes(nodes)
    (tmp_path / "openb_pod_list_default.csv.gz").write_bytes(gzip.compress(table(POD_COLUMNS)))
    (tmp_path / "openb_pod_list_cpu250.csv").write_bytes(b"a variant that is not read")
    host, fault, pod = source("openb").read(tmp_path, ImportOptions())
    assert isinstance(host, Translated)
    assert events(host)[0].id == "host/n1/registered"
    assert (events(host)[0].at_s, data(host)[0].gpus, data(host)[0].gpu_model) == (0, 2, "P100")
    assert isinstance(fault, Fault)
    assert (fault.line, fault.code) == (4, "missing-value")
    assert isinstance(pod, Translated)
    assert host.bytes_read <= fault.bytes_read <= pod.bytes_read == source("openb").size(tmp_path)
    again = source("openb").retry(b"n3,1,1,8,T4", fault.context)
    assert data(again)[0].gpu_model == "T4"


def test_a_folder_with_a_broken_header_gives_nothing(tmp_path: Path) -> None:
    (tmp_path / "openb_node_list_gpu_node.csv").write_bytes(
        b"sn,cpu_milli,memory_mib,gpu,model\nn1,1,1,2,P100\n"
    )
    (tmp_path / "openb_pod_list_default.csv").write_bytes(b"name,qos\n")
    with pytest.raises(Refused, match="openb_pod_list_default"):
        source("openb").read(tmp_path, ImportOptions())


def test_a_folder_of_variants_or_of_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="holds neither"):
        source("openb").read(tmp_path, ImportOptions())
    for variant in ("cpu250", "gpushare40"):
        (tmp_path / f"openb_pod_list_{variant}.csv").write_bytes(table(POD_COLUMNS))
    with pytest.raises(Refused, match="2 pod lists"):
        source("openb").read(tmp_path, ImportOptions())
