"""Random ledgers against a second-by-second oracle: every figure to the unit."""

import datetime as dt
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.integration.pipelines.oracle import Oracle
from tests.integration.pipelines.rows import (
    DAY_S,
    HOUR_S,
    START_S,
    Database,
    Facts,
    Host,
    Segment,
    Share,
    Wait,
)  # fmt: skip

from gpuledger_pipelines import definitions
from gpuledger_pipelines.declaring import RESTATES, restated
from gpuledger_pipelines.partitions import Span
from gpuledger_pipelines.resources import Warehouse

ACCOUNTS = ["c", "c/x", "c/x/p", "c/x/q", "c/y", "c/z", "other"]
LEAVES = ["c/x/p", "c/x/q", "c/y", "c/z"]
STATES = {
    "lost",
    "allocated",
    "unallocated",
    "overhead",
    "unhealthy",
    "maintenance",
    "reserved",
    "free",
    "unknown",
}
ZONES = ["UTC", "Asia/Kolkata", "Asia/Kathmandu", "America/New_York"]
WINDOW_S = (START_S - HOUR_S, START_S + DAY_S + 3 * HOUR_S)

instants = st.integers(*WINDOW_S)
ends = st.none() | instants


def interval(from_s: int, to_s: int | None) -> bool:
    return to_s is None or to_s > from_s


segments = st.builds(
    Segment,
    account=st.sampled_from([*LEAVES, "c/x", "other"]),
    gpus_milli=st.sampled_from([0, 142, 500, 1000, 3000, 8000]),
    from_s=instants,
    to_s=ends,
    klass=st.sampled_from(["allocated", "unallocated"]),
    hosts=st.sampled_from([(), ("h0",), ("h0", "h1"), ("h0", "h1", "h2")]),
).filter(lambda s: interval(s.from_s, s.to_s))
waits = st.builds(
    Wait,
    account=st.sampled_from(LEAVES),
    gpus_milli=st.sampled_from([500, 4000, 64_000]),
    from_s=instants,
    to_s=ends,
    minimum_runtime_s=st.sampled_from([0, 3600]),
).filter(lambda w: interval(w.from_s, w.to_s))
shares = st.builds(
    Share, account=st.sampled_from([*LEAVES, "c/x"]), share=st.sampled_from([0, 1, 3, 7]), from_s=instants
)


@st.composite
def hosts(draw: st.DrawFn) -> list[Host]:
    """Each host's states follow each other without a gap, from before the window on."""
    found = []
    for name in draw(st.sampled_from([(), ("h0",), ("h0", "h1", "h2")])):
        edges = [START_S - DAY_S, *sorted(draw(st.sets(instants, max_size=2)))]
        gpus = draw(st.sampled_from([1, 8]))
        for start, end in zip(edges, [*edges[1:], None], strict=True):
            state = draw(st.sampled_from(["healthy", "unhealthy", "maintenance", "draining", "reserved"]))
            bad = draw(st.sampled_from([0, 0, 1, 3])) if gpus > 1 and state != "unhealthy" else 0
            found.append(Host(name, gpus - bad, state, start, end))
            if bad:  # where parts of a host may be used, it has a row for each state
                found.append(Host(name, bad, "unhealthy", start, end))
    return found


facts = st.builds(
    Facts,
    segments=st.lists(segments, max_size=8),
    waits=st.lists(waits, max_size=4),
    hosts=hosts(),
    shares=st.lists(shares, max_size=5, unique_by=lambda s: (s.account, s.from_s)),
    accounts=st.just(ACCOUNTS),
    timezone=st.sampled_from(ZONES),
)


@pytest.fixture
def warehouse(database: Database) -> Iterator[Warehouse]:
    warehouse = Warehouse(url=database.url)
    yield warehouse
    warehouse.engine().dispose()


@given(known=facts, now_s=st.just(START_S + 2 * DAY_S) | instants)
@settings(
    max_examples=settings.get_profile(settings.get_current_profile_name()).max_examples // 5,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_every_figure_is_the_oracles(
    database: Database, warehouse: Warehouse, known: Facts, now_s: int
) -> None:
    """The range is one UTC day; the facts reach over both of its edges."""
    assert definitions.ASSETS  # imported: every table is declared
    database.clear()
    database.put(known)
    span = Span("c", START_S, START_S + DAY_S, now_s)
    for table in RESTATES:
        restated(warehouse, table, span)
    oracle = Oracle(known, span.from_s, span.to_s, now_s)
    usage_is_the_oracles(database, oracle)
    capacity_is_the_oracles(database, oracle)
    owed_is_the_oracles(database, oracle)
    days_are_the_oracles(database, oracle)


def usage_is_the_oracles(database: Database, oracle: Oracle) -> None:
    buckets = {
        (r["bucket_at"], r["account"], r["class"]): r["gpu_ms"] for r in database.table("usage_bucket")
    }
    hours = {(r["hour_at"], r["account"], r["class"]): r["gpu_ms"] for r in database.table("usage_hour")}
    assert buckets == {key: amount for key, amount in oracle.usage.items() if amount}
    assert hours == {key: amount for key, amount in oracle.usage_hours().items() if amount}


def capacity_is_the_oracles(database: Database, oracle: Oracle) -> None:
    names = ("installed", "unhealthy", "unhealthy_occupied", "maintenance", "reserved")
    rows = database.table("gpu_bucket")
    found = {
        r["bucket_at"]: {n: r[f"{n}_gpu_ms"] for n in names}
        for r in rows
        if r["installed_gpu_ms"] is not None
    }
    if oracle.since_s is None:
        assert found == {}
        return
    offered = {at: {n: amounts[n] for n in names} for at, amounts in oracle.capacity.items()}
    assert (
        found
        == dict.fromkeys({at for at, *_ in oracle.usage if at not in offered}, dict.fromkeys(names, 0))
        | offered
    )
    for kind, hours in (("gpu_bucket", rows), ("gpu_hour", database.table("gpu_hour"))):
        for row in hours:
            states = [name for name in row if name.removesuffix("_gpu_ms") in STATES]
            assert len(states) == len(STATES), kind
            assert sum(row[name] for name in states) == row["installed_gpu_ms"]
            assert row["residual_gpu_ms"] == 0


def owed_is_the_oracles(database: Database, oracle: Oracle) -> None:
    rows = {(r["hour_at"], r["account"]): r for r in database.table("owed_hour")}
    delivered = {
        (h, a): amount for (h, a, klass), amount in oracle.usage_hours().items() if klass == "allocated"
    }
    for key, row in rows.items():
        assert row["delivered_gpu_ms"] == delivered.get(key, 0)
        assert row["demand_gpu_ms"] == delivered.get(key, 0) + oracle.waiting.get(key, 0)
        if oracle.since_s is None:
            assert row["entitlement_gpu_ms"] is row["owed_gpu_ms"] is None
        else:
            # Rounded once for each interval between changes of shares, of which an hour has six at most.
            assert abs(row["entitlement_gpu_ms"] - oracle.entitled.get(key, Fraction(0))) < 6
            assert row["owed_gpu_ms"] == min(row["entitlement_gpu_ms"], row["demand_gpu_ms"])
    demanded = {key for key in delivered if delivered[key]} | {key for key, w in oracle.waiting.items() if w}
    assert demanded <= rows.keys()
    entitled: dict[int, Any] = {}
    for (hour, _), part in oracle.entitled.items():
        entitled[hour] = entitled.get(hour, 0) + part
    for hour, whole in entitled.items():
        assert whole == sum(r["entitlement_gpu_ms"] or 0 for key, r in rows.items() if key[0] == hour)


def days_are_the_oracles(database: Database, oracle: Oracle) -> None:
    occupied: dict[dt.date, int] = {}
    installed: dict[dt.date, int] = {}
    reserved: dict[dt.date, int] = {}
    hourly: dict[int, int] = {}
    for (bucket, _, _), amount in oracle.usage.items():
        occupied[oracle.day_of(bucket)] = occupied.get(oracle.day_of(bucket), 0) + amount
    for bucket, capacity in oracle.capacity.items():
        day = oracle.day_of(bucket)
        installed[day] = installed.get(day, 0) + capacity["installed"]
        reserved[day] = reserved.get(day, 0) + capacity["reserved"]
        hourly[bucket - bucket % 3600] = hourly.get(bucket - bucket % 3600, 0) + capacity["reserved"]
    rows = {r["day"]: r for r in database.table("layer_metrics_day")}
    found = {day: r["allocated_gpu_ms"] + r["unallocated_gpu_ms"] for day, r in rows.items()}
    assert {day: amount for day, amount in found.items() if amount} == {
        d: a for d, a in occupied.items() if a
    }
    for day, row in rows.items():
        if row["installed_gpu_ms"] is not None:
            assert row["installed_gpu_ms"] == installed.get(day, 0)
            assert row["reserved_gpu_ms"] == reserved.get(day, 0)
            assert row["free_gpu_ms"] == (
                row["installed_gpu_ms"] - found[day] - row["unhealthy_gpu_ms"] - row["maintenance_gpu_ms"]
                - reserved.get(day, 0)
            )  # fmt: skip
    kept = {
        r["hour_at"]: r["reserved_gpu_ms"]
        for r in database.table("layer_metrics_hour")
        if r["reserved_gpu_ms"]
    }
    assert kept == {hour: amount for hour, amount in hourly.items() if amount}
