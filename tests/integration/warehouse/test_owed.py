"""Hours of owed and delivered, summed in the organisation's zone; what nobody knew stays unknown."""

import datetime as dt
from typing import Any

import sqlalchemy as sa

from gpuledger.database.engine import make_engine, reading
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.clock import seconds
from gpuledger.warehouse.owed import OwedBy, OwedQuery, OwedRow, owed
from gpuledger.warehouse.tables import owed_hour

EVENING = dt.datetime(2026, 10, 31, 15, tzinfo=dt.UTC)
"""An hour before midnight in Taipei."""


def hour(number: int, account: str, entitlement: int | None, demand: int, delivered: int) -> dict[str, Any]:
    owing = None if entitlement is None else min(entitlement, demand)
    return {
        "cluster": "alpha", "hour_at": EVENING + dt.timedelta(hours=number), "account": account,
        "entitlement_gpu_ms": entitlement, "demand_gpu_ms": demand, "owed_gpu_ms": owing,
        "delivered_gpu_ms": delivered,
    }  # fmt: skip


ROWS = [
    hour(0, "org/a", 10, 4, 6),
    hour(1, "org/a", 10, 20, 8),
    hour(2, "org/a", None, 5, 5),
    hour(2, "org/ab", None, 7, 7),
    {**hour(1, "org/a", 99, 99, 99), "cluster": "beta"},
]


def read(database_url: str, by: OwedBy, **asked: Any) -> list[OwedRow]:  # noqa: ANN401
    engine = make_engine(database_url)
    with engine.begin() as connection:
        connection.execute(sa.insert(owed_hour), ROWS)
    with reading(engine) as reader:
        found = owed(reader, OwedQuery("alpha", by, **asked), Calendar("Asia/Taipei"))
    engine.dispose()
    return found


def test_days_are_cut_in_the_zone_and_null_hours_are_counted(database_url: str) -> None:
    assert read(database_url, OwedBy.DAY) == [
        OwedRow("2026-10-31", "org/a", 10, 4, 4, 6, 4, 1, 1),
        OwedRow("2026-11-01", "org/a", 10, 25, 10, 13, 8, 2, 1),
        OwedRow("2026-11-01", "org/ab", None, 7, None, 7, None, 1, 0),
    ]


def test_a_window_is_widened_to_whole_hours_and_a_name_that_begins_alike_is_not_below(
    database_url: str,
) -> None:
    from_s = seconds(EVENING) + 3600 + 1800
    found = read(database_url, OwedBy.HOUR, within="org/a", from_s=from_s, to_s=from_s + 60)
    assert [(row.key, row.account) for row in found] == [("2026-10-31T16:00:00Z", "org/a")]


def test_a_month_is_that_of_the_zone(database_url: str) -> None:
    found = read(database_url, OwedBy.MONTH, within="org/a")
    assert [(row.key, row.delivered_gpu_ms) for row in found] == [("2026-10", 6), ("2026-11", 13)]
