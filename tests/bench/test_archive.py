"""The archive: what a GPU-day weighs, what writing costs beside a bare COPY, and the roll-up beside a bare scan."""

import datetime as dt
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

import duckdb
import psycopg
import pyarrow as pa
import pyarrow.compute as pc
import pytest
import sqlalchemy as sa
from tests.conftest import new_database
from tests.generated_year import DAY_S, Year, book

from gpuledger.database.embedded import EmbeddedPostgres
from gpuledger.database.engine import make_engine, reading
from gpuledger.kernel.clock import seconds
from gpuledger_pipelines.archive import engines, rolling, writing
from gpuledger_pipelines.archive.contents import TELEMETRY, USAGE
from gpuledger_pipelines.archive.expression import usage_hour
from gpuledger_pipelines.archive.verifying import verify
from gpuledger_pipelines.defs.archive.updating import write_days

pytestmark = [pytest.mark.bench, pytest.mark.timeout(3600)]

FIRST = dt.date(2025, 1, 1)
START_S = seconds(dt.datetime(2025, 1, 1, tzinfo=dt.UTC))
FORMS = {
    "short": Year(START_S, days=3, hosts=32, runs_per_day=102),
    "full": Year(START_S, days=7, hosts=128, runs_per_day=410),
}
TURNS = 3

WRITING_MIN = 0.3
"""Of the speed at which the same rows are sent and thrown away."""

WANTED, SCAN_MIN = 0.3, 0.2
"""Of the speed at which DuckDB adds the same files up by account and hour, and nothing more. The roll-up has four times
as many groups, rounds each, adds what runs held, and 50 ms go by before its SQL is written."""

MONTH_DAYS = 31

SIZE_MAX = 0.1
"""Of what the same samples take in PostgreSQL, with their keys and indexes."""

MEMORY_MAX = 1.25
"""Most memory of writing a day of four rungs, against that of a day of one."""

SAMPLES = """
    INSERT INTO telemetry.buckets (book, bucket_at, gpu, workload, run, rung, sampled_gpu_ms, used_gpu_upms)
    SELECT book, bucket_at, 'GPU-' || md5(hosts[1 + (gpu - 1) / 8] || (gpu - 1) % 8), workload, run, rung, 300000,
           300000::bigint * CASE rung WHEN 'gpu_util' THEN 10000 * (level / 10000) ELSE level END
    FROM ledger.segments
    CROSS JOIN LATERAL generate_series(
        date_bin('5 minutes', greatest(from_at, to_timestamp(:from_s)) + interval '5 minutes', 'epoch'),
        least(to_at, to_timestamp(:to_s)) - interval '5 minutes', '5 minutes'
    ) AS bucket_at
    CROSS JOIN LATERAL generate_series(1, gpus_milli / 1000) AS gpu
    CROSS JOIN unnest(CAST(:rungs AS text[])) AS rung
    CROSS JOIN LATERAL (SELECT abs(hashtextextended(workload || rung, 0) % 800000)
        + abs(hashint8extended(extract(epoch FROM bucket_at)::bigint, id * 64 + gpu) % 200000) AS level) AS noise
    WHERE book = :cluster AND until_seq IS NULL AND to_at IS NOT NULL
    ON CONFLICT DO NOTHING
"""
"""Every five minutes of every GPU of a run; no two samples of the finer rungs are alike, which packs worst."""

RUNGS = ["gpu_util", "gr_engine_active", "sm_active", "tensor_active"]


@pytest.fixture(scope="module")
def booked(
    postgres: EmbeddedPostgres, template_database: str, test_form: str
) -> Iterator[tuple[sa.Engine, Year]]:
    """Days of a busy cluster, all with four rungs, but for the last one, which has one."""
    year = FORMS[test_form]
    with new_database(postgres, template_database) as url:
        book(url, year)
        engine = make_engine(url)
        last_s = year.end_s - DAY_S
        with engine.begin() as connection:
            connection.exec_driver_sql("TRUNCATE telemetry.buckets")
            for from_s, to_s, rungs in ((year.start_s, last_s, RUNGS), (last_s, year.end_s, RUNGS[:1])):
                connection.execute(
                    sa.text(SAMPLES),
                    {"cluster": year.cluster, "from_s": from_s, "to_s": to_s, "rungs": rungs},
                )
        with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.exec_driver_sql("VACUUM ANALYZE telemetry.buckets")
        yield engine, year
        engine.dispose()


def clocked(work: Callable[[], Any], clock: Callable[[], float] = time.perf_counter) -> float:
    began = clock()
    work()
    return clock() - began


def sent(engine: sa.Engine, year: Year, day: dt.date) -> None:
    """Ask for the rows of a day as the writer does, and throw them away."""
    from_s = seconds(dt.datetime.combine(day, dt.time(), dt.UTC))
    binds = {"cluster": year.cluster, "from_s": from_s, "to_s": from_s + DAY_S}
    with reading(engine) as reader:
        for setting in writing.SETTINGS:
            reader.exec_driver_sql(setting)
        raw = reader.connection.driver_connection
        assert isinstance(raw, psycopg.Connection)
        for dataset in (USAGE, TELEMETRY):
            statement = f"COPY ({dataset.statement}) TO STDOUT (FORMAT csv)"
            with raw.cursor() as cursor, cursor.copy(statement, binds) as copy:
                for _ in copy:
                    pass


def test_writing_costs_little_more_than_the_rows_that_are_sent(
    booked: tuple[sa.Engine, Year], tmp_path: Path
) -> None:
    engine, year = booked
    copying, archiving = [], []
    for turn in range(TURNS):
        copying.append(clocked(lambda: sent(engine, year, FIRST)))
        archiving.append(
            clocked(lambda: writing.write_day(engine, tmp_path / str(turn), year.cluster, FIRST))  # noqa: B023
        )
    written = verify(tmp_path / "0")
    ratio = median(c / a for c, a in zip(copying, archiving, strict=True))
    rows = sum(written.rows.values())
    print(
        f"\na day of {year.hosts * 8} GPUs, {rows:,} rows: sent in {median(copying):.2f} s, archived in"
        f" {median(archiving):.2f} s ({rows / median(archiving):,.0f} rows/s), ratio {ratio:.2f}"
    )
    assert ratio >= WRITING_MIN


def test_what_a_gpu_day_weighs(booked: tuple[sa.Engine, Year], tmp_path: Path) -> None:
    """Of the days with four rungs; against PostgreSQL, which holds one day of one rung more."""
    engine, year = booked
    end = FIRST + dt.timedelta(days=year.days - 1)
    write_days(engine, tmp_path, year.cluster, FIRST, end, year.end_s)
    found, days = verify(tmp_path), rolling.days_of(tmp_path, year.cluster, FIRST, end)
    used = sum(m.sums["gpu_ms"] for m in days.manifests["usage"]) / (1000 * DAY_S)
    seen = sum(m.sums["gpu_util/sampled_gpu_ms"] for m in days.manifests["telemetry"]) / (1000 * DAY_S)
    with engine.connect() as connection:
        kept, kept_rows = connection.execute(
            sa.text("SELECT pg_total_relation_size('telemetry.buckets'), count(*) FROM telemetry.buckets")
        ).one()
    a_row, in_postgres = found.bytes["telemetry"] / found.rows["telemetry"], kept / kept_rows
    print(
        f"\nusage: {found.rows['usage'] / used:.2f} rows and {found.bytes['usage'] / used:.1f} bytes a GPU-day;"
        f" telemetry of four rungs: {found.rows['telemetry'] / seen:,.0f} rows and"
        f" {found.bytes['telemetry'] / seen:,.0f} bytes a GPU-day, {a_row:.2f} bytes a row, in PostgreSQL"
        f" {in_postgres:.0f} ({a_row / in_postgres:.3f})"
    )
    assert a_row / in_postgres <= SIZE_MAX


def test_the_roll_up_beside_a_bare_scan(booked: tuple[sa.Engine, Year], tmp_path: Path) -> None:
    """A month of files, which are those of a day of four rungs again and again; processor time of all threads."""
    engine, year = booked
    end = FIRST + dt.timedelta(days=1)
    write_days(engine, tmp_path, year.cluster, FIRST, end, year.end_s)
    days = rolling.days_of(tmp_path, year.cluster, FIRST, end)
    files = {name: list(paths) * MONTH_DAYS for name, paths in days.files.items()}
    scan = (
        "SELECT count(*), sum(s)::BIGINT FROM (SELECT bucket_s - bucket_s % 3600, account, class,"
        " sum(sampled_gpu_ms) AS s, sum(used_gpu_upms) AS u FROM read_parquet($files)"
        " WHERE rung = 'gpu_util' AND account IS NOT NULL GROUP BY ALL)"
    )
    plain = duckdb.connect()
    scanning, rolling_up = [], []
    with engines.duckdb() as connected:

        def bare() -> int:
            found = plain.execute(scan, {"files": [str(path) for path in files["telemetry"]]}).fetchone()
            return int(found[1])

        def rolled() -> pa.Table:
            return connected.run(
                usage_hour(connected.table(files["usage"]), connected.table(files["telemetry"]))
            )

        assert pc.sum(rolled()["sampled_gpu_ms"]).as_py() == bare()
        for _ in range(2 * TURNS + 1):
            scanning.append(clocked(bare, time.process_time))
            rolling_up.append(clocked(rolled, time.process_time))
    rows = MONTH_DAYS * sum(m.rows for each in days.manifests.values() for m in each)
    ratio = median(s / r for s, r in zip(scanning, rolling_up, strict=True))
    print(
        f"\n{MONTH_DAYS} days, {rows:,} rows: scanned and added up in {1000 * median(scanning):.0f} ms, rolled up in"
        f" {1000 * median(rolling_up):.0f} ms, ratio {ratio:.2f}, {WANTED} wanted"
    )
    assert ratio >= SCAN_MIN


WRITER = """
import datetime, pathlib, sys
from gpuledger.database.engine import make_engine
from gpuledger_pipelines.archive import writing
from tests.bench.peak import peak_mib
url, root, cluster, day = sys.argv[1:]
writing.GROUP_ROWS, writing.BLOCK_BYTES = 1 << 14, 1 << 20
writing.write_day(make_engine(url), pathlib.Path(root), cluster, datetime.date.fromisoformat(day))
print(peak_mib())
"""
"""A process of its own says what it held at most, in MiB. With small groups, for a day of many in a small cluster."""


def test_memory_does_not_grow_with_the_day(
    repository: Path, booked: tuple[sa.Engine, Year], tmp_path: Path
) -> None:
    engine, year = booked
    last = FIRST + dt.timedelta(days=year.days - 1)
    url = engine.url.render_as_string(hide_password=False)
    most, rows = {}, {}
    for day in (last, FIRST):
        command = [sys.executable, "-c", WRITER, url, str(tmp_path), year.cluster, str(day)]
        ran = subprocess.run(command, cwd=repository, capture_output=True, text=True, check=True)
        most[day] = float(ran.stdout)
        days = rolling.days_of(tmp_path, year.cluster, day, day + dt.timedelta(days=1))
        rows[day] = days.manifests["telemetry"][0].rows
    print(f"\n{rows[last]:,} rows: {most[last]:.0f} MiB; {rows[FIRST]:,} rows: {most[FIRST]:.0f} MiB")
    assert rows[FIRST] > 3 * rows[last] > 6 << 14
    assert most[FIRST] <= MEMORY_MAX * most[last]
