"""Budgets are in weighted units, so what is held against them is weighed by the same rate card."""

import datetime as dt
from typing import Any

import pytest
from tests.integration.pipelines.rows import (
    DAY,
    DAY_S,
    HOUR_S,
    START_S,
    Database,
    Facts,
    Host,
    Segment,
    Wait,
)  # fmt: skip
from tests.integration.pipelines.running import restate, roll_up, why

from gpuledger_pipelines.partitions import Span

NOON_S = START_S + 12 * HOUR_S
LATER_S = START_S + 400 * DAY_S
GPU_HOUR = 1000 * HOUR_S
MIXED = "A100:1000,B200:3000"
CAUSES = ("transfer", "expiry", "capacity", "demand", "scheduler", "credit")


def booked(database: Database, facts: Facts, weighted: dict[str, int]) -> None:
    """Put the facts, with charges as the rate card makes them: account -> weighted GPU-hours."""
    database.put(facts)
    database.book(facts, "2024-03")
    for account, gpu_hours in weighted.items():
        database.execute(
            "UPDATE ledger.balances SET amount = :a WHERE account = :n AND commodity = 'gpu_ms_weighted'"
            " AND pot = 'spent'",
            a=gpu_hours * GPU_HOUR * 1000,
            n=account,
        )


def lines(database: Database) -> dict[str, dict[str, Any]]:
    return {row["account"]: row for row in database.table("budget_vs_actual")}


def dear() -> Facts:
    """Four GPUs for a day that weigh twice; a runs for two hours, b waits for one."""
    return Facts(
        segments=[Segment("c/a", 2000, NOON_S, NOON_S + 2 * HOUR_S, gpu_model="B200")],
        waits=[Wait("c/b", 1000, NOON_S, NOON_S + HOUR_S, gpu_model="B200")],
        hosts=[Host("h", 4, "healthy", START_S, START_S + DAY_S, gpu_model="B200")],
        accounts=["c/a", "c/b"],
    )


def test_a_model_that_weighs_twice_is_owed_and_delivered_twice(database: Database) -> None:
    booked(database, dear(), {"c/a": 8})
    database.rate("c", 2, START_S - DAY_S, {"B200": 2000})
    database.post(
        [("c", "gpu_ms_weighted", "c/a", "2024-03", "budget", "grant", 100 * GPU_HOUR * 1000),
         ("c", "gpu_ms_weighted", "c/a", "2024-03", "credited", "credit", 1 * GPU_HOUR * 1000)]
    )  # fmt: skip
    result = roll_up(database.url, DAY, DAY, now_s=LATER_S)
    assert result.success, why(result)
    a, b = lines(database)["c/a"], lines(database)["c/b"]
    assert (a["charged_gpu_ms"], a["delivered_gpu_ms"]) == (8 * GPU_HOUR, 7 * GPU_HOUR)
    assert (a["entitlement_gpu_ms"], a["demand_gpu_ms"], a["owed_gpu_ms"]) == (
        96 * GPU_HOUR, 8 * GPU_HOUR, 8 * GPU_HOUR,
    )  # fmt: skip
    assert (b["entitlement_gpu_ms"], b["demand_gpu_ms"], b["owed_gpu_ms"]) == (
        96 * GPU_HOUR, 2 * GPU_HOUR, 2 * GPU_HOUR,
    )  # fmt: skip
    causes = [a[f"variance_{cause}_gpu_ms"] for cause in CAUSES]
    assert causes == [0, 0, 4 * GPU_HOUR, 88 * GPU_HOUR, 0, GPU_HOUR]
    assert sum(causes) == a["budget_gpu_ms"] - a["delivered_gpu_ms"]
    usage = {r["account"]: r["gpu_ms"] for r in database.table("usage_bucket")}
    assert usage == {"c/a": 2 * 900 * 1000}, "physics is not weighed"
    (hours,) = {r["owed_gpu_ms"] for r in database.table("owed_hour") if r["account"] == "c/b"} - {0}
    assert hours == GPU_HOUR


def test_a_weight_counts_from_its_second_and_the_last_that_was_set_for_it(database: Database) -> None:
    booked(database, dear(), {"c/a": 7})
    database.rate("c", 2, NOON_S + HOUR_S // 2, {"B200": 9000})
    database.rate("c", 3, NOON_S + HOUR_S // 2, {"B200": 2000})
    database.rate("c", 4, NOON_S + 30 * HOUR_S, {"B200": 5000})
    result = roll_up(database.url, DAY, DAY, now_s=LATER_S)
    assert result.success, why(result)
    a = lines(database)["c/a"]
    assert a["delivered_gpu_ms"] == 7 * GPU_HOUR  # half an hour at 1, an hour and a half at 2, of two GPUs
    assert a["entitlement_gpu_ms"] == (12 * 2 + 1 + 2 + 11 * 4) * GPU_HOUR
    assert a["owed_gpu_ms"] == 7 * GPU_HOUR


def test_each_model_of_a_run_weighs_its_own_part(database: Database) -> None:
    facts = Facts(
        segments=[
            Segment("c/a", 4000, NOON_S, NOON_S + HOUR_S, gpu_model=MIXED),
            Segment("c/b", 1000, NOON_S, NOON_S + HOUR_S, gpu_model="with, a comma"),
            Segment("c/d", 1000, NOON_S, NOON_S + HOUR_S),
        ],
        hosts=[
            Host("h", 4, "healthy", START_S, START_S + DAY_S, gpu_model="A100"),
            Host("i", 4, "healthy", START_S, START_S + DAY_S, gpu_model="B200"),
        ],
        accounts=["c/a", "c/b", "c/d"],
    )
    booked(database, facts, {"c/a": 10})
    database.rate("c", 2, START_S, {"B200": 3000, "A100": 1000})
    result = roll_up(database.url, DAY, DAY, now_s=LATER_S)
    assert result.success, why(result)
    delivered = {account: row["delivered_gpu_ms"] // GPU_HOUR for account, row in lines(database).items()}
    assert delivered == {"c/a": 10, "c/b": 1, "c/d": 1}
    entitled = sum(row["entitlement_gpu_ms"] for row in lines(database).values())
    assert (
        0 <= 8 * 2 * DAY_S * 1000 - entitled < len(facts.accounts)
    )  # eight GPUs weigh two on average; rounded down


@pytest.mark.parametrize("weight", [500, 3000])
def test_a_forecast_is_in_the_units_of_its_budget(database: Database, weight: int) -> None:
    """Every day as the one before: what is foreseen is what the weight makes of it."""
    days = 20
    facts = Facts(
        segments=[Segment("c/a", 1000, START_S, START_S + days * DAY_S, gpu_model="B200")],
        hosts=[Host("h", 1, "healthy", START_S, gpu_model="B200")],
        accounts=["c/a"],
    )
    database.put(facts)
    span = Span("c", START_S, START_S + days * DAY_S, START_S + days * DAY_S)
    database.rate("c", 2, START_S, {"B200": 1000})
    restate(database.url, span)
    (plain,) = database.table("forecast")
    database.rate("c", 3, START_S, {"B200": weight})
    restate(database.url, span)
    (weighed,) = database.table("forecast")
    for column in ("delivered_gpu_ms", "forecast_gpu_ms", "low_gpu_ms", "high_gpu_ms"):
        assert weighed[column] == pytest.approx(plain[column] * weight / 1000, rel=1e-3)


def test_days_that_were_never_rolled_up_weigh_nothing(database: Database) -> None:
    facts = dear()
    facts.segments.append(
        Segment("c/a", 1000, NOON_S + 3 * DAY_S, NOON_S + 3 * DAY_S + HOUR_S, gpu_model="B200")
    )
    database.put(facts)
    database.rate("c", 2, START_S, {"B200": 2000})
    restate(database.url, Span("c", START_S, START_S + DAY_S, LATER_S))
    assert lines(database)["c/a"]["delivered_gpu_ms"] == 8 * GPU_HOUR
    assert dt.date(2024, 3, 1) == DAY
