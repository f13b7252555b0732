"""A day on its way from the ledger into Parquet."""

import datetime as dt
import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from tests.integration.pipelines.rows import DAY, DAY_S, HOUR_S, START_S, Database, Facts, Sample, Segment

from gpuledger.kernel.errors import Unavailable
from gpuledger_pipelines.archive import writing
from gpuledger_pipelines.archive.contents import TELEMETRY, USAGE
from gpuledger_pipelines.archive.layout import DATA, MANIFEST, Place
from gpuledger_pipelines.archive.writing import Written, write_day

NOON_S = START_S + 12 * HOUR_S
NEXT = DAY + dt.timedelta(days=1)
ODD = 'a "quoted", long\nname ü \\ %2F'


def write(database: Database, root: Path, day: dt.date = DAY) -> dict[str, Written]:
    return {each.place.dataset: each for each in write_day(database.engine, root, "c", day)}


def rows(root: Path, dataset: str, day: dt.date = DAY) -> list[dict[str, Any]]:
    return pq.read_table(Place(dataset, "c", day).folder(root) / DATA, partitioning=None).to_pylist()


def inode(root: Path, dataset: str, name: str = DATA) -> int:
    return (Place(dataset, "c", DAY).folder(root) / name).stat().st_ino


def test_runs_are_cut_at_midnight(database: Database, root: Path) -> None:
    """One that began the day before, one that goes on, one that ended at once, one on no GPU, and one of tomorrow."""
    database.put(
        Facts(
            segments=[
                Segment("c/a", 8000, START_S - HOUR_S, START_S + HOUR_S, hosts=("h2", "h1"), user="u-1"),
                Segment("c/b", 500, NOON_S, None, klass="unallocated"),
                Segment("c/b", 1000, NOON_S, NOON_S),
                Segment("c/b", 0, NOON_S, NOON_S + 1),
                Segment("c/b", 1000, START_S + DAY_S, START_S + DAY_S + 1),
            ]
        )
    )
    written = write(database, root)
    assert rows(root, "usage") == [
        {"workload": "w0", "run": "r1", "account": "c/a", "class": "allocated", "user_token": "u-1",
         "gpus_milli": 8000, "hosts": ["h2", "h1"], "from_s": START_S, "to_s": START_S + HOUR_S},
        {"workload": "w1", "run": "r1", "account": "c/b", "class": "unallocated", "user_token": "-",
         "gpus_milli": 500, "hosts": [], "from_s": NOON_S, "to_s": START_S + DAY_S},
    ]  # fmt: skip
    manifest = written["usage"].manifest
    assert manifest.sums == {"gpu_ms": 8000 * HOUR_S + 500 * 12 * HOUR_S}
    assert (manifest.rows, manifest.known_seq, manifest.day) == (2, 1, "2024-03-01")
    assert written["telemetry"].manifest.rows == 0
    assert rows(root, "telemetry") == []


def test_samples_are_whose_their_run_was_when_they_ended(database: Database, root: Path) -> None:
    """A run that changes hands, one that the ledger does not know, and a device that nobody held."""
    change_s = NOON_S + 600
    database.put(
        Facts(
            segments=[
                Segment("c/a", 1000, NOON_S, change_s, workload="w"),
                Segment("c/b", 1000, change_s, change_s + 300, workload="w", klass="unallocated"),
            ],
            samples=[
                Sample("w", NOON_S + 300, 300_000, 50),
                Sample("w", NOON_S + 600, 300_000, 51),
                Sample("w", NOON_S + 900, 1_000, 52),
                Sample("nobody", NOON_S, 5, 53, gpu="a"),
                Sample("", NOON_S, 7, 54, run="", gpu="b"),
                Sample("w", START_S - 300, 9, 55),
            ],
        )
    )
    manifest = write(database, root)["telemetry"].manifest
    found = [
        (r["gpu"], r["bucket_s"], r["workload"], r["account"], r["class"], r["used_gpu_upms"])
        for r in rows(root, "telemetry")
    ]
    assert found == [
        ("a", NOON_S, "nobody", None, None, 5 * 530_000),
        ("b", NOON_S, "", None, None, 7 * 540_000),
        ("g", NOON_S + 300, "w", "c/a", "allocated", 300_000 * 500_000),
        ("g", NOON_S + 600, "w", "c/b", "unallocated", 300_000 * 510_000),
        ("g", NOON_S + 900, "w", "c/b", "unallocated", 1_000 * 520_000),
    ]
    assert manifest.sums["gpu_util/sampled_gpu_ms"] == 601_012
    assert manifest.sums["gpu_util/owned_sampled_gpu_ms"] == 601_000


def test_the_same_facts_are_the_same_bytes_and_nothing_is_replaced(database: Database, root: Path) -> None:
    facts = Facts(segments=[Segment("c/a", 1000, NOON_S, None)], samples=[Sample("w0", NOON_S, 300_000, 5)])
    database.put(facts)
    first = write(database, root)
    before = {name: (inode(root, name), inode(root, name, MANIFEST)) for name in first}
    database.execute("UPDATE ledger.books SET last_seq = 9")
    again = write(database, root)
    assert {name: (inode(root, name), inode(root, name, MANIFEST)) for name in again} == before
    assert [each.changed for each in (*first.values(), *again.values())] == [True, True, False, False]
    assert again["usage"].manifest == first["usage"].manifest
    other = write(database, root.with_name("other"))
    assert [each.manifest.sha256 for each in other.values()] == [e.manifest.sha256 for e in first.values()]


def test_what_changed_is_replaced_and_the_other_file_is_not(database: Database, root: Path) -> None:
    database.put(Facts(segments=[Segment("c/a", 1000, NOON_S, None)]))
    write(database, root)
    database.execute("UPDATE ledger.segments SET account = 'c/b'")
    database.execute("UPDATE ledger.books SET last_seq = 9")
    again = write(database, root)
    assert {name: (each.changed, each.manifest.known_seq) for name, each in again.items()} == {
        "usage": (True, 9), "telemetry": (False, 1),
    }  # fmt: skip
    assert rows(root, "usage")[0]["account"] == "c/b"


def test_a_damaged_file_is_replaced(database: Database, root: Path) -> None:
    database.put(Facts(segments=[Segment("c/a", 1000, NOON_S, None)]))
    write(database, root)
    path = Place("usage", "c", DAY).folder(root) / DATA
    whole = path.read_bytes()
    path.write_bytes(whole[:100] + bytes([whole[100] ^ 1]) + whole[101:])
    assert write(database, root)["usage"].changed
    assert path.read_bytes() == whole


def test_names_of_every_kind_arrive(database: Database, root: Path) -> None:
    database.put(
        Facts(
            segments=[
                Segment("c/" + ODD, 1000, NOON_S, None, hosts=(ODD, "", "h"), workload=ODD, run="", user="")
            ],
            samples=[Sample(ODD, NOON_S, 1, 1, run="", gpu=ODD)],
        )
    )
    write(database, root)
    (run,), (sample,) = rows(root, "usage"), rows(root, "telemetry")
    assert (run["workload"], run["run"], run["user_token"], run["hosts"]) == (ODD, "", "", [ODD, "", "h"])
    assert (sample["gpu"], sample["workload"], sample["run"], sample["account"]) == (ODD, ODD, "", "c/" + ODD)


def test_rows_are_held_a_group_at_a_time(
    database: Database, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A group of rows does not end where a block of text does."""
    samples = [
        Sample("w0", START_S + 300 * (n % 288), 300_000, n % 101, gpu=f"g{n // 288}") for n in range(1000)
    ]
    database.put(Facts(segments=[Segment("c/a", 4000, START_S, None)], samples=samples))
    whole = write(database, root)["telemetry"].manifest
    all_rows = rows(root, "telemetry")
    monkeypatch.setattr(writing, "GROUP_ROWS", 96)
    monkeypatch.setattr(writing, "BLOCK_BYTES", 1_000)
    parted = write(database, root)["telemetry"].manifest
    file = pq.ParquetFile(Place("telemetry", "c", DAY).folder(root) / DATA)
    groups = [file.metadata.row_group(n).num_rows for n in range(file.num_row_groups)]
    assert groups == [96] * 10 + [40]
    assert rows(root, "telemetry") == all_rows
    assert (parted.rows, parted.sums) == (whole.rows, whole.sums)


def test_what_a_killed_writer_left_is_cleared_away_and_was_never_read(database: Database, root: Path) -> None:
    database.put(Facts(segments=[Segment("c/a", 1000, NOON_S, None)]))
    folder = Place("usage", "c", DAY).folder(root)
    folder.mkdir(parents=True)
    (folder / f".{DATA}.12345").write_bytes(b"half a file")
    write(database, root)
    assert sorted(path.name for path in folder.iterdir()) == [MANIFEST, DATA]


def test_what_fails_midway_leaves_the_file_that_was_there(
    database: Database, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database.put(Facts(segments=[Segment("c/a", 1000, NOON_S, None)]))
    write(database, root)
    folder = Place("usage", "c", DAY).folder(root)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    database.execute("UPDATE ledger.segments SET account = 'c/b'")

    def full(*arguments: object, **options: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(writing.pq.ParquetWriter, "write_table", full)
    with pytest.raises(Unavailable, match="No space left on device"):
        write(database, root)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_a_file_says_itself_what_it_is(database: Database, root: Path) -> None:
    database.put(Facts(segments=[Segment("c/a", 1000, NOON_S, None)]))
    write(database, root, NEXT)
    for dataset in (USAGE, TELEMETRY):
        folder = Place(dataset.name, "c", NEXT).folder(root)
        schema = pq.read_schema(folder / DATA)
        assert schema.equals(dataset.schema)
        assert schema.metadata[b"day"] == b"2024-03-02"
        assert schema.field("run").metadata[b"comment"]
        assert json.loads((folder / MANIFEST).read_bytes())["dataset"] == dataset.name
