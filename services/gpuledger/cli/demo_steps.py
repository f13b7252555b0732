"""The demo's steps: the product's own commands on bundled traces, in one folder, timed."""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

import sqlalchemy as sa

from gpuledger.cli import ingesting, running
from gpuledger.cli.output import note, print_table
from gpuledger.cli.policy import print_cycle
from gpuledger.cli.reports import print_layers
from gpuledger.database.engine import reading, writing
from gpuledger.database.opening import open_database
from gpuledger.demo import DATA, month, people
from gpuledger.events.envelope import ORG_BOOK
from gpuledger.ingest import budget_file, budgets
from gpuledger.ingest.changes import apply as book_changes
from gpuledger.ingest.intake import Intake
from gpuledger.ingest.relay import relay
from gpuledger.kernel.amounts import gpu_hours
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.clock import SystemClock, seconds
from gpuledger.kernel.errors import GpuledgerError, Refused, Unavailable
from gpuledger.ledger import policies, queries
from gpuledger.ledger.attempts import booked
from gpuledger.ledger.balances import BalanceQuery, balances
from gpuledger.ledger.usage import By, UsageQuery, usage
from gpuledger.policy.kept import latest_cycle
from gpuledger.policy.service import issue_cycle
from gpuledger.settings import Settings
from gpuledger.sources.protocol import ImportOptions
from gpuledger.sources.registry import source
from gpuledger.streams.opening import open_broker
from gpuledger.warehouse.reads import LayersBy, LayersQuery, layers

MARKER = "demo.json"
BEGINNING_S = 0
"""The budget file takes effect before the oldest trace."""

TRACES = (
    ("philly", DATA / "philly.csv.gz"),
    ("clustercockpit", DATA / "alex.csv.gz"),
    ("openb", DATA),
)
BUSY_MOMENTS = {
    "philly": 1_508_580_000,  # 2017-10-21T10:00:00Z, the day of the trace's peak
    "alex": 1_675_857_600,  # 2023-02-08T12:00:00Z
    "openb": 12_824_105,  # 1970-05-29T10:15:05Z, when most of its pods wait
    month.CLUSTER: month.BUSY_S,
}
SUMMARY_ACCOUNTS = 8


def run(config: Settings, *, once: bool, kafka: bool) -> None:
    """Run what has not run yet, print the summary, and serve unless it is to stop there.

    Raises:
        Refused: When the folder holds somebody's own ledger.
        Unavailable: When a database, broker or server does not start.
    """
    note(f"everything lives in {config.home}")
    marker = config.home / MARKER
    with ExitStack() as stack:
        with step("PostgreSQL and schema"):
            engine = stack.enter_context(open_database(config))
        _check_ours(engine, config, marker)
        done = _done(marker)
        way = "kafka" if kafka or config.kafka_bootstrap else "files"
        if way not in done:
            marker.write_text(json.dumps(sorted(done)))
            _fill(engine, config, stack, kafka=kafka)
            marker.write_text(json.dumps(sorted({*done, way})))
        summary(engine)
        for line in running.people_lines(config, running.DASHBOARDS):
            print(line)
        print(f"\nLook around:  export GPULEDGER_HOME={config.home}")
        print(f"              {program()} usage --by month --cluster philly")
        print(f"Remove:       {program()} demo --remove\n")
        sys.stdout.flush()
        if not once:
            url = engine.url.render_as_string(hide_password=False)
            running.serve_until_interrupted(config, url, port=running.API_PORT, only_api=False)


def program() -> str:
    """Return how the command is called from here: by name where it is found by name, else by its path."""
    own = Path(sys.executable).with_name("gpuledger")
    found = shutil.which("gpuledger")
    if found is not None and Path(found).resolve() == own.resolve():
        return "gpuledger"
    return os.path.relpath(own) if own.is_relative_to(Path.cwd()) else str(own)


def remove(config: Settings) -> None:
    """Delete the demo's folder.

    Raises:
        Refused: When the folder is not one that the demo made.
    """
    if not config.home.exists():
        note(f"{config.home} does not exist: nothing to remove")
        return
    if not (config.home / MARKER).exists():
        raise Refused(
            f"{config.home} was not made by the demo",
            hint="delete it yourself if you are sure: it holds a ledger",
        )
    shutil.rmtree(config.home)
    note(f"removed {config.home}")


@contextmanager
def step(name: str) -> Iterator[None]:
    """Print a step's name and how long it took, on stderr."""
    began = time.monotonic()
    yield
    note(f"{name:<28} {time.monotonic() - began:6.1f} s")


def _check_ours(engine: sa.Engine, config: Settings, marker: Path) -> None:
    if marker.exists():
        return
    with reading(engine) as reader:
        if queries.clusters(reader):
            raise Refused(
                f"{config.home} holds a ledger of your own",
                hint="give the demo a folder of its own: GPULEDGER_HOME=/some/empty/folder gpuledger demo",
            )


def _done(marker: Path) -> set[str]:
    return set(json.loads(marker.read_text())) if marker.exists() else set()


def _fill(engine: sa.Engine, config: Settings, stack: ExitStack, *, kafka: bool) -> None:
    clock = SystemClock()
    if kafka and config.kafka_bootstrap is None:
        with step("Kafka broker"):
            bootstrap = stack.enter_context(_broker(config.home / "kafka"))
        config = config.model_copy(update={"kafka_bootstrap": bootstrap})
    intake = Intake(engine, clock, config.calendar)
    simulated = stack.enter_context(month.written_meanwhile(_month_file(config)))
    with step("budgets"):
        file = budget_file.read(DATA / "budget.yaml")
        with reading(engine) as reader:
            changes = budgets.plan(reader, file, BEGINNING_S, "demo", config.calendar)
        book_changes(intake, changes, BEGINNING_S, budgets.SOURCE)
    for name, path in TRACES:
        with step(f"import {name}"):
            report = ingesting.run(intake, config, source(name), path, ImportOptions())
        note(
            f"  {report.records:,} records, {report.dead_lettered} dead letters, {len(report.anomalies)} anomalies"
        )
    _simulated_month(engine, config, intake, simulated)
    with step("roll-ups through Dagster"):
        url = engine.url.render_as_string(hide_password=False)
        status, rolled = running.run_rollup(config, url, [])
    if status or rolled is None:
        raise GpuledgerError(
            f"the roll-up failed with exit status {status}",
            hint="its messages stand above; gpuledger rollup repeats it",
        )
    with step("policy cycles"):
        for cluster, at_s in BUSY_MOMENTS.items():
            issue_cycle(engine, cluster, at_s=at_s, clock=clock, calendar=config.calendar)
        relay(engine, open_broker(config), clock)


def _month_file(config: Settings) -> Path:
    return config.home / "institute.jsonl"


def _simulated_month(
    engine: sa.Engine, config: Settings, intake: Intake, wait: Callable[[], month.Month]
) -> None:
    """Add the institute's month: what it hopes for, its events through the same intake, people to look at it as."""
    with step("simulate a month, the rest"):
        told = wait()
    note(
        f"  {told.events:,} events, {len(told.preempted):,} preemptions of jobs that came to their end later"
    )
    with step(f"import {month.CLUSTER}"):
        ingesting.run(intake, config, source("events"), _month_file(config), ImportOptions())
        hopes = partial(
            policies.put_settings,
            cluster=month.CLUSTER,
            wanted=month.TARGETS,
            at_s=BEGINNING_S,
            by="demo",
            clock=intake.clock,
            calendar=config.calendar,
        )
        booked(engine, ORG_BOOK, hopes)
        with writing(engine) as writer:
            made = people.signed_in(writer, people.people(told.preempted), intake.clock.now())
        people.keep(config.home / people.FILE, made)


@contextmanager
def _broker(folder: Path) -> Iterator[str]:
    command = [sys.executable, str(broker_program()), "run", "--dir", str(folder)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None  # noqa: S101 - asked for above
        bootstrap = process.stdout.readline().strip()
        if not bootstrap:
            raise Unavailable("no Kafka broker could be started", hint="its messages stand above")
        yield bootstrap
    finally:
        process.terminate()
        process.wait()


def summary(engine: sa.Engine) -> None:
    """Print balances by account, the four layers and the last allocations."""
    now_s = seconds(SystemClock().now())
    with reading(engine) as reader:
        calendar = queries.calendar(reader, Calendar())
        totals = usage(reader, UsageQuery(by=By.CLUSTER), now_s)
        found = balances(reader, BalanceQuery(), now_s)
        layer_rows = [
            row.as_json()
            for cluster in BUSY_MOMENTS
            for row in layers(reader, LayersQuery(by=LayersBy.CLUSTER, cluster=cluster), calendar)
        ]
        newest = (latest_cycle(reader, cluster, at_s=now_s) for cluster in BUSY_MOMENTS)
        issued = [cycle for cycle in newest if cycle is not None]
    print()
    rows = [
        (
            row.key,
            f"{gpu_hours(row.gpu_ms):,}",
            "-" if row.used_gpu_ms is None else f"{gpu_hours(row.used_gpu_ms):,}",
        )
        for row in totals.rows
    ]
    print_table(["cluster", ">GPU-hours", ">used (gpu_util)"], rows, title="Usage")
    for cluster in BUSY_MOMENTS:
        own = [b for b in found if b.cluster == cluster]
        busiest = max(
            (b.period for b in own), key=lambda p: sum(b.charged_gpu_ms for b in own if b.period == p)
        )
        top = sorted((b for b in own if b.period == busiest), key=lambda b: -b.charged_gpu_ms)[
            :SUMMARY_ACCOUNTS
        ]
        cells = [
            (
                b.account,
                *(f"{gpu_hours(x):,}" for x in (b.granted_gpu_ms, b.charged_gpu_ms, b.available_gpu_ms)),
            )
            for b in top
        ]
        title = f"Balances on {cluster}, {busiest} (its busiest period), largest first"
        print_table(["account", ">granted GPU-h", ">charged", ">available"], cells, title=title)
    print("The four layers")
    print_layers(layer_rows)
    for cycle in issued:
        print_cycle(
            {
                **cycle,
                "decisions": cycle["decisions"][:3],
                "allocations": cycle["allocations"][:SUMMARY_ACCOUNTS],
            }
        )


def broker_program() -> Path:
    """Return the program that starts an Apache Kafka from a checkout.

    Raises:
        Refused: When this is an installed copy without it.
    """
    program = Path(__file__).parents[3] / "infra" / "kafka" / "broker.py"
    if not program.exists():
        raise Refused(
            "--kafka needs a broker: this copy has no infra/kafka",
            hint="run it from a checkout, or set GPULEDGER_KAFKA_BOOTSTRAP to your Kafka",
        )
    return program
