"""Sums first, ratios last: the rows of the four layers."""

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest
import sqlalchemy as sa

from gpuledger.database.engine import make_engine, reading
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.clock import seconds
from gpuledger.kernel.errors import Refused
from gpuledger.warehouse import reads
from gpuledger.warehouse.reads import LayersBy, LayersQuery
from gpuledger.warehouse.tables import (
    layer_metrics_day,
    layer_metrics_hour,
    owed_hour,
    watermark,
)

MONDAY = dt.datetime(2026, 3, 2, tzinfo=dt.UTC)
HOUR = 3_600_000
"""One GPU for one hour, in gpu_ms."""


def _layer(cluster: str, **amounts: int | str | None) -> dict[str, Any]:
    zero = dict.fromkeys(
        (
            "overhead_gpu_ms",
            "reserved_gpu_ms",
            "free_gpu_ms",
            "lost_gpu_ms",
            "unknown_gpu_ms",
            "residual_gpu_ms",
        ),
        0,
    )
    row: dict[str, Any] = {
        "cluster": cluster, "unhealthy_gpu_ms": 0, "maintenance_gpu_ms": 0, "unallocated_gpu_ms": 0, **zero,
        "owed_gpu_ms": 0, "delivered_gpu_ms": 0, "hourly_met_gpu_ms": 0, "sampled_gpu_ms": 0,
        "used_gpu_ms": 0, "reason": None, **amounts,
    }  # fmt: skip
    if row["installed_gpu_ms"] is None:
        row |= dict.fromkeys(("unhealthy_gpu_ms", "maintenance_gpu_ms", *zero))
    return row


@pytest.fixture
def engine(database_url: str) -> Iterator[sa.Engine]:
    engine = make_engine(database_url)
    yield engine
    engine.dispose()


def _fill(engine: sa.Engine, table: sa.Table, rows: list[dict[str, Any]]) -> None:
    names = {column.name: column for column in table.columns}
    required = {name for name in names if name.startswith("unhealthy_occupied")}
    filled = [dict.fromkeys(required, 0) | row for row in rows]
    with engine.begin() as connection:
        connection.execute(sa.insert(table), filled)


def _layers(
    engine: sa.Engine,
    by: LayersBy,
    cluster: str | None = None,
    *,
    as_of: dt.datetime | None = None,
    **window: int,
) -> list[dict[str, Any]]:
    with reading(engine) as reader:
        rows = reads.layers(reader, LayersQuery(by, cluster, as_of=as_of, **window), Calendar())
    return [row.as_json() for row in rows]


def test_a_total_is_a_ratio_of_sums_not_a_mean_of_ratios(engine: sa.Engine) -> None:
    _fill(
        engine,
        layer_metrics_hour,
        [
            # Half of two GPUs, then all of one: 2 of 3, where a mean of ratios would say 3/4.
            _layer("alpha", hour_at=MONDAY, installed_gpu_ms=2 * HOUR, allocated_gpu_ms=HOUR),
            _layer("beta", hour_at=MONDAY, installed_gpu_ms=HOUR, allocated_gpu_ms=HOUR),
        ],
    )
    (row,) = _layers(engine, LayersBy.TOTAL)
    assert row["key"] == "total"
    assert row["installed_gpu_ms"] == 3 * HOUR
    assert row["occupancy"] == "0.6667"
    assert row["residual_gpu_ms"] == 0
    assert [r["key"] for r in _layers(engine, LayersBy.CLUSTER)] == ["alpha", "beta"]


def test_the_headline_is_cut_per_account_over_the_window(engine: sa.Engine) -> None:
    """The worked example of the design: raw 106.1 %, window 100 %, hourly 93.9 %."""
    owed, delivered = (350, 120, 0, 350), (300, 120, 0, 450)
    _fill(
        engine,
        owed_hour,
        [
            {
                "cluster": "alpha", "hour_at": MONDAY + dt.timedelta(hours=n), "account": "alpha/vision",
                "entitlement_gpu_ms": 350, "demand_gpu_ms": 600, "owed_gpu_ms": w, "delivered_gpu_ms": given,
            }
            for n, (w, given) in enumerate(zip(owed, delivered, strict=True))
        ],
    )  # fmt: skip
    hours = [
        _layer("alpha", hour_at=MONDAY + dt.timedelta(hours=n), installed_gpu_ms=HOUR, allocated_gpu_ms=0)
        for n in range(4)
    ]
    _fill(engine, layer_metrics_hour, hours)
    (row,) = _layers(engine, LayersBy.CLUSTER)
    assert row["impact"] == {"raw": "1.0610", "window": "1.0000", "hourly": "0.9390"}
    assert (row["owed_gpu_ms"], row["delivered_gpu_ms"]) == (820, 870)


def test_an_account_ahead_does_not_pay_for_one_behind(engine: sa.Engine) -> None:
    rows = [("ahead", 100, 200), ("behind", 100, 50)]
    _fill(
        engine,
        owed_hour,
        [
            {
                "cluster": "alpha", "hour_at": MONDAY, "account": f"alpha/{name}", "entitlement_gpu_ms": 100,
                "demand_gpu_ms": 200, "owed_gpu_ms": owed, "delivered_gpu_ms": delivered,
            }
            for name, owed, delivered in rows
        ],
    )  # fmt: skip
    _fill(
        engine, layer_metrics_hour, [_layer("alpha", hour_at=MONDAY, installed_gpu_ms=1, allocated_gpu_ms=0)]
    )
    (row,) = _layers(engine, LayersBy.TOTAL)
    assert row["impact"] == {"raw": "1.2500", "window": "0.7500", "hourly": "0.7500"}


def test_without_inventory_nothing_is_zero_and_the_reason_is_given(engine: sa.Engine) -> None:
    note = "no inventory: gpuledger budget apply"
    row = _layer("alpha", hour_at=MONDAY, installed_gpu_ms=None, allocated_gpu_ms=HOUR, reason=note)
    _fill(engine, layer_metrics_hour, [row])
    (answer,) = _layers(engine, LayersBy.CLUSTER)
    assert answer["installed_gpu_ms"] is None
    assert answer["availability"] is None
    assert answer["occupancy"] is None
    assert answer["impact"] == {"raw": None, "window": None, "hourly": None}
    assert answer["reasons"]["availability"] == note
    assert answer["utilisation"] == {"value": None, "rung": "gpu_util", "coverage": "0.0000"}
    assert answer["reasons"]["utilisation"] == reads.NOTHING_SAMPLED
    assert note in answer["reason"]


def test_hours_without_inventory_leave_both_sides_of_the_ratio(engine: sa.Engine) -> None:
    later = MONDAY + dt.timedelta(hours=1)
    _fill(
        engine,
        layer_metrics_hour,
        [
            _layer("alpha", hour_at=MONDAY, installed_gpu_ms=None, allocated_gpu_ms=9 * HOUR),
            _layer("alpha", hour_at=later, installed_gpu_ms=4 * HOUR, allocated_gpu_ms=HOUR)
            | {"sampled_gpu_ms": HOUR, "used_gpu_ms": HOUR // 2},
        ],
    )
    (row,) = _layers(engine, LayersBy.CLUSTER)
    assert row["occupancy"] == "0.2500"
    assert row["occupied_gpu_ms"] == 10 * HOUR
    assert row["utilisation"] == {"value": "0.5000", "rung": "gpu_util", "coverage": "0.1000"}
    assert "leave out 1 of 2" in row["reason"]


def test_keys_and_window_of_hours(engine: sa.Engine) -> None:
    hours = [
        _layer("alpha", hour_at=MONDAY + dt.timedelta(hours=n), installed_gpu_ms=HOUR, allocated_gpu_ms=0)
        for n in range(4)
    ]
    _fill(engine, layer_metrics_hour, hours)
    start = seconds(MONDAY)
    rows = _layers(engine, LayersBy.HOUR, cluster="alpha", from_s=start + 5400, to_s=start + 10800)
    assert [row["key"] for row in rows] == ["2026-03-02T01:00:00Z", "2026-03-02T02:00:00Z"]
    assert _layers(engine, LayersBy.HOUR, cluster="beta") == []
    assert _layers(engine, LayersBy.TOTAL, cluster="beta") == []


def test_days_are_the_organisations(engine: sa.Engine) -> None:
    days = [
        _layer("alpha", day=dt.date(2026, 3, n), installed_gpu_ms=24 * HOUR, allocated_gpu_ms=0)
        for n in (2, 3)
    ]
    _fill(engine, layer_metrics_day, days)
    late = dt.datetime(2026, 3, 2, 23, tzinfo=dt.UTC)  # already the third of March in Berlin
    owed = {"cluster": "alpha", "hour_at": late, "account": "alpha/x", "entitlement_gpu_ms": 5,
            "demand_gpu_ms": 4, "owed_gpu_ms": 4, "delivered_gpu_ms": 3}  # fmt: skip
    _fill(engine, owed_hour, [owed])
    query = LayersQuery(LayersBy.DAY, "alpha", seconds(MONDAY), seconds(MONDAY) + 2 * 86_400)
    with reading(engine) as reader:
        rows = reads.layers(reader, query, Calendar("Europe/Berlin"))
    assert [(row.key, row.owed and row.owed.impact().window) for row in rows] == [
        ("2026-03-02", None),
        ("2026-03-03", Decimal("0.7500")),
    ]


@pytest.mark.parametrize("zone", ["Europe/Berlin", "Asia/Kathmandu", "America/Havana"])
def test_owed_hours_fall_into_the_days_of_the_organisations_zone(engine: sa.Engine, zone: str) -> None:
    """Over both changes of clocks, each hour into the day that holds it, and each month into its own."""
    calendar = Calendar(zone)
    hours = [dt.datetime(2026, 1, 1, tzinfo=dt.UTC) + dt.timedelta(hours=n) for n in range(0, 365 * 24, 5)]
    _fill(
        engine,
        owed_hour,
        [
            {"cluster": "alpha", "hour_at": at, "account": "a", "owed_gpu_ms": 2, "delivered_gpu_ms": 1}
            | {"entitlement_gpu_ms": 2, "demand_gpu_ms": 2}
            for at in hours
        ],
    )
    days = sorted({calendar.day_of(seconds(at)) for at in hours})
    _fill(
        engine,
        layer_metrics_day,
        [_layer("alpha", day=day, installed_gpu_ms=1, allocated_gpu_ms=0) for day in days],
    )
    for by, key in ((LayersBy.DAY, dt.date.isoformat), (LayersBy.MONTH, calendar.period_of)):
        expected: dict[str, int] = {}
        for at in hours:
            name = key(calendar.day_of(seconds(at)))
            expected[name] = expected.get(name, 0) + 2
        with reading(engine) as reader:
            rows = reads.layers(reader, LayersQuery(by, "alpha"), calendar)
        assert {row.key: row.owed.owed_gpu_ms for row in rows if row.owed} == expected


def test_a_month_is_the_sum_of_its_days_in_the_organisations_zone(engine: sa.Engine) -> None:
    """Half past eleven in the evening of 31 March, UTC, is April in Berlin already."""
    days = [dt.date(2026, 3, 30), dt.date(2026, 3, 31), dt.date(2026, 4, 1)]
    _fill(
        engine,
        layer_metrics_day,
        [
            _layer("alpha", day=day, installed_gpu_ms=24 * HOUR, allocated_gpu_ms=part * HOUR)
            for day, part in zip(days, (6, 18, 24), strict=True)
        ],
    )
    hours = [dt.datetime(2026, 3, 31, 20, tzinfo=dt.UTC), dt.datetime(2026, 3, 31, 23, tzinfo=dt.UTC)]
    _fill(
        engine,
        owed_hour,
        [
            {"cluster": "alpha", "hour_at": at, "account": "alpha/a", "entitlement_gpu_ms": 4 * HOUR,
             "demand_gpu_ms": 4 * HOUR, "owed_gpu_ms": 4 * HOUR, "delivered_gpu_ms": n * HOUR}
            for n, at in enumerate(hours, start=1)
        ],
    )  # fmt: skip
    with reading(engine) as reader:
        rows = reads.layers(reader, LayersQuery(LayersBy.MONTH, "alpha"), Calendar("Europe/Berlin"))
    found = [
        (row.key, row.capacity.occupancy(), row.parts, row.owed and row.owed.impact().window) for row in rows
    ]
    assert found == [
        ("2026-03", Decimal("0.5000"), 2, Decimal("0.2500")),
        ("2026-04", Decimal("1.0000"), 1, Decimal("0.5000")),
    ]


def test_an_earlier_state_than_the_last_roll_ups_is_refused(engine: sa.Engine) -> None:
    """``alpha`` was rolled up at eight, ``beta`` at nine."""
    eight, second = dt.datetime(2026, 12, 1, 8, tzinfo=dt.UTC), dt.timedelta(seconds=1)
    _fill_watermark(engine, {"alpha": eight, "beta": eight + dt.timedelta(hours=1)})
    assert _layers(engine, LayersBy.DAY, "alpha", as_of=eight) == []
    with pytest.raises(Refused, match="rolled up at 2026-12-01T08:00:00Z and keeps no earlier state"):
        _layers(engine, LayersBy.DAY, "alpha", as_of=eight - second)
    with pytest.raises(Refused, match="T09:00:00Z"):
        _layers(engine, LayersBy.DAY, as_of=eight)


def _fill_watermark(engine: sa.Engine, rolled_up: dict[str, dt.datetime]) -> None:
    rows = [{"cluster": name, "ledger_seq": 1, "as_of_at": at} for name, at in rolled_up.items()]
    with engine.begin() as connection:
        connection.execute(sa.insert(watermark), rows)
