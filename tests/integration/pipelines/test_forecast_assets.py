"""The forecast in the warehouse: a function of what was known at the run's present, in the organisation's days."""

import random

import pytest
from tests.integration.pipelines.rows import DAY_S, HOUR_S, START_S, Database, Facts, Segment
from tests.integration.pipelines.running import gates, restate_one

from gpuledger_pipelines.defs.forecast.assets import NOT_BEGUN, OVER
from gpuledger_pipelines.partitions import Span

NOW_S = START_S + 20 * DAY_S + 6 * HOUR_S
"""Six in the morning of 21 March."""

SPAN = Span("c", START_S, NOW_S + 18 * HOUR_S, NOW_S)


def daily(account: str, days: range, *, seed: int = 1) -> list[Segment]:
    """A run a day from midnight, of 12 to 16 hours on two GPUs."""
    chance = random.Random(seed)
    return [
        Segment(account, 2000, START_S + n * DAY_S, START_S + n * DAY_S + chance.randrange(12, 17) * HOUR_S)
        for n in days
    ]


FACTS = Facts(
    segments=[
        *daily("c/old", range(-40, 20)),
        Segment("c/old", 2000, NOW_S - 4 * HOUR_S, None),  # it runs still
        *daily("c/new", range(10, 20)),
        Segment("c/free", 1000, START_S - 30 * DAY_S, NOW_S, klass="unallocated"),
        Segment("c/free", 1000, NOW_S - HOUR_S, NOW_S),  # charged for the first time
    ],
    accounts=["c/old", "c/new", "c/free"],
)


def forecast(database: Database, span: Span = SPAN) -> dict[tuple[str, str], dict[str, object]]:
    for table in ("usage_bucket", "usage_hour", "owed_hour", "budget_vs_actual", "forecast"):
        restate_one(database.url, table, span)
    return {(row["period"], row["account"]): row for row in database.table("forecast")}


def test_delivered_grows_by_what_the_days_left_bring(database: Database) -> None:
    database.put(FACTS)
    rows = forecast(database)
    assert {account for _, account in rows} == {"c/old", "c/new", "c/free"}
    row = rows["2024-03", "c/old"]
    assert (row["history_day_count"], row["left_day_count"], row["reason"]) == (60, 11, None)
    delivered, low, high = (row[f"{name}_gpu_ms"] for name in ("delivered", "low", "high"))
    # Eleven days of 14 hours on two GPUs, less four hours that today has seen already.
    expected = delivered + (11 * 14 - 4) * 2000 * HOUR_S
    assert low < expected < high
    assert abs(row["forecast_gpu_ms"] - expected) < 11 * 2000 * HOUR_S
    assert gates(database.url, SPAN).get("forecast") is None


def test_a_short_history_has_a_reason_and_time_free_of_charge_is_no_history(database: Database) -> None:
    database.put(FACTS)
    rows = forecast(database)
    for account, days in (("c/new", 10), ("c/free", 0)):
        row = rows["2024-03", account]
        assert [row[f"{name}_gpu_ms"] for name in ("forecast", "low", "high")] == [None] * 3
        assert row["reason"] == f"{days} whole days are known, and a forecast needs 14"


def test_it_is_a_function_of_what_was_known(database: Database) -> None:
    """What runs after the present, and the ledger's having it, changes nothing."""
    database.put(FACTS)
    before = forecast(database)
    assert forecast(database) == before
    late = Facts(segments=[Segment("c/old", 64_000, NOW_S, NOW_S + DAY_S, run="r9", workload="late")])
    database.put(late)
    assert forecast(database) == before


def test_a_period_that_is_over_or_not_begun_has_no_forecast(database: Database) -> None:
    database.put(FACTS)
    later = Span("c", START_S, START_S + DAY_S, START_S + 40 * DAY_S)
    assert {row["reason"] for row in forecast(database, later).values()} == {OVER}
    early = Span("c", START_S, START_S + DAY_S, START_S - DAY_S)
    database.execute("UPDATE warehouse.budget_vs_actual SET delivered_gpu_ms = 0 WHERE period = '2024-03'")
    restate_one(database.url, "forecast", early)
    assert {row["reason"] for row in database.table("forecast")} == {NOT_BEGUN}


@pytest.mark.parametrize("zone", ["Asia/Kolkata", "America/Los_Angeles"])
def test_days_are_cut_in_the_organisations_zone(database: Database, zone: str) -> None:
    facts = Facts(segments=daily("c/a", range(-20, 20)), accounts=["c/a"], timezone=zone)
    database.put(facts)
    row = forecast(database)["2024-03", "c/a"]
    # In Los Angeles it is the evening of the 20th still, and each run begins on the day before.
    assert row["left_day_count"] == (11 if zone == "Asia/Kolkata" else 12)
    assert row["history_day_count"] == 40
