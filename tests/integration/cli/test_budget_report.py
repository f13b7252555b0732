"""``budget report`` and ``layers --by month``: what the warehouse says of a period."""

import datetime as dt
from pathlib import Path

import pytest
from tests.commands.fixtures import Ledger
from tests.integration.pipelines.running import restate

from gpuledger_pipelines.partitions import Span

TRACE = (
    "timestamp,duration,num_gpus,gpu_time,cluster\n"
    "2017-10-31 23:00:00,7200.0,2,14400.0,vc\n"  # an hour of it lies in November
)
BUDGET = """
clusters: {philly: {gpus: 8, model: p100, gpus_per_host: 8}}
accounts:
  philly/vc: {share: 3, grants: [{cluster: philly, period: 2017-10, gpu_hours: 100}]}
  philly/other: {share: 1}
"""
FROM_S = int(dt.datetime(2017, 10, 1, tzinfo=dt.UTC).timestamp())
TO_S = int(dt.datetime(2017, 11, 3, tzinfo=dt.UTC).timestamp())
CAUSES = ("transfer", "expiry", "capacity", "demand", "scheduler", "credit")
HOUR = 3_600_000


@pytest.fixture
def rolled_up(ledger: Ledger, tmp_path: Path) -> Ledger:
    trace, budget = tmp_path / "philly.csv", tmp_path / "budget.yaml"
    trace.write_text(TRACE)
    budget.write_text(BUDGET)
    ledger.done("import", "philly", trace)
    ledger.done("budget", "apply", budget, "--from", "2017-10-01", "--yes")
    restate(ledger.url, Span("philly", FROM_S, TO_S, TO_S))
    return ledger


def test_a_period_by_account_with_causes_that_sum(rolled_up: Ledger) -> None:
    report = rolled_up.done("budget", "report", "--period", "2017-10")
    assert {key: value for key, value in report.items() if key != "rows"} == {
        "cluster": None, "period": "2017-10", "periods": ["2017-10", "2017-11"], "from": "2017-10-01T00:00:00Z",
        "to": "2017-11-01T00:00:00Z", "timezone": "UTC", "reading": "as_known", "as_of": "2017-11-03T00:00:00Z",
    }  # fmt: skip
    rows = {row["account"]: row for row in report["rows"]}
    mine = rows["philly/vc"]
    assert (mine["budget_gpu_ms"], mine["delivered_gpu_ms"]) == (100 * HOUR, 2 * HOUR)
    assert mine["entitlement_gpu_ms"] == 6 * 31 * 24 * HOUR
    for row in rows.values():
        causes = sum(row[f"variance_{cause}_gpu_ms"] for cause in CAUSES)
        assert causes == row["budget_gpu_ms"] - row["delivered_gpu_ms"]
        assert row["reason"] is None


def test_it_is_the_newest_period_unless_another_is_asked_for_and_one_that_is_not_there_is_told(
    rolled_up: Ledger,
) -> None:
    assert rolled_up.done("budget", "report", "--cluster", "philly")["period"] == "2017-11"
    missing = rolled_up("budget", "report", "--period", "2018-05")
    assert missing.status == 4
    assert "periods there are: 2017-10 to 2017-11" in missing.err
    early = rolled_up("budget", "report", "--as-of", "2017-11-01T00:00:00Z")
    assert early.status == 2
    assert "keeps no earlier state" in early.err


def test_people_read_gpu_hours(rolled_up: Ledger) -> None:
    shown = rolled_up("budget", "report", "--period", "2017-10").out
    assert "Budget versus actual, 2017-10, GPU-hours" in shown
    (line,) = [line for line in shown.splitlines() if line.split()[:1] == ["philly/vc"]]
    assert line.split()[1:5] == ["philly", "100.0", "2.0", "2.0"]


def test_before_the_first_roll_up_nothing_is_told_and_said_so(ledger: Ledger) -> None:
    report = ledger.done("budget", "report")
    assert (report["rows"], report["period"], report["as_of"]) == ([], None, None)
    assert "gpuledger rollup fills the warehouse" in ledger("budget", "report").out


def test_layers_by_month_are_sums_of_days(rolled_up: Ledger) -> None:
    months = {
        row["key"]: row for row in rolled_up.done("layers", "--by", "month", "--cluster", "philly")["rows"]
    }
    assert {key: row["installed_gpu_ms"] for key, row in months.items()} == {
        "2017-10": 31 * 24 * 8 * HOUR, "2017-11": 2 * 24 * 8 * HOUR,
    }  # fmt: skip
    assert [months[key]["allocated_gpu_ms"] for key in ("2017-10", "2017-11")] == [2 * HOUR, 2 * HOUR]
    for row in months.values():
        assert (row["availability"], row["residual_gpu_ms"]) == ("1.0000", 0)
        assert row["impact"] == {"window": "1.0000", "hourly": "1.0000", "raw": "1.0000"}
        assert set(row["utilisation"]) == {"value", "rung", "coverage"}


def test_what_is_foreseen_is_shown_and_a_budget_that_will_not_do_is_marked(
    ledger: Ledger, tmp_path: Path
) -> None:
    """A run of twelve hours a day on eight GPUs for twenty days: 31 of them are 2,976 GPU-hours."""
    trace, budget = tmp_path / "philly.csv", tmp_path / "budget.yaml"
    days = "".join(f"2017-10-{day:02} 00:00:00,43200.0,8,345600.0,vc\n" for day in range(1, 21))
    trace.write_text(TRACE.splitlines()[0] + "\n" + days + "2017-10-19 00:00:00,3600.0,1,3600.0,other\n")
    budget.write_text(BUDGET)
    ledger.done("import", "philly", trace)
    ledger.done("budget", "apply", budget, "--from", "2017-10-01", "--yes")
    now_s = FROM_S + 20 * 86_400
    restate(ledger.url, Span("philly", FROM_S, now_s, now_s))
    rows = {row["account"]: row["forecast"] for row in ledger.done("budget", "report")["rows"]}
    assert rows["philly/vc"] == {
        "gpu_ms": 31 * 96 * HOUR, "low_gpu_ms": 31 * 96 * HOUR, "high_gpu_ms": 31 * 96 * HOUR, "band_percent": 80,
        "overrun": "expected", "history_days": 20, "as_of": "2017-10-21T00:00:00Z", "reason": None,
    }  # fmt: skip
    assert rows["philly/other"]["gpu_ms"] is None
    shown = ledger("budget", "report").out
    assert "Forecast to the end of 2017-10, GPU-hours; low to high holds 80 %" in shown
    lines = {line.split()[0]: line for line in shown.partition("Forecast to")[2].splitlines() if line.strip()}
    assert lines["philly/vc"].split() == [
        "philly/vc", "philly", "100.0", "1,920.0", "2,976.0", "2,976.0", "2,976.0", "expected",
    ]  # fmt: skip
    assert lines["philly/other"].rstrip().endswith("2 whole days are known, and a forecast needs 14")


def test_a_period_that_is_over_has_no_forecast_and_says_so(rolled_up: Ledger) -> None:
    shown = rolled_up("budget", "report", "--period", "2017-10").out
    assert shown.endswith("no forecast: the period is over: nothing more is delivered in it\n")
