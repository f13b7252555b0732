"""Rows of the Philly trace become jobs: identity, time, accounts, anomalies."""

from pathlib import Path

from tests.unit.sources.rows import GOOD, PACIFIC, PHILLY, codes, data, events, philly, read

from gpuledger.events.workload import Ended, Started, Submitted
from gpuledger.kernel.accounts import clash_suffix
from gpuledger.sources.protocol import Fault, ImportOptions
from gpuledger.sources.registry import source


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
