"""A month of 1 024 GPUs is rolled up in time that grows with its rows, and held against DuckDB over the same rows."""

import datetime as dt
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import sqlalchemy as sa
from tests.bench.spending import Backend
from tests.conftest import new_database
from tests.generated_year import DAY_S, Year, book
from tests.integration.pipelines.rows import TABLES

from gpuledger.database.embedded import EmbeddedPostgres
from gpuledger.kernel.clock import seconds
from gpuledger_pipelines.declaring import RESTATES
from gpuledger_pipelines.definitions import ASSETS
from gpuledger_pipelines.partitions import Span
from gpuledger_pipelines.resources import SETTINGS, Rewriting
from gpuledger_pipelines.statements import statement

pytestmark = [pytest.mark.bench, pytest.mark.timeout(3600)]

START_S = seconds(dt.datetime(2025, 1, 1, tzinfo=dt.UTC))
FORMS = {
    "short": Year(START_S, days=31, hosts=32, runs_per_day=102),
    "full": Year(START_S, days=31, hosts=128, runs_per_day=410),
}
TURNS = 5
WANTED, HOURS_MIN, SAMPLES_MIN = 0.3, 0.08, 0.05
"""Of DuckDB's speed: what is wanted; what hours from quarter-hours have, and quarter-hours from samples and runs. A
column store adds up a row in a tenth of the time that a row store takes to find its columns."""

GROWTH_MAX = 1.5
"""How much longer a row may take in a month than in a week."""

SIZES_DAYS = (7, 15, 31)

EXPORTS = {
    "samples": "SELECT workload, run, floor(extract(epoch FROM bucket_at))::bigint AS at_s, sampled_gpu_ms,"
    " used_gpu_upms FROM ledger_read.buckets WHERE cluster = 'year' AND rung = 'gpu_util'",
    "segments": "SELECT workload, run, account, class, gpus_milli, floor(extract(epoch FROM from_at))::bigint"
    " AS from_s, floor(extract(epoch FROM until_at))::bigint AS to_s FROM ledger_read.segments WHERE cluster = 'year'",
    "quarters": "SELECT floor(extract(epoch FROM bucket_at))::bigint AS at_s, account, class, gpu_ms, sampled_gpu_ms,"
    " used_gpu_ms FROM warehouse.usage_bucket",
}
HOURS = (
    "SELECT count(*), sum(g)::BIGINT, sum(s)::BIGINT FROM (SELECT at_s - at_s % 3600, account, class, sum(gpu_ms) AS g,"
    " sum(sampled_gpu_ms) AS s, sum(used_gpu_ms) AS u FROM read_parquet($quarters) GROUP BY ALL)"
)
SAMPLES = (Path(__file__).parent / "duckdb_roll_up.sql").read_text()
TOTALS = "SELECT count(*), sum(gpu_ms)::bigint, sum(sampled_gpu_ms)::bigint FROM warehouse."


@pytest.fixture(scope="module")
def rolled(
    postgres: EmbeddedPostgres, template_database: str, test_form: str
) -> Iterator[tuple[sa.Engine, Year]]:
    """The month, booked: the runs, waits, hosts and samples that the roll-up starts from."""
    assert ASSETS  # imported: every table is declared
    with new_database(postgres, template_database) as url:
        year = FORMS[test_form]
        book(url, year)
        engine = sa.create_engine(url, poolclass=sa.NullPool)
        yield engine, year
        engine.dispose()


def span(year: Year, days: int) -> Span:
    return Span(year.cluster, year.start_s, year.start_s + days * DAY_S, year.end_s)


def restating(engine: sa.Engine, tables: tuple[str, ...], over: Span) -> tuple[float, int]:
    """Restate tables in one transaction; return the server's processor time and the rows written."""
    with engine.begin() as connection:
        for setting in SETTINGS:
            connection.execute(sa.text(setting))
        backend = Backend(connection)
        began = backend.spent_s()
        rows = sum(RESTATES[table](Rewriting(connection, table), over) for table in tables)
        return backend.spent_s() - began, rows


def export(engine: sa.Engine, folder: Path, name: str) -> str:
    with engine.connect() as connection:
        found = connection.execute(sa.text(EXPORTS[name]))
        columns, rows = list(found.keys()), list(zip(*found, strict=True))
    path = folder / f"{name}.parquet"
    pq.write_table(pa.table(dict(zip(columns, rows, strict=True))), path)
    return str(path)


def adding_up() -> str:
    """The statement that adds quarter-hours up to hours, with nothing written and everything looked at."""
    text = statement("usage/usage_hour")
    hours = text[text.index("SELECT cluster") :]
    return (
        f"SELECT count(*), sum(gpu), sum(sampled), sum(used)"
        f" FROM ({hours}) AS hour (cluster, at, account, class, gpu, sampled, used)"
    )


def spent(work: Callable[[], Any]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


def test_a_month_is_rolled_up_at_a_good_part_of_the_speed_of_duckdb(
    rolled: sa.Engine, tmp_path: Path
) -> None:
    """DuckDB scans Parquet and adds up; the roll-up of quarter-hours also writes a table with its index."""
    engine, year = rolled
    tables, month = ("usage_bucket", "usage_hour"), span(year, year.days)
    restating(engine, tables, month)
    files = {name: export(engine, tmp_path, name) for name in EXPORTS}
    duck = duckdb.connect()
    duck.execute("SET threads = 1")
    raw = {
        "from_s": year.start_s,
        "to_s": year.end_s,
        "segments": files["segments"],
        "samples": files["samples"],
    }
    added_up = adding_up()
    duck_hours, own_hours, duck_raw, own_raw = [], [], [], []
    with engine.connect() as connection:
        totals = {t: tuple(connection.execute(sa.text(TOTALS + t)).one()) for t in tables}
        assert duck.execute(SAMPLES, raw).fetchone() == totals["usage_bucket"]
        assert duck.execute(HOURS, {"quarters": files["quarters"]}).fetchone() == totals["usage_hour"]
        backend = Backend(connection)
        for setting in SETTINGS:
            connection.execute(sa.text(setting))
        for _ in range(TURNS):
            duck_hours.append(
                spent(
                    lambda: [
                        duck.execute(HOURS, {"quarters": files["quarters"]}).fetchone() for _ in range(10)
                    ]
                )
                / 10
            )
            began = backend.spent_s()
            for _ in range(10):
                connection.execute(sa.text(added_up), month.binds)
            own_hours.append((backend.spent_s() - began) / 10)
    for _ in range(TURNS):
        duck_raw.append(spent(lambda: duck.execute(SAMPLES, raw).fetchone()))
        own_raw.append(restating(engine, ("usage_bucket",), month)[0])
    duck.close()
    adding, all_of_it = median(duck_hours) / median(own_hours), median(duck_raw) / median(own_raw)
    print(
        f"\n{totals['usage_bucket'][0]:,} quarter-hours added up to {totals['usage_hour'][0]:,} hours:"
        f" {1000 * median(own_hours):.0f} ms, {adding:.2f} of DuckDB's speed ({1000 * median(duck_hours):.0f} ms),"
        f" {WANTED} wanted; quarter-hours from samples and runs, written too:"
        f" {1000 * median(own_raw):.0f} ms, {all_of_it:.3f} of DuckDB"
        f" ({1000 * median(duck_raw):.0f} ms, nothing written), {WANTED} wanted"
    )
    assert adding >= HOURS_MIN
    assert all_of_it >= SAMPLES_MIN


def test_a_roll_up_grows_with_its_rows(rolled: tuple[sa.Engine, Year]) -> None:
    """Every table, a week, two and a month: what a row takes stays the same."""
    (engine, year), tables = rolled, TABLES
    restating(engine, tables, span(year, year.days))
    took: dict[int, list[float]] = {days: [] for days in SIZES_DAYS}
    rows: dict[int, int] = {}
    for _ in range(3):
        for days in SIZES_DAYS:
            seconds_spent, rows[days] = restating(engine, tables, span(year, days))
            took[days].append(seconds_spent)
    each_us = {days: 1e6 * median(took[days]) / rows[days] for days in SIZES_DAYS}
    print(
        "\n"
        + "; ".join(
            f"{d} days: {rows[d]:,} rows, {median(took[d]):.2f} s, {each_us[d]:.1f} µs a row"
            for d in SIZES_DAYS
        )
    )
    assert each_us[SIZES_DAYS[-1]] <= GROWTH_MAX * each_us[SIZES_DAYS[0]]
