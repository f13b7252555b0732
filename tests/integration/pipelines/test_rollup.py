"""The command: which days it restates, what it prints, and how it exits."""

import json
import os
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from tests.integration.pipelines.rows import DAY_S, HOUR_S, START_S, TABLES, Database, Facts, Host, Segment

from gpuledger.kernel.clock import FixedClock, instant
from gpuledger_pipelines.event_log import BATCH_VARIABLE
from gpuledger_pipelines.rollup import main
from gpuledger_pipelines.schedules import ROLL_UP

NOON_S = START_S + 12 * HOUR_S
CLOCK = FixedClock(instant(START_S + 3 * DAY_S + 5))


@pytest.fixture(autouse=True)
def _dagster_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path / "dagster"))
    monkeypatch.setenv(BATCH_VARIABLE, os.environ.get(BATCH_VARIABLE, "2000"))


def put(database: Database, facts: Facts) -> None:
    database.put(facts)
    database.book(facts, "2024-03")


def summary(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    clusters: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["clusters"]
    return clusters


def test_without_dates_every_cluster_from_its_first_to_its_last_day(
    database: Database, capsys: pytest.CaptureFixture[str]
) -> None:
    put(database, Facts(segments=[Segment("c/a", 1000, NOON_S, NOON_S + DAY_S)], accounts=["c/a"]))
    put(database, Facts(segments=[Segment("d/a", 1000, START_S + DAY_S, None)], cluster="d"))
    assert main(["--json"], CLOCK) == 0
    c, d = summary(capsys)
    assert (c["cluster"], c["from"], c["to"]) == ("c", "2024-03-01", "2024-03-03")
    assert (d["cluster"], d["from"], d["to"]) == ("d", "2024-03-02", "2024-03-05")
    assert set(c["rows"]) == set(TABLES)
    assert (c["checks_passed"], c["checks_failed"], c["findings"]) == (len(TABLES), 0, [])
    usage = {r["cluster"]: 0 for r in database.table("usage_hour")}
    for row in database.table("usage_hour"):
        usage[row["cluster"]] += row["gpu_ms"]
    assert usage == {"c": 1000 * DAY_S, "d": 1000 * (2 * DAY_S + 5)}
    with dg.DagsterInstance.get() as instance:
        runs = instance.get_runs()
        assert {run.run_id for run in runs} == {c["run_id"], d["run_id"]}
        assert {run.job_name for run in runs} == {ROLL_UP}
        materialised = instance.get_materialized_partitions(dg.AssetKey("usage_hour"))
    assert materialised == {
        "c|2024-03-01", "c|2024-03-02", "d|2024-03-02", "d|2024-03-03", "d|2024-03-04",
    }  # fmt: skip


def test_dates_are_the_organisations_days(database: Database, capsys: pytest.CaptureFixture[str]) -> None:
    """A day in Kolkata touches two UTC days; both are restated, and the days beside it in part."""
    facts = Facts(
        segments=[Segment("c/a", 1000, START_S - DAY_S, START_S + 2 * DAY_S)],
        accounts=["c/a"],
        timezone="Asia/Kolkata",
    )
    put(database, facts)
    assert main(["--cluster", "c", "--from", "2024-03-01", "--to", "2024-03-02"], CLOCK) == 0
    (c,) = summary(capsys)
    assert (c["from"], c["to"]) == ("2024-03-01", "2024-03-02")
    days = {r["day"].isoformat(): r["allocated_gpu_ms"] for r in database.table("layer_metrics_day")}
    assert days["2024-03-01"] == 1000 * DAY_S
    buckets = {r["bucket_at"] for r in database.table("usage_bucket")}
    assert (min(buckets), max(buckets)) == (START_S - DAY_S, START_S + DAY_S - 900)


def test_a_gate_that_fails_is_told_with_its_rows(
    database: Database, capsys: pytest.CaptureFixture[str]
) -> None:
    facts = Facts(
        segments=[Segment("c/a", 5000, NOON_S, NOON_S + HOUR_S)],
        hosts=[Host("h", 4, "healthy", START_S)],
        accounts=["c/a"],
    )
    put(database, facts)
    assert main([], CLOCK) == 3
    (c,) = summary(capsys)
    assert c["checks_failed"] == 1
    assert {"gpu_hour", "layer_metrics_hour", "layer_metrics_day"}.isdisjoint(c["rows"])
    (found,) = c["findings"]
    assert found.startswith("gpu_bucket: ")
    assert "2024-03-01 12:00:00" in found


def test_nothing_to_do_is_done(database: Database, capsys: pytest.CaptureFixture[str]) -> None:
    assert database.query("SELECT count(*) FROM ledger_read.segments") == [(0,)]
    assert main([], CLOCK) == 0
    assert summary(capsys) == []


@pytest.mark.parametrize(
    "arguments", [["--cluster", "nowhere"], ["--from", "2024-03-02", "--to", "2024-03-02"]]
)
def test_what_cannot_be_meant_is_refused(
    database: Database, arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    put(database, Facts(segments=[Segment("c/a", 1000, NOON_S, NOON_S + 1)], accounts=["c/a"]))
    assert main(arguments, CLOCK) == 2
    assert "hint: " in capsys.readouterr().err


def test_a_database_that_is_not_there_is_for_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPULEDGER_DATABASE_URL", f"postgresql+psycopg://nobody@/nothing?host={tmp_path}")
    assert main([], CLOCK) == 75


def test_without_its_environment_it_says_what_is_missing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("GPULEDGER_DATABASE_URL", raising=False)
    assert main([], CLOCK) == 2
    assert "GPULEDGER_DATABASE_URL" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("body", "status", "told"),
    [
        ("PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NEW;", 75, "cannot be used now"),
        ("RAISE EXCEPTION 'no room'; RETURN NEW;", 1, "no room"),
    ],
    ids=["connection lost", "statement failed"],
)
def test_what_goes_wrong_on_the_way_decides_the_exit_status(
    database: Database, capsys: pytest.CaptureFixture[str], body: str, status: int, told: str
) -> None:
    put(database, Facts(segments=[Segment("c/a", 1000, NOON_S, NOON_S + HOUR_S)], accounts=["c/a"]))
    database.execute(
        f"CREATE FUNCTION warehouse.trouble() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {body} END $$"
    )
    database.execute(
        "CREATE TRIGGER trouble BEFORE INSERT ON warehouse.usage_hour FOR EACH ROW"
        " EXECUTE FUNCTION warehouse.trouble()"
    )
    assert main([], CLOCK) == status
    (c,) = summary(capsys)
    (error,) = c["errors"]
    assert error.startswith("usage_hour: ")
    assert told in error
