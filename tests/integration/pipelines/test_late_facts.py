"""A fact that comes late restates the partitions that it touches, and no other row of the warehouse."""

import datetime as dt
from collections import Counter
from collections.abc import Callable

import pytest
from tests.integration.pipelines.rows import (
    DAY,
    DAY_S,
    HOUR_S,
    START_S,
    TABLES,
    Database,
    Facts,
    Host,
    Sample,
    Segment,
    Wait,
)  # fmt: skip
from tests.integration.pipelines.running import restate

from gpuledger_pipelines.partitions import Span

DAYS = 10
NOW_S = START_S + DAYS * DAY_S
LATE = 6
"""Number of the day on which the late fact took effect."""

LATE_S = START_S + LATE * DAY_S
OF_PERIODS = ("budget_vs_actual", "forecast")
WHOLE = Span("c", START_S, NOW_S, NOW_S)
TOUCHED = Span("c", LATE_S, LATE_S + DAY_S, NOW_S)


def everything() -> Facts:
    """Ten days on 16 GPUs: each day a run, a wait that it ends, and samples of half of it."""
    facts = Facts(
        hosts=[Host("h1", 8, "healthy", START_S), Host("h2", 8, "healthy", START_S)], accounts=["c/a", "c/b"]
    )
    for n in range(DAYS):
        from_s = START_S + n * DAY_S + 10 * HOUR_S
        run = Segment("c/a", 4000, from_s, from_s + 2 * HOUR_S, hosts=("h1",), workload=f"w{n}", user="ann")
        facts.segments.append(run)
        facts.waits.append(Wait("c/a", 4000, from_s - 600, from_s, workload=f"w{n}"))
        facts.samples += [Sample(f"w{n}", from_s + at_s, 4000 * 300, 2) for at_s in range(0, HOUR_S, 300)]
    return facts


def versions(database: Database) -> dict[str, Counter[tuple[object, str]]]:
    """Each row of each table with the transaction that wrote it, counted by the day that it is about."""
    found = {}
    for table in TABLES:
        at = "period" if table in OF_PERIODS else None
        for instant in ("bucket_at", "hour_at"):
            if database.query(
                "SELECT 1 FROM information_schema.columns WHERE table_schema = 'warehouse'"
                " AND table_name = :t AND column_name = :c",
                t=table, c=instant,
            ):  # fmt: skip
                at = f"({instant} AT TIME ZONE 'UTC')::date"
        rows = database.query(f"SELECT {at or 'day'}, xmin::text FROM warehouse.{table}")
        found[table] = Counter(rows)
    return found


def late_run(database: Database) -> None:
    database.execute(
        "INSERT INTO ledger.segments (book, workload, run, account, class, user_token, gpus_milli, hosts, from_at,"
        " to_at, estimated, since_seq) VALUES ('c', 'late', 'r1', 'c/b', 'allocated', 'bob', 2000, '{h2}',"
        " to_timestamp(:f), to_timestamp(:t), false, 2)",
        f=LATE_S + HOUR_S, t=LATE_S + 3 * HOUR_S,
    )  # fmt: skip


def late_failure(database: Database) -> None:
    database.execute("UPDATE ledger.hosts SET to_at = to_timestamp(:f) WHERE host = 'h2'", f=LATE_S + HOUR_S)
    for state, from_s, to_s in (
        ("unhealthy", LATE_S + HOUR_S, LATE_S + 2 * HOUR_S),
        ("healthy", LATE_S + 2 * HOUR_S, None),
    ):
        database.execute(
            "INSERT INTO ledger.hosts (book, host, gpus, gpu_model, state, from_at, to_at, since_seq)"
            " VALUES ('c', 'h2', 8, 'm', :s, to_timestamp(:f), to_timestamp(:t), 2)",
            s=state, f=from_s, t=to_s,
        )  # fmt: skip


def late_samples(database: Database) -> None:
    database.execute(
        "INSERT INTO telemetry.buckets (book, bucket_at, gpu, workload, run, rung, sampled_gpu_ms, used_gpu_upms)"
        " SELECT 'c', to_timestamp(:f + n * 300), 'late', :w, 'r1', 'gpu_util', 1200000, 0"
        " FROM generate_series(0, 11) AS n",
        f=LATE_S + 11 * HOUR_S, w=f"w{LATE}",
    )  # fmt: skip


@pytest.mark.parametrize("fact", [late_run, late_failure, late_samples])
def test_a_late_fact_writes_the_rows_of_its_day_and_no_other(
    database: Database, fact: Callable[[Database], None]
) -> None:
    database.put(everything())
    restate(database.url, WHOLE)
    before = versions(database)
    fact(database)
    written = restate(database.url, TOUCHED)
    after = versions(database)
    day = DAY + dt.timedelta(days=LATE)
    for table in TABLES:
        new = after[table] - before[table]
        assert {at for at, _ in new} == ({"2024-03"} if table in OF_PERIODS else {day}), table
        assert new.total() == written[table], table
        gone = before[table] - after[table]
        assert {at for at, _ in gone} == {at for at, _ in new}, table


@pytest.mark.parametrize("fact", [late_run, late_failure, late_samples])
def test_what_is_restated_for_a_late_fact_is_what_a_new_roll_up_says(
    database: Database, fact: Callable[[Database], None]
) -> None:
    """All that the fact changes lies in its day, or in the period."""
    database.put(everything())
    restate(database.url, WHOLE)
    fact(database)
    restate(database.url, TOUCHED)
    one_day = {table: database.table(table) for table in TABLES}
    restate(database.url, WHOLE)
    assert {table: database.table(table) for table in TABLES} == one_day


def test_restating_again_writes_the_same_rows(database: Database) -> None:
    database.put(everything())
    written = restate(database.url, WHOLE)
    first = {table: database.table(table) for table in TABLES}
    assert restate(database.url, WHOLE) == written
    assert {table: database.table(table) for table in TABLES} == first
