"""The real traces in the warehouse, against figures that were computed elsewhere and arithmetic from the files.

Hours are those published beside the traces, to the third decimal; amounts by key are exact, to the unit.
"""

import datetime as dt
from collections import defaultdict
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest
import sqlalchemy as sa
from tests.commands import fixtures
from tests.commands import traces as oracle
from tests.commands.fixtures import Ledger
from tests.integration.pipelines.rows import Database
from tests.integration.pipelines.running import gates, restate, restate_one

from gpuledger.kernel.amounts import gpu_hours
from gpuledger.simulator.waits import size_of
from gpuledger_pipelines.expectations.layers import STATES
from gpuledger_pipelines.partitions import DAY_S, Span

traces = fixtures.traces
ledger = fixtures.ledger

MONTHS = {"2017-09": "135584.801", "2017-10": "442067.613", "2017-11": "295879.673", "2017-12": "104546.386"}
EDGES = [
    int(dt.datetime(2017 + n // 13, n % 13 + n // 13, 1, tzinfo=dt.UTC).timestamp()) for n in range(9, 14)
]


def midnight(*parts: int) -> int:
    return int(dt.datetime(*parts, tzinfo=dt.UTC).timestamp())  # type: ignore[arg-type]


PHILLY = Span("philly", midnight(2017, 9, 1), midnight(2018, 1, 1), midnight(2020, 1, 1))
ALEX = Span("alex", midnight(2023, 2, 7), midnight(2023, 2, 12), midnight(2024, 1, 1))
OPENB = Span("openb", 0, 150 * DAY_S, midnight(2024, 1, 1))


@pytest.fixture(scope="module")
def copied(traces: Ledger) -> Iterator[Database]:
    """A copy of the imported traces, for nobody may change the ledger that others read."""
    url = sa.make_url(traces.url)
    server = sa.create_engine(
        url.set(database="template1"), isolation_level="AUTOCOMMIT", poolclass=sa.NullPool
    )
    with server.connect() as connection:
        connection.exec_driver_sql(f'CREATE DATABASE rolled_up TEMPLATE "{url.database}"')
    yield Database(url.set(database="rolled_up").render_as_string(hide_password=False))
    with server.connect() as connection:
        connection.exec_driver_sql("DROP DATABASE rolled_up WITH (FORCE)")


@pytest.fixture(scope="module")
def philly(copied: Database) -> Database:
    restate(copied.url, PHILLY)
    return copied


@pytest.fixture(scope="module")
def alex(copied: Database) -> Database:
    restate(copied.url, ALEX)
    return copied


def test_philly_by_month_and_by_virtual_cluster_and_month(philly: Database) -> None:
    """Read where a manager looks: delivered of the period, which is physical time by account."""
    rows = philly.query(
        "SELECT period, account, delivered_gpu_ms FROM warehouse.budget_vs_actual WHERE cluster = 'philly'"
    )
    totals: dict[str, int] = defaultdict(int)
    for period, _, amount in rows:
        totals[period] += amount
    assert {period: str(gpu_hours(amount)) for period, amount in totals.items() if amount} == MONTHS
    runs: dict[str, list[oracle.Run]] = defaultdict(list)
    for run in oracle.philly():
        runs[f"philly/{run.key}"].append(run)
    expected = {
        (period, account): amount
        for account, own in runs.items()
        for period, amount in zip(MONTHS, oracle.by_window(own, EDGES), strict=True)
        if amount
    }
    assert {(period, account): amount for period, account, amount in rows if amount} == expected


@pytest.mark.parametrize(("cluster", "table"), [("philly", "gpu_hour"), ("alex", "gpu_bucket")])
def test_every_gpu_second_is_in_one_state(philly: Database, alex: Database, cluster: str, table: str) -> None:
    assert philly is alex
    ((rows, known, wrong),) = philly.query(
        f"SELECT count(*), count(installed_gpu_ms), count(*) FILTER (WHERE residual_gpu_ms <> 0 OR"
        f" installed_gpu_ms <> {' + '.join(STATES)})"
        f" FROM warehouse.{table} WHERE cluster = :c",
        c=cluster,
    )
    hours = (PHILLY.to_s - PHILLY.from_s) // 3600 if table == "gpu_hour" else (ALEX.to_s - ALEX.from_s) // 900
    assert (rows, known, wrong) == (hours, hours, 0)


@pytest.mark.parametrize("span", [PHILLY, ALEX], ids=lambda span: span.cluster)
def test_every_gate_holds(philly: Database, alex: Database, span: Span) -> None:
    assert philly is alex
    assert gates(philly.url, span) == {}


def test_alex_utilisation_is_weighted_by_gpu_time(alex: Database) -> None:
    ((held, used, sampled),) = alex.query(
        "SELECT sum(allocated_gpu_ms), sum(used_gpu_ms), sum(sampled_gpu_ms)"
        " FROM warehouse.layer_metrics_day WHERE cluster = 'alex'"
    )
    assert (str(gpu_hours(held)), str(gpu_hours(used))) == ("3980.037", "2859.882")
    assert f"{Decimal(used) / Decimal(held):.2%}" == f"{Decimal(used) / Decimal(sampled):.2%}" == "71.86%"


def test_alex_who_was_idle_and_who_squatted(alex: Database) -> None:
    """108 jobs were used below 5 %, of which 12 ran for more than half an hour.

    One of the 108, of two seconds, names a device without an address: it has no sample, so that nothing is known of it.
    """
    ((idle, squatted, unknown),) = alex.query(
        "SELECT sum(idle_gpu_ms), sum(squatted_gpu_ms), sum(allocated_gpu_ms - sampled_gpu_ms)"
        " FROM warehouse.waste_day WHERE cluster = 'alex'"
    )
    assert unknown == 2000
    assert (str(gpu_hours(idle + unknown)), str(gpu_hours(squatted))) == ("78.809", "70.885")
    by_project: dict[str, int] = defaultdict(int)
    low = [run for run in oracle.alex() if run.milli and run.used_percent < 5]
    long = [run for run in low if run.end_s - run.start_s > 1800]
    assert (len(low), len(long)) == (108, 12)
    for run in long:
        by_project[f"alex/{run.key}"] += run.gpu_ms
    found = alex.query(
        "SELECT account, sum(squatted_gpu_ms)::bigint FROM warehouse.waste_period"
        " WHERE cluster = 'alex' AND squatted_gpu_ms > 0 GROUP BY 1"
    )
    assert dict(found) == by_project


def test_openb_waits_by_size_are_those_of_the_file(copied: Database) -> None:
    """Every pod that asked for a GPU: how long it waited, or for how long it was seen to."""
    restate_one(copied.url, "queue_wait_day", OPENB)
    started: dict[str, list[int]] = defaultdict(list)
    never = 0
    for row in oracle.rows(oracle.OPENB_PODS):
        milli = int(row["num_gpu"]) * int(row["gpu_milli"] or 0)
        if milli and row["scheduled_time"]:
            started[size_of(milli)].append(int(row["scheduled_time"]) - int(row["creation_time"]))
        elif (
            milli and row["deletion_time"] != row["creation_time"]
        ):  # one was gone in the second in which it came
            never += 1
    rows = copied.query(
        "SELECT size, array_agg(s ORDER BY s) FROM warehouse.queue_wait_day, unnest(started_after_s) AS s"
        " WHERE cluster = 'openb' GROUP BY 1"
    )
    assert dict(rows) == {size: sorted(waits) for size, waits in started.items()}
    # As published: median and 90th percentile of pods with a part of a GPU, and with one.
    for size, median, p90 in (("<1", 1, 140), ("1", 2, 137)):
        waits = dict(rows)[size]
        assert (waits[len(waits) // 2], waits[len(waits) * 9 // 10]) == (median, p90)
    ((unstarted,),) = copied.query(
        "SELECT sum(waiting_count + withdrawn_count) FROM warehouse.queue_wait_day WHERE cluster = 'openb'"
    )
    assert unstarted == never == 860


def test_helios_earth_allocated_of_what_was_installed(
    ledger: Ledger, repository: Path, tmp_path: Path
) -> None:
    """May 2020 in Shanghai, where 856 GPUs were held for 424,772.617 of 636,864 hours."""
    budget = tmp_path / "budget.yaml"
    budget.write_text(
        "organisation: {timezone: Asia/Shanghai}\n"
        "clusters: {helios: {gpus: 856, model: v100, gpus_per_host: 8}}\n"
        "accounts: {helios: {share: 1}}\n"
    )
    ledger.done("budget", "apply", budget, "--from", "2020-04-01", "--yes")
    path = repository / "tests/fixtures/sources/helios/earth_vc_state_changes_2020-05.csv.gz"
    ledger.done("import", "helios", path, "--tz", "Asia/Shanghai")
    restate(ledger.url, Span("helios", midnight(2020, 4, 30), midnight(2020, 6, 1), midnight(2021, 1, 1)))
    (month,) = (
        row
        for row in ledger.done("layers", "--by", "month", "--cluster", "helios")["rows"]
        if row["key"] == "2020-05"
    )
    assert str(gpu_hours(month["allocated_gpu_ms"])) == "424772.617"
    assert gpu_hours(month["installed_gpu_ms"]) == 636_864
    assert (month["occupancy"], month["residual_gpu_ms"]) == ("0.6670", 0)
