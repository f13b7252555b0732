"""What the archive comes to is what the warehouse says, hour by hour and to the unit, on either engine."""

import datetime as dt
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pyarrow.parquet as pq
import pytest
import sqlalchemy as sa
from tests.conftest import new_database
from tests.generated_year import DAY_S, Year, book
from tests.integration.pipelines.running import restate_one

from gpuledger.database.embedded import EmbeddedPostgres
from gpuledger.database.engine import make_engine
from gpuledger.kernel.clock import seconds
from gpuledger.kernel.errors import Corrupt, NotFound, Refused
from gpuledger_pipelines.archive import rolling
from gpuledger_pipelines.archive.engines import Connected
from gpuledger_pipelines.archive.expression import RUNG
from gpuledger_pipelines.archive.layout import DATA, Place
from gpuledger_pipelines.archive.rolling import Rows
from gpuledger_pipelines.definitions import ASSETS
from gpuledger_pipelines.defs.archive.updating import write_days
from gpuledger_pipelines.partitions import Span

FIRST, DAYS = dt.date(2025, 1, 1), 4
END = FIRST + dt.timedelta(days=DAYS)
YEAR = Year(
    seconds(dt.datetime(2025, 1, 1, tzinfo=dt.UTC)), days=DAYS, hosts=6, runs_per_day=20, cluster="a b/c%=*"
)

ODD_SAMPLES = """
    UPDATE telemetry.buckets SET used_gpu_upms = used_gpu_upms + 1 + 499999 * abs(mod(hashtext(workload), 3));
    INSERT INTO telemetry.buckets (book, bucket_at, gpu, workload, run, rung, sampled_gpu_ms, used_gpu_upms)
    SELECT book, bucket_at, gpu, workload, run, 'sm_active', sampled_gpu_ms, used_gpu_upms / 2 FROM telemetry.buckets;
    INSERT INTO telemetry.buckets (book, bucket_at, gpu, workload, run, rung, sampled_gpu_ms, used_gpu_upms)
    SELECT book, to_at, 'straggler', workload, run, 'gpu_util', 1000, 777 FROM (
        SELECT DISTINCT ON (to_at) book, date_bin('5 minutes', to_at, 'epoch') AS to_at, workload, run
        FROM ledger.segments WHERE until_seq IS NULL AND to_at IS NOT NULL
    ) AS ended ON CONFLICT DO NOTHING;
    INSERT INTO telemetry.buckets (book, bucket_at, gpu, workload, run, rung, sampled_gpu_ms, used_gpu_upms)
    SELECT book, bucket_at, 'unknown', 'nobody', '1', rung, 300000, 300000 FROM telemetry.buckets LIMIT 50
    ON CONFLICT DO NOTHING
"""
"""Halves to round, a second rung, samples after the end of their run, and samples of nobody's."""


class Story(NamedTuple):
    """A ledger whose usage is in the warehouse and in an archive."""

    engine: sa.Engine
    root: Path


@pytest.fixture(scope="module")
def story(
    postgres: EmbeddedPostgres, template_database: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Story]:
    """Four days of 48 GPUs, of a cluster with a name that is awkward in paths."""
    assert ASSETS  # imported: every table is declared
    with new_database(postgres, template_database) as url:
        book(url, YEAR)
        engine, root = make_engine(url), tmp_path_factory.mktemp("archive")
        with engine.begin() as connection:
            connection.exec_driver_sql(ODD_SAMPLES)
        span = Span(YEAR.cluster, YEAR.start_s, YEAR.end_s, YEAR.end_s + DAY_S)
        for table in ("usage_bucket", "usage_hour"):
            restate_one(url, table, span)
        write_days(engine, root, YEAR.cluster, FIRST, END, YEAR.end_s + DAY_S)
        yield Story(engine, root)
        engine.dispose()


def in_warehouse(story: Story, days: rolling.Days) -> Rows:
    with story.engine.connect() as connection:
        return rolling.warehouse_rows(connection, days)


@pytest.mark.parametrize("first_day", [0, 2])
def test_duckdb_equals_the_warehouse(story: Story, duckdb: Connected, first_day: int) -> None:
    days = rolling.days_of(story.root, YEAR.cluster, FIRST + dt.timedelta(days=first_day), None)
    found = rolling.by_key(rolling.roll_up(duckdb, days, RUNG))
    assert found == in_warehouse(story, days)
    assert list(rolling.differences(found, in_warehouse(story, days))) == []
    assert len(found) > 200
    assert all(any(amounts[n] for amounts in found.values()) for n in range(3))


def test_spark_equals_duckdb_and_the_warehouse(story: Story, duckdb: Connected, spark: Connected) -> None:
    days = rolling.days_of(story.root, YEAR.cluster, None, None)
    tables = [rolling.roll_up(engine, days, RUNG) for engine in (duckdb, spark)]
    assert tables[0].to_pylist() == tables[1].to_pylist()
    assert rolling.by_key(tables[1]) == in_warehouse(story, days)


def test_another_rung_has_its_own_use(story: Story, duckdb: Connected) -> None:
    days = rolling.days_of(story.root, YEAR.cluster, None, None)
    by_rung = [rolling.by_key(rolling.roll_up(duckdb, days, rung)) for rung in (RUNG, "sm_active")]
    gpu_ms, used = ([sum(a[n] for a in rows.values()) for rows in by_rung] for n in (0, 2))
    assert gpu_ms[0] == gpu_ms[1]
    assert 0 < used[1] < used[0]


def test_others_read_the_layout_as_hives(story: Story, spark: Connected) -> None:
    """Folders are columns to DuckDB and to Spark, with the values that they stand for."""
    import duckdb as plain
    from pyspark.sql import SparkSession

    usage = story.root / "usage" / "v1"
    query = (
        "SELECT cluster, day::varchar, count(*), sum(gpus_milli * (to_s - from_s))::bigint"
        f" FROM read_parquet('{usage}/*/*/*.parquet', hive_partitioning = true) GROUP BY ALL ORDER BY 2"
    )
    found = plain.connect().execute(query).fetchall()
    assert [(row[0], row[1]) for row in found] == [
        (YEAR.cluster, str(FIRST + dt.timedelta(days=n))) for n in range(DAYS)
    ]
    session = SparkSession.getActiveSession()
    assert session is not None
    session.read.parquet(str(usage)).createOrReplaceTempView("plain_usage")
    rows = session.sql(
        "SELECT cluster, cast(day AS string), count(*), sum(gpus_milli * (to_s - from_s))"
        " FROM plain_usage GROUP BY ALL ORDER BY 2"
    ).collect()
    assert [tuple(row) for row in rows] == found


def test_a_difference_names_its_row(story: Story, duckdb: Connected) -> None:
    days = rolling.days_of(story.root, YEAR.cluster, None, None)
    found = rolling.by_key(rolling.roll_up(duckdb, days, RUNG))
    warehouse = dict(in_warehouse(story, days))
    missing, wrong = sorted(warehouse)[3], sorted(warehouse)[5]
    del warehouse[missing]
    warehouse[wrong] = warehouse[wrong]._replace(used_gpu_ms=-1)
    more = wrong._replace(account="zz")
    warehouse[more] = warehouse[wrong]
    different = {each.key: each for each in rolling.differences(found, warehouse)}
    assert set(different) == {missing, wrong, more}
    assert different[missing].warehouse is None
    assert different[more].archive is None


def test_rows_that_do_not_sum_to_the_manifests_are_corrupt(story: Story, duckdb: Connected) -> None:
    """A file of the same size with other rows is not found by its size, but by its sums."""
    days = rolling.days_of(story.root, YEAR.cluster, None, None)
    usage = list(days.manifests["usage"])
    usage[1] = usage[1].__class__(
        **{name: getattr(usage[1], name) for name in usage[1].__struct_fields__}
        | {"sums": {"gpu_ms": usage[1].sums["gpu_ms"] + 1}}
    )
    other = rolling.Days(days.cluster, days.first, days.end, {**days.manifests, "usage": usage}, days.files)
    with pytest.raises(Corrupt, match="and the manifests tell of"):
        rolling.roll_up(duckdb, other, RUNG)


def test_a_day_that_the_archive_lacks_is_named(story: Story, tmp_path: Path) -> None:
    with pytest.raises(NotFound, match=r"day=2025-01-05/_manifest\.json is missing"):
        rolling.days_of(story.root, YEAR.cluster, FIRST, END + dt.timedelta(days=1))
    with pytest.raises(NotFound, match="has no day of 'nowhere'"):
        rolling.days_of(story.root, "nowhere", None, None)
    with pytest.raises(NotFound, match="has no day of 'c'"):
        rolling.days_of(tmp_path, "c", None, None)
    with pytest.raises(Refused, match="no day lies in"):
        rolling.days_of(story.root, YEAR.cluster, END, FIRST)


def test_files_of_this_many_days_are_as_many(story: Story) -> None:
    days = rolling.days_of(story.root, YEAR.cluster, None, None)
    assert {name: len(files) for name, files in days.files.items()} == {"usage": DAYS, "telemetry": DAYS}
    first = Place("usage", YEAR.cluster, FIRST).folder(story.root) / DATA
    assert days.files["usage"][0] == first
    assert pq.ParquetFile(first).metadata.num_rows == days.manifests["usage"][0].rows
    assert days.known_seq == days.manifests["telemetry"][-1].known_seq > 0
