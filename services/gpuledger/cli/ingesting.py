"""``gpuledger import`` and ``gpuledger ingest``."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gpuledger.cli.options import Json, moment
from gpuledger.cli.output import Advance, note, print_json, progress
from gpuledger.kernel.exits import PROBLEMS

if TYPE_CHECKING:
    from gpuledger.ingest.importer import ImportReport
    from gpuledger.ingest.intake import Intake
    from gpuledger.ingest.worker import Worker
    from gpuledger.settings import Settings
    from gpuledger.sources.protocol import ImportOptions, Source
    from gpuledger.streams.topics import Topic

SOURCES = (
    "acme, beaker, clustercockpit, dcgm, dlrm, events, helios, k8s-yaml, kai, kueue, nvidia-smi-csv, nvidia-smi-xml,"
    " openb, pai, philly, philly-json, pods, slurm-jobcomp, slurm-nodes, slurm-sacct-json, slurm-sacct-text,"
    " slurm-sacctmgr, slurm-scontrol-jobs, slurm-squeue-json, slurm-squeue-text, slurmrestd, swf, xid-log"
)
"""The names of the registry, which itself takes too long to load for a page of help."""

SHOWN_MAX = 20
THOUSANDTHS = 1000


def import_(
    source: Annotated[str, typer.Argument(help=f"What the file holds: {SOURCES}.")],
    path: Annotated[Path, typer.Argument(help="The file, or a folder where the source has several.")],
    cluster: Annotated[str | None, typer.Option("--cluster", help="Cluster and root account.")] = None,
    tz: Annotated[
        str | None, typer.Option("--tz", help="Zone of times without an offset; UTC unless given.")
    ] = None,
    host: Annotated[
        str | None, typer.Option("--host", help="The host, where the records do not name it.")
    ] = None,
    at: Annotated[
        str | None,
        typer.Option(
            "--at", help="When they were taken, or the host booted, where they hold no time of day."
        ),
    ] = None,
    fraction: Annotated[
        list[str] | None,
        typer.Option(
            "--fraction",
            metavar="NAME=MILLI",
            help="How many thousandths of a GPU one unit of a resource is, such as shard=125; repeatable.",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Read foreign records into the ledger. Importing again changes nothing; bad rows never stop the rest."""
    from gpuledger import settings
    from gpuledger.database.opening import open_database
    from gpuledger.ingest.intake import Intake
    from gpuledger.kernel.clock import SystemClock
    from gpuledger.kernel.errors import NotFound, Refused
    from gpuledger.sources.protocol import ImportOptions
    from gpuledger.sources.registry import source as find_source

    if not cluster and cluster is not None:
        raise Refused("--cluster: is empty", hint="name the cluster, or leave it out for the source's own")
    reader = find_source(source)
    reader.size(path)  # a missing file is refused before any database starts
    config = settings.load()
    at_s = moment(at, "--at", config.calendar)
    options = ImportOptions(
        cluster=cluster, timezone=tz, host=host, at_s=at_s, fractions=_fractions(fraction or [])
    )
    with open_database(config) as engine:
        intake = Intake(engine, SystemClock(), config.calendar)
        try:
            report = run(intake, config, reader, path, options)
        except NotFound as error:  # a missing file is bad usage, not a missing account
            raise Refused(error.message, hint=error.hint) from error
    _show(report, as_json=as_json)
    if report.dead_lettered:
        raise typer.Exit(PROBLEMS)


def _fractions(given: list[str]) -> dict[str, int]:
    from gpuledger.kernel.amounts import GPU_MILLI
    from gpuledger.kernel.errors import Refused

    found: dict[str, int] = {}
    for text in given:
        name, _, milli = text.rpartition("=")
        if not name or not (milli.isascii() and milli.isdigit()) or not 0 < int(milli) <= GPU_MILLI:
            raise Refused(
                f"--fraction: {text!r} is not NAME=MILLI", hint="such as --fraction shard=125: at most 1000"
            )
        found[name] = int(milli)
    return found


def run(
    intake: "Intake", config: "Settings", source: "Source", path: Path, options: "ImportOptions"
) -> "ImportReport":
    """Import with a progress bar, straight into the ledger or through Kafka when that is configured."""
    from gpuledger.ingest.collector import relax_collector
    from gpuledger.ingest.importer import BrokerSink, LedgerSink, run_import
    from gpuledger.ingest.relay import relay
    from gpuledger.streams.opening import open_broker

    relax_collector()
    with progress(f"import {source.name}", source.size(path)) as advance:
        if config.kafka_bootstrap is None:
            report, clusters = run_import(source, path, options, LedgerSink(intake), advance)
        else:
            sink = BrokerSink(intake, open_broker(config))
            report, clusters = run_import(source, path, options, sink, advance)
            sink.publisher.close()
    if config.kafka_bootstrap is not None:
        drain(intake, config)
    if report.dead_lettered:
        relay(intake.engine, open_broker(config), intake.clock)
    intake.open_periods(clusters)
    return report


def drain(intake: "Intake", config: "Settings") -> None:
    """Book everything that is on the event topics now."""
    from gpuledger.ingest.importer import EVENT_TOPICS
    from gpuledger.ingest.worker import Worker
    from gpuledger.streams.opening import open_broker

    broker = open_broker(config)
    for topic in EVENT_TOPICS:
        with progress(f"ingest {topic}", THOUSANDTHS) as advance:
            _drain(Worker(intake, broker, topic), advance)


def _drain(worker: "Worker", advance: Advance) -> None:
    worker.run(lambda done: advance(THOUSANDTHS * done.records // max(done.waiting, 1)), once=True)


def ingest(
    once: Annotated[bool, typer.Option("--once", help="Stop when the topics are drained.")] = False,
    tick: Annotated[
        bool,
        typer.Option(
            "--tick/--no-tick", help="Move the books' clock each hour; not while history is read back in."
        ),
    ] = True,
    from_start: Annotated[
        bool,
        typer.Option(
            "--from-start",
            help="Read all that the topic still holds, also after it was truncated or created anew."
            " What is booked is not booked twice.",
        ),
    ] = False,
    topic: Annotated[
        str, typer.Option("--topic", help="gpu.scheduler.events, gpu.budget.events or gpu.telemetry.")
    ] = "gpu.scheduler.events",
    name: Annotated[
        str | None,
        typer.Option(
            "--name",
            help="A name that no other worker has: one that starts again has its partitions back at once. Kafka only.",
        ),
    ] = None,
) -> None:
    """Run the ingest worker: book one topic until interrupted.

    With Kafka any number of workers share the partitions of a topic. On file streams the last one that was started
    takes over from the one before.
    """
    from gpuledger import settings
    from gpuledger.database.opening import open_database
    from gpuledger.ingest.collector import relax_collector
    from gpuledger.ingest.intake import Intake
    from gpuledger.ingest.worker import Worker
    from gpuledger.kernel.clock import SystemClock
    from gpuledger.streams.opening import open_broker

    found = _event_topic(topic)
    config = settings.load()
    relax_collector()
    with open_database(config) as engine:
        intake = Intake(engine, SystemClock(), config.calendar)
        worker = Worker(intake, open_broker(config), found, ticks=tick, notify=note)
        done = worker.run(
            lambda so_far: note(f"{topic}: {so_far.records} records, {so_far.dead_lettered} dead letters"),
            once=once,
            from_start=from_start,
            name=name,
        )
    if done.gone:
        note(
            f"{topic} no longer holds {done.gone} records that nobody had read: import what they said another way"
        )
    note(f"{done.accepted} accepted, {done.repeated} repeated, {done.dead_lettered} dead-lettered")


def _event_topic(name: str) -> "Topic":
    from gpuledger.kernel.errors import Refused
    from gpuledger.streams.topics import BUDGET_EVENTS, SCHEDULER_EVENTS, TELEMETRY

    known: dict[str, Topic] = {topic: topic for topic in (SCHEDULER_EVENTS, BUDGET_EVENTS, TELEMETRY)}
    if name not in known:
        raise Refused(f"--topic: {name!r} is not an event topic", hint=f"one of {', '.join(known)}")
    return known[name]


def _show(report: "ImportReport", *, as_json: bool) -> None:
    for fault in report.faults[:SHOWN_MAX]:
        note(f"  dead letter: {fault}")
    if len(report.faults) > SHOWN_MAX:
        note(f"  ... and {len(report.faults) - SHOWN_MAX} more; gpuledger dlq list shows all")
    if as_json:
        print_json(report.as_json())
        return
    print(
        f"{report.records:,} records: {report.accepted:,} accepted, {report.repeated:,} repeated,"
        f" {report.dead_lettered:,} dead-lettered"
    )
    counts: dict[str, int] = {}
    for anomaly in report.anomalies:
        counts[anomaly.code] = counts.get(anomaly.code, 0) + 1
    for code, count in sorted(counts.items()):
        first = next(a for a in report.anomalies if a.code == code)
        print(f"anomaly {code}: {count:,} (first: {first.message})")
