"""What a row means: identity, time, accounts, anomalies."""

import gzip
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from tests.unit.sources.test_faults import COCKPIT_COLUMNS, GOOD, PHILLY, POD_COLUMNS, read, table

from gpuledger.events.envelope import Event, decode
from gpuledger.events.workload import Ended, Started, Submitted
from gpuledger.kernel.accounts import clash_suffix
from gpuledger.kernel.errors import Refused
from gpuledger.sources.protocol import Fault, ImportOptions, Translated
from gpuledger.sources.registry import source

PACIFIC = ImportOptions(timezone="America/Los_Angeles")


def philly(path: Path, *rows: bytes, options: ImportOptions | None = None) -> list[Translated]:
    items = read("philly", path, b"\n".join((PHILLY, *rows, b"")), options)
    assert not [item for item in items if isinstance(item, Fault)]
    return [item for item in items if isinstance(item, Translated)]


def one(name: str, path: Path, content: bytes, options: ImportOptions | None = None) -> Translated:
    (item,) = read(name, path, content, options)
    assert isinstance(item, Translated), item
    return item


def events(item: Translated) -> list[Event]:
    for event, value in item.events:
        assert decode(value) == event
    return [event for event, _ in item.events]


def data(item: Translated) -> list[Any]:
    return [event.data for event in events(item)]


def codes(item: Translated) -> list[str]:
    return [anomaly.code for anomaly in item.anomalies]


def test_a_philly_job_starts_when_it_was_submitted(tmp_path: Path) -> None:
    (item,) = philly(tmp_path / "p", b"2017-10-09 07:01:55,66.0,4,264.0,11cb48")
    submitted, started, ended = events(item)
    workload = submitted.id.removesuffix("/submitted")
    assert len(workload) == 16
    assert [event.id for event in (started, ended)] == [f"{workload}/started", f"{workload}/ended"]
    assert {event.source for event in (submitted, started, ended)} == {"trace/philly/philly"}
    assert (submitted.at_s, started.at_s, ended.at_s) == (1_507_532_515, 1_507_532_515, 1_507_532_581)
    assert submitted.data == Submitted(
        cluster="philly", workload=workload, account="philly/11cb48", user="-", gpus_milli=4000
    )
    assert started.data == Started(
        cluster="philly", workload=workload, run="1", attempt=1, gpus_milli=4000, hosts=[]
    )
    assert ended.data == Ended(cluster="philly", workload=workload, run="1", reason="unknown")


def test_a_job_of_no_length_starts_and_ends_in_the_same_second(tmp_path: Path) -> None:
    (item,) = philly(tmp_path / "p", b"2017-10-09 07:01:55,0.0,4,0.0,11cb48")
    assert len({event.at_s for event in events(item)}) == 1


def test_sub_second_values_are_floored(tmp_path: Path) -> None:
    (item,) = philly(tmp_path / "p", b"2017-10-09 07:01:55.9,66.75,2,133.5,a")
    submitted, _, ended = events(item)
    assert (submitted.at_s, ended.at_s) == (1_507_532_515, 1_507_532_581)
    assert codes(item) == [], "the row's own product is compared before flooring"


def test_gpu_time_that_is_not_the_product_is_an_anomaly(tmp_path: Path) -> None:
    for gpu_time in (b"67.0", b"66.001", b"", b"x", b"-66.0"):
        (item,) = philly(tmp_path / "p", b"2017-10-09 07:01:55,66.0,1," + gpu_time + b",a")
        assert codes(item) == ["gpu-time-differs"]
        assert "p:2: gpu_time: " in item.anomalies[0].message
    (item,) = philly(tmp_path / "p", b"2017-10-09 07:01:55,66,1,66,a")
    assert codes(item) == []


def test_identical_rows_are_different_jobs_and_are_reported(tmp_path: Path) -> None:
    other = GOOD.replace(b"66.0", b"67.0")
    items = philly(tmp_path / "p", GOOD, other, GOOD, GOOD)
    assert [codes(item) for item in items] == [[], [], ["identical-row"], ["identical-row"]]
    assert [anomaly.line for item in items for anomaly in item.anomalies] == [4, 5]
    first = events(items[0])[0].id.removesuffix("/submitted")
    assert [events(item)[0].id for item in items[2:]] == [f"{first}-1/submitted", f"{first}-2/submitted"]


def test_a_copied_renamed_unpacked_or_converted_file_changes_nothing(tmp_path: Path) -> None:
    content = b"\n".join((PHILLY, GOOD, GOOD, b""))
    variants = (content, gzip.compress(content), content.replace(b"\n", b"\r\n"), content[:-1])
    found = []
    for number, variant in enumerate(variants):
        items = read("philly", tmp_path / f"copy{number}", variant)
        found.append([value for item in items if isinstance(item, Translated) for _, value in item.events])
    assert all(values == found[0] for values in found)


def test_a_last_line_without_newline_is_told(tmp_path: Path) -> None:
    items = read("philly", tmp_path / "p", PHILLY + b"\n" + GOOD)
    assert [codes(item) for item in items if isinstance(item, Translated)] == [["no-final-newline"]]


def test_naive_times_are_read_in_the_zone_that_is_named(tmp_path: Path) -> None:
    (item,) = philly(tmp_path / "p", GOOD, options=PACIFIC)
    assert events(item)[0].at_s == 1_507_532_515 + 7 * 3600
    (item,) = philly(tmp_path / "p", GOOD.replace(b":55", b":55+02:00"), options=PACIFIC)
    assert events(item)[0].at_s == 1_507_532_515 - 2 * 3600, "an offset in the file wins"


def test_hours_that_came_twice_or_never_are_told(tmp_path: Path) -> None:
    twice, never = b"2017-11-05 01:30:00,66.0,1,66.0,a", b"2017-03-12 02:30:00,66.0,1,66.0,a"
    first, second = philly(tmp_path / "p", twice, never, options=PACIFIC)
    assert (codes(first), codes(second)) == (["ambiguous-time"], ["nonexistent-time"])
    assert events(first)[0].at_s == 1_509_870_600  # 08:30Z, daylight saving time
    assert [codes(item) for item in philly(tmp_path / "p", twice, never)] == [[], []]


def test_another_cluster_is_another_book_and_root(tmp_path: Path) -> None:
    (item,) = philly(tmp_path / "p", GOOD, options=ImportOptions(cluster="west"))
    event = events(item)[0]
    assert event.source == "trace/philly/west"
    assert (event.data.cluster, event.data.account) == ("west", "west/11cb48")  # type: ignore[attr-defined]


def test_teams_are_lower_cased_and_escaped_and_clashes_kept_apart(tmp_path: Path) -> None:
    row = b"2017-10-09 07:01:5%d,66.0,1,66.0,%s"
    teams = (b"Team A/B", b"team a/b", b"Team A/B", "équipe".encode())
    items = philly(tmp_path / "p", *(row % (n, team) for n, team in enumerate(teams)))
    clash = "philly/team%20a%2Fb" + clash_suffix("team a/b")
    accounts = [data(item)[0].account for item in items]
    assert accounts == ["philly/team%20a%2Fb", clash, "philly/team%20a%2Fb", "philly/%C3%A9quipe"]
    assert [codes(item) for item in items] == [[], ["case-clash"], [], []]


def test_a_retried_row_keeps_the_account_that_its_neighbours_decided(tmp_path: Path) -> None:
    broken = b"2017-10-09 07:01:55,-1,1,66.0,TEAM"
    good = b"2017-10-09 07:01:56,66.0,1,66.0,team"
    _, fault = read("philly", tmp_path / "p", b"\n".join((PHILLY, good, broken, b"")))
    assert isinstance(fault, Fault)
    item = source("philly").retry(broken.replace(b",-1,", b",66.0,"), fault.context)
    assert data(item)[0].account == "philly/team" + clash_suffix("TEAM")


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
