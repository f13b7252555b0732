"""A simulation that is imported into a ledger and rolled up by the real pipelines says what its measures say."""

import datetime as dt
import random
from collections.abc import Iterable, Iterator
from decimal import Decimal
from pathlib import Path

import pytest
import sqlalchemy as sa
from tests.integration.pipelines.rows import Database
from tests.integration.pipelines.running import roll_up, why

from gpuledger.database.engine import make_engine
from gpuledger.ingest.importer import LedgerSink, run_import
from gpuledger.ingest.intake import Intake
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.clock import FixedClock, instant
from gpuledger.simulator.engine import simulate
from gpuledger.simulator.facts import Fact
from gpuledger.simulator.jobs import Job
from gpuledger.simulator.journal import Journal
from gpuledger.simulator.measures import Measures, measure
from gpuledger.simulator.owing import add_up
from gpuledger.simulator.scenario import AccountSpec, FaultModel, HostSpec, Scenario
from gpuledger.simulator.worlds.registry import make_world
from gpuledger.sources.protocol import ImportOptions
from gpuledger.sources.registry import source
from gpuledger.warehouse.readings import ratio

START_S = 1_709_251_200
"""2024-03-01T00:00:00Z."""
DAYS, HOUR_S = 2, 3_600


class Drawn:
    """As many jobs as keep the cluster busy, of several accounts, with and without minimum runtimes."""

    def __init__(self, seed: int) -> None:
        draw, at_s, jobs = random.Random(seed), START_S, list[Job]()
        while at_s < START_S + DAYS * 86_400:
            at_s += draw.randint(60, 1_500)
            jobs.append(
                Job(
                    job=f"j{len(jobs)}", account=draw.choice(["org/a", "org/a", "org/b/x", "org/b/y"]),
                    user=draw.choice(["ada", "bob"]), gpus_milli=1000 * draw.choice([1, 2, 4, 8, 16]),
                    submitted_s=at_s, work_s=draw.randint(600, 20_000), startup_s=60,
                    minimum_runtime_s=draw.choice([0, 900, HOUR_S, 4 * HOUR_S]), checkpoint_s=draw.choice([None, 900]),
                    patience_s=draw.choice([None, 3 * HOUR_S]), resumable=draw.random() < 0.7,
                    gpu_model=draw.choice([None, None, None, "H100", "B200"]),  # nobody has a B200
                )
            )  # fmt: skip
        self.jobs = jobs

    def first(self) -> Iterable[Job]:
        return self.jobs

    def after(self, job: Job, at_s: int) -> Iterable[Job]:
        return ()


SCENARIO = Scenario(
    name="drawn",
    cluster="c",
    start_s=START_S,
    days=DAYS,
    warm_up_days=0,
    hosts=tuple(HostSpec(host=f"h{n}", gpus_milli=8_000, gpu_model="H100") for n in range(5)),
    accounts=(
        AccountSpec(account="org/a", share=2),
        AccountSpec(account="org/b", share=1),
        AccountSpec(account="org/b/x", share=3),
        AccountSpec(account="org/b/y", share=1),
    ),
    demand=Drawn,
    faults=FaultModel(mtbf_s=86_400, repair_s=2 * HOUR_S, drain_mtbf_s=86_400, drain_repair_s=HOUR_S),
)


@pytest.fixture
def engine(database_url: str) -> Iterator[sa.Engine]:
    engine = make_engine(database_url)
    yield engine
    engine.dispose()


@pytest.fixture
def database(database_url: str, monkeypatch: pytest.MonkeyPatch) -> Database:
    monkeypatch.setenv("GPULEDGER_DATABASE_URL", database_url)
    return Database(database_url)


def simulated(world: str, seed: int, path: Path) -> Measures:
    journal = Journal(SCENARIO, world=world, seed=seed)

    def told() -> Iterator[Fact]:
        with path.open("wb") as file:
            file.writelines(journal.opening())
            for fact in simulate(SCENARIO, make_world(world, SCENARIO, seed), seed=seed):
                file.writelines(journal.lines(fact))
                yield fact

    return measure(told(), SCENARIO)


@pytest.mark.parametrize(("world", "seed"), [("old", 1), ("gpuledger", 2)])
def test_the_rolled_up_ledger_gives_the_same_report(
    engine: sa.Engine, database: Database, tmp_path: Path, world: str, seed: int
) -> None:
    path = tmp_path / "events.ndjson"
    found = simulated(world, seed, path)
    intake = Intake(engine, FixedClock(instant(SCENARIO.end_s + 86_400)), Calendar())
    report, clusters = run_import(source("events"), path, ImportOptions(), LedgerSink(intake), lambda _: None)
    assert (report.dead_lettered, clusters) == (0, ["c", "~org"])
    intake.open_periods(["c"])
    first = dt.date(2024, 3, 1)
    result = roll_up(database.url, first, first + dt.timedelta(days=DAYS - 1), now_s=SCENARIO.end_s)
    assert result.success, why(result)

    assert found.jobs > 150
    assert found.failures
    assert found.drains.begun
    _same_partition(database, found)
    _same_accounts(database, found)


def _same_partition(database: Database, found: Measures) -> None:
    """State by state; what the ledger takes for free is free, or reserved, which it was not told."""
    names = ("installed", "allocated", "unallocated", "unhealthy", "maintenance", "reserved", "free")
    columns = ", ".join(f"sum({name}_gpu_ms)" for name in names)
    ((*sums,),) = database.query(f"SELECT {columns} FROM warehouse.layer_metrics_hour")
    ledger = dict(zip(names, map(int, sums), strict=True))
    partition = found.partition
    assert ledger.pop("reserved") == 0
    assert ledger.pop("free") == partition.free + partition.reserved
    assert ledger == {name: getattr(partition, name) for name in ledger}
    usable = ledger["installed"] - ledger["unhealthy"] - ledger["maintenance"]
    assert ratio(ledger["allocated"] + ledger["unallocated"], usable) == ratio(
        partition.occupied, partition.usable
    )


def _same_accounts(database: Database, found: Measures) -> None:
    """E, D, W, L of each account and hour, and the GPU-hours it used."""
    rows = database.query(
        "SELECT account, extract(epoch FROM hour_at)::bigint, entitlement_gpu_ms, demand_gpu_ms, owed_gpu_ms,"
        " delivered_gpu_ms FROM warehouse.owed_hour"
    )
    ledger = {(account, int(at_s)): tuple(map(int, amounts)) for account, at_s, *amounts in rows}
    measured = {
        (path, START_S + hour * HOUR_S): (entitled, demand, min(entitled, demand), delivered)
        for path, hours in found.hours.items()
        for hour, (entitled, demand, delivered) in enumerate(hours.rows())
        if entitled or demand
    }
    assert measured == ledger
    for path, hours in found.hours.items():
        sums = add_up(hours.rows())
        of = [amounts for (account, _), amounts in ledger.items() if account == path]
        delivered, owed = sum(row[3] for row in of), sum(row[2] for row in of)
        assert ratio(min(delivered, owed), owed) == ratio(sums.in_window, sums.owed) != Decimal(0)
    used = dict(database.query("SELECT account, sum(gpu_ms)::bigint FROM warehouse.usage_hour GROUP BY 1"))
    assert used == {path: use.allocated + use.unallocated for path, use in found.accounts.items()}
