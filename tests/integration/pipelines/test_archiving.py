"""The process behind ``gpuledger archive``: one document on stdout, an exit status by what the caller can do."""

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from tests.integration.pipelines.rows import DAY, DAY_S, HOUR_S, START_S, Database, Facts, Sample, Segment
from tests.integration.pipelines.running import restate_one

from gpuledger.kernel.clock import FixedClock, instant
from gpuledger_pipelines.archive.layout import DATA, Place
from gpuledger_pipelines.archiving import main
from gpuledger_pipelines.definitions import ASSETS
from gpuledger_pipelines.partitions import Span

CLOCK = FixedClock(instant(START_S + 2 * DAY_S + 5))
RUN = Segment("c/a", 1000, START_S + HOUR_S, START_S + 2 * HOUR_S, workload="w")


class Command:
    """Runs the command on an archive of the test's own."""

    def __init__(self, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.root, self.capsys = root, capsys

    def __call__(self, what: str, *options: object, status: int = 0) -> dict[str, Any]:
        assert main([what, "--archive", str(self.root), *map(str, options)], CLOCK) == status
        document: dict[str, Any] = json.loads(self.capsys.readouterr().out)
        return document


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "archive"


@pytest.fixture
def command(root: Path, capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(root, capsys)


@pytest.fixture
def facts(database: Database) -> Facts:
    facts = Facts(segments=[RUN], samples=[Sample("w", START_S + HOUR_S, 300_000, 40)])
    database.put(facts)
    return facts


def test_written_verified_rolled_up_and_compared(
    facts: Facts, database: Database, command: Command, tmp_path: Path
) -> None:
    assert facts
    assert ASSETS  # imported: every table is declared
    (written,) = command("write")["clusters"]
    assert (written["cluster"], written["days"], written["files_written"]) == ("c", 1, 2)
    assert command("write")["clusters"][0]["days"] == 0
    held = command("verify")
    assert (held["ok"], held["files"], held["findings"]) == (True, 2, [])
    row = {"hour_at": "2024-03-01T01:00:00Z", "account": "c/a", "class": "allocated", "gpu_ms": 3_600_000,
           "sampled_gpu_ms": 300_000, "used_gpu_ms": 120_000}  # fmt: skip
    rolled = command("rollup")
    assert (rolled["cluster"], rolled["from"], rolled["to"]) == ("c", "2024-03-01", "2024-03-02")
    assert rolled["rows"] == [row]
    compared = command("rollup", "--compare", status=3)
    assert compared["difference_count"] == 1
    assert compared["differences"][0]["warehouse"] is None
    for table in ("usage_bucket", "usage_hour"):
        restate_one(database.url, table, Span("c", START_S, START_S + 2 * DAY_S, START_S + 2 * DAY_S))
    assert command("rollup", "--compare")["differences"] == []
    out = tmp_path / "rows.parquet"
    assert "rows" not in command("rollup", "--out", out)
    (found,) = pq.read_table(out).to_pylist()
    assert (found["hour_s"], found["used_gpu_ms"]) == (START_S + HOUR_S, 120_000)


def test_days_that_are_named(facts: Facts, command: Command) -> None:
    assert facts
    days = ("--from", "2024-03-01", "--to", "2024-03-02")
    assert command("write", "--cluster", "c", *days)["clusters"][0]["days"] == 1
    assert command("verify", *days)["files"] == 2
    assert command("verify", "--from", "2024-03-02", status=4)["error"].endswith("has no such day")


def test_what_does_not_hold_is_told_with_its_file(facts: Facts, command: Command) -> None:
    assert facts
    command("write")
    path = Place("usage", "c", DAY).folder(command.root) / DATA
    path.write_bytes(path.read_bytes()[:-1])
    (finding,) = command("verify", status=3)["findings"]
    assert finding["file"] == str(path)
    told = command("rollup", status=1)
    assert told["exit"] == 1
    assert str(path) in told["error"]
    assert told["hint"].startswith("gpuledger archive write --cluster c --from 2024-03-01")


@pytest.mark.parametrize(
    ("arguments", "status", "error"),
    [
        (("write", "--cluster", "nowhere"), 4, "no cluster 'nowhere'"),
        (("write", "--from", "2024-03-01"), 2, "--from and --to come together"),
        (("write", "--from", "2024-03-03", "--to", "2024-03-04"), 2, "2024-03-03 is not over"),
        (("verify",), 4, "has no such day"),
        (("rollup",), 2, "--cluster: name one"),
        (("rollup", "--cluster", "c"), 4, "has no day of 'c'"),
        (("rollup", "--compare", "--rung", "sm_active"), 2, "the warehouse has no sm_active"),
    ],
)
def test_what_cannot_be_done_says_why(
    facts: Facts, command: Command, arguments: tuple[str, ...], status: int, error: str
) -> None:
    assert facts
    told = command(*arguments, status=status)
    assert error in told["error"]
    assert (told["exit"], bool(told["hint"])) == (status, True)


def test_a_database_that_is_not_there_is_for_later(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GPULEDGER_DATABASE_URL", f"postgresql+psycopg://nobody@/nothing?host={tmp_path}")
    assert command("write", status=75)["exit"] == 75
    monkeypatch.delenv("GPULEDGER_DATABASE_URL")
    assert "must be set" in command("write", status=2)["error"]


def test_a_folder_that_takes_no_rows_is_for_later(facts: Facts, command: Command, tmp_path: Path) -> None:
    assert facts
    command("write")
    assert "cannot be written" in command("rollup", "--out", tmp_path / "no" / "rows", status=75)["error"]
