"""GPUs of each virtual cluster by day, as an inventory."""

from collections import Counter
from pathlib import Path

import pytest
from tests.unit.sources.rows import codes, data, events, only, read
from tests.unit.sources.traces import SHANGHAI, anomalies, facts, faults, fixture

from gpuledger.events.host import Registered, Retired
from gpuledger.ledger.facts import Known
from gpuledger.ledger.inventory import HostFact, intervals
from gpuledger.sources.registry import source

DAY_S = 86_400


def test_a_row_says_what_is_installed_from_the_beginning_of_its_day(tmp_path: Path) -> None:
    items = read("helios", tmp_path / "h", b"date,vcA,vcB,total\n2020-04-01,8,0,8\n", SHANGHAI)
    (item,) = facts(items)
    assert {event.at_s for event in events(item)} == {1_585_670_400}
    assert data(item) == [
        Registered(cluster="helios", host="vcA", gpus=8, gpu_model="unknown"),
        Retired(cluster="helios", host="vcB", gpus=0, gpu_model="unknown", reason="not-configured"),
    ]
    assert codes(item) == ["one-holder"]


@pytest.mark.parametrize(("name", "rows"), [("Earth_gpu_number.csv", 181), ("Venus_gpu_number.csv", 181)])
def test_every_day_of_the_published_tables_has_its_total(name: str, rows: int) -> None:
    items = fixture("helios", name, SHANGHAI)
    assert (len(items), faults(items)) == (rows, [])
    hosts: dict[str, list[HostFact]] = {}
    for item in facts(items):
        for event, _ in item.events:
            known = Known(event.data, event.at_s, event.source, event.digest)
            hosts.setdefault(event.data.host, []).append(HostFact(event.data, known))  # type: ignore[arg-type,attr-defined]
    installed: Counter[int] = Counter()
    for host in hosts.values():
        for interval in intervals(host):
            until_s = interval.to_s or interval.from_s + DAY_S
            for day_s in range(interval.from_s, until_s, DAY_S):
                installed[day_s] += interval.gpus
    lines = (Path(__file__).parents[2] / "fixtures/sources/helios" / name).read_text().split()[1:]
    totals = [int(line.rpartition(",")[2]) for line in lines]
    assert [installed[day_s] for day_s in sorted(installed)] == totals


def test_the_day_on_which_one_virtual_cluster_holds_all_is_told() -> None:
    items = fixture("helios", "Earth_gpu_number.csv", SHANGHAI)
    assert anomalies(items) == [(40, "one-holder")]
    (anomaly,) = [anomaly for item in facts(items) for anomaly in item.anomalies]
    assert "vcIya: all 840 GPUs" in anomaly.message


def test_a_total_that_is_none_is_told(tmp_path: Path) -> None:
    (item,) = facts(read("helios", tmp_path / "h", b"date,vcA,vcB,total\n2020-04-01,8,8,17\n", SHANGHAI))
    assert codes(item) == ["total-differs"]


@pytest.mark.parametrize(
    ("row", "code"),
    [
        (b"2020-04-01,8", "wrong-columns"),
        (b"soon,8,8", "not-a-time"),
        (b",8,8", "missing-value"),
        (b"2020-04-01,x,8", "not-a-number"),
    ],
)
def test_a_row_that_cannot_be_read_is_a_dead_letter(tmp_path: Path, row: bytes, code: str) -> None:
    items = read("helios", tmp_path / "h", b"date,vcA,total\n" + row + b"\n2020-04-02,8,8\n", SHANGHAI)
    assert faults(items) == [(2, code)]
    mended = source("helios").retry(b"2020-04-01,8,8", only(items).context)
    assert [event.at_s for event, _ in mended.events] == [1_585_670_400]
