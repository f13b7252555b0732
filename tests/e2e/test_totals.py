"""The three bundled traces through ``gpuledger import``, counted by ``gpuledger usage``.

The figures stand in two ways: as published beside the traces (to the third decimal), and computed here
from the files by arithmetic of its own (to the unit).
"""

import datetime as dt
import gzip
import shutil
from decimal import Decimal
from pathlib import Path

import pytest
from tests.commands import fixtures
from tests.commands import traces as oracle
from tests.commands.fixtures import Ledger
from tests.commands.traces import ALEX, DATA, DAY_S, OPENB_PODS, PHILLY, WINDOW_S, hours

traces = fixtures.traces

PHILLY_HOURS = {
    "ee9e8c": "256112.178",
    "7f04ca": "164930.654",
    "b436b2": "125739.500",
    "6214e9": "97184.822",
    "6c71a0": "82203.257",
    "2869ce": "80695.144",
    "0e4a51": "77556.306",
    "103959": "42880.256",
    "11cb48": "28104.295",
    "e13805": "13557.858",
}
ALEX_HOURS = {
    "proj016": ("489.919", "379.686"),
    "proj006": ("381.687", "350.089"),
    "proj015": ("357.290", "322.765"),
    "proj002": ("350.938", "186.454"),
    "proj021": ("305.713", "152.751"),
    "proj004": ("302.426", "247.652"),
    "proj012": ("254.715", "178.979"),
    "proj007": ("212.450", "172.860"),
    "proj005": ("195.396", "71.333"),
    "proj014": ("192.589", "147.460"),
}
OPENB_WINDOWS = ["1283.747", "4317.257", "7148.822", "12877.423", "25843.424"]


def gpu_ms(report: dict[str, object]) -> dict[str, int]:
    """Return the amounts of a usage report by key."""
    rows = report["rows"]
    assert isinstance(rows, list)
    return {row["key"]: row["gpu_ms"] for row in rows}


def used_ms(runs: list[oracle.Run]) -> Decimal:
    return sum((run.gpu_ms * run.used_percent / 100 for run in runs), Decimal(0))


def test_philly_whole_and_by_virtual_cluster(traces: Ledger) -> None:
    report = traces.usage("account", "--cluster", "philly")

    assert report["total_gpu_hours"] == "978078.473"
    expected = {f"philly/{vc}": amount for vc, amount in oracle.by_key(oracle.philly()).items()}
    assert gpu_ms(report) == expected
    assert len(expected) == 15
    shown = {row["key"].removeprefix("philly/"): row["gpu_hours"] for row in report["rows"]}
    assert {vc: shown[vc] for vc in PHILLY_HOURS} == PHILLY_HOURS


def test_philly_split_over_months(traces: Ledger) -> None:
    report = traces.usage("month", "--cluster", "philly")

    edges = [int(dt.datetime(2017, month, 1, tzinfo=dt.UTC).timestamp()) for month in (9, 10, 11, 12)]
    edges.append(int(dt.datetime(2018, 1, 1, tzinfo=dt.UTC).timestamp()))
    months = [f"2017-{month:02d}" for month in (9, 10, 11, 12)]
    assert gpu_ms(report) == dict(zip(months, oracle.by_window(oracle.philly(), edges), strict=True))
    assert [row["gpu_hours"] for row in report["rows"]] == [
        "135584.801",
        "442067.613",
        "295879.673",
        "104546.386",
    ]


def test_philly_keeps_identical_rows_and_says_so(traces: Ledger) -> None:
    report = traces.reports["philly"]

    assert (report["records"], report["accepted"], report["dead_lettered"]) == (82_247, 82_247, 0)
    assert [a["code"] for a in report["anomalies"]] == ["identical-row"] * 65
    lines = gzip.decompress(PHILLY.read_bytes()).splitlines()
    first, repeats = set(), []
    for number, line in enumerate(lines, start=1):
        if line in first:
            repeats.append(number)
        first.add(line)
    assert [a["line"] for a in report["anomalies"]] == repeats


def test_openb_by_quality_of_service(traces: Ledger) -> None:
    report = traces.usage("account", "--cluster", "openb")

    assert report["total_gpu_hours"] == "51470.674"
    assert gpu_ms(report) == {f"openb/{qos}": amount for qos, amount in oracle.by_key(oracle.openb()).items()}
    assert {row["key"]: row["gpu_hours"] for row in report["rows"]} == {
        "openb/ls": "41413.360",
        "openb/burstable": "7459.201",
        "openb/be": "1311.636",
        "openb/guaranteed": "1286.478",
    }


@pytest.mark.parametrize("window", range(5))
def test_openb_by_window_of_thirty_days(traces: Ledger, window: int) -> None:
    edges = [window * WINDOW_S, (window + 1) * WINDOW_S]

    report = traces.usage("cluster", "--cluster", "openb", "--from", edges[0], "--to", edges[1])

    assert [report["total_gpu_ms"]] == oracle.by_window(oracle.openb(), edges)
    assert report["total_gpu_hours"] == OPENB_WINDOWS[window]


def test_openb_pods_that_were_never_scheduled_cost_nothing(traces: Ledger) -> None:
    never = [
        f"{row['name']}-{row['creation_time']}"
        for row in oracle.rows(OPENB_PODS)
        if not row["scheduled_time"]
    ]
    assert len(never) == 897

    known = (
        "SELECT count(DISTINCT workload) FROM ledger.journal WHERE book = 'openb' AND workload = ANY(:names)"
    )
    assert traces.rows(known, names=never) == [(897,)]
    for table in ("segments", "postings"):
        booked = f"SELECT count(*) FROM ledger.{table} WHERE book = 'openb' AND workload = ANY(:names)"
        assert traces.rows(booked, names=never) == [(0,)]


def test_alex_by_project_with_what_was_used(traces: Ledger) -> None:
    report = traces.usage("account", "--cluster", "alex")

    runs = oracle.alex()
    assert report["total_gpu_hours"] == "3980.037"
    assert gpu_ms(report) == {
        f"alex/{project}": amount for project, amount in oracle.by_key(runs).items() if amount
    }
    rows = {row["key"].removeprefix("alex/"): row for row in report["rows"]}
    shown = {
        project: (rows[project]["gpu_hours"], hours(rows[project]["used_gpu_ms"])) for project in ALEX_HOURS
    }
    assert shown == ALEX_HOURS


def test_alex_utilisation_weighted(traces: Ledger) -> None:
    report = traces.usage("cluster", "--cluster", "alex")

    used = report["rows"][0]["used_gpu_ms"]
    # A job without the address of one device has that device's time unsampled, so 65 s stay out.
    assert abs(used - used_ms(oracle.alex())) <= 1
    assert hours(used) == "2859.882"
    assert f"{Decimal(used) / report['total_gpu_ms']:.2%}" == "71.86%"


def test_alex_by_day(traces: Ledger) -> None:
    report = traces.usage("day", "--cluster", "alex")

    first = dt.date(2023, 2, 7)
    start_s = int(dt.datetime(2023, 2, 7, tzinfo=dt.UTC).timestamp())
    amounts = oracle.by_window(oracle.alex(), [start_s + n * DAY_S for n in range(5)])
    days = [(first + dt.timedelta(days=n)).isoformat() for n in range(4)]
    assert gpu_ms(report) == dict(zip(days, amounts, strict=True))
    # 1,827,441,000 gpu_ms are 507.6225 GPU-hours, a tie: half to even is .622, half up would be .623.
    assert [row["gpu_hours"] for row in report["rows"]] == ["507.622", "2983.182", "478.236", "10.996"]
    assert amounts[0] == 1_827_441_000


def _renamed(path: Path, folder: Path) -> Path:
    return Path(shutil.copy(path, folder / f"a name of its own {path.stem}"))


def _unpacked(path: Path, folder: Path) -> Path:
    copy = folder / f"unpacked-{path.stem}"
    copy.write_bytes(gzip.decompress(path.read_bytes()))
    return copy


def test_importing_again_changes_nothing(traces: Ledger, tmp_path: Path) -> None:
    """The same file, a renamed copy, an unpacked one: a path is never identity."""
    heads, digest = traces.heads(), traces.checked_digest()
    events = {book: rows for book, rows, _ in heads}
    assert events["philly"] > 3 * 82_247
    again = [
        ("philly", _unpacked(PHILLY, tmp_path), 82_247),
        ("clustercockpit", ALEX, 544),
        ("clustercockpit", _renamed(ALEX, tmp_path), 544),
        ("clustercockpit", _unpacked(ALEX, tmp_path), 544),
        ("openb", DATA, 9_365),
        ("openb", _renamed(OPENB_PODS, tmp_path), 8_152),
    ]
    for source, path, records in again:
        report = traces.done("import", source, path)
        counts = {name: report[name] for name in ("records", "accepted", "repeated", "dead_lettered")}
        assert counts == {"records": records, "accepted": 0, "repeated": records, "dead_lettered": 0}
    assert traces.heads() == heads
    assert traces.digest() == digest
