"""``gpuledger collect``: ask schedulers again and again for what they know."""

import time
from typing import TYPE_CHECKING, Annotated, cast

import typer

from gpuledger.cli.options import Json, moment
from gpuledger.cli.output import note, print_json
from gpuledger.kernel.exits import PROBLEMS, TRY_AGAIN

if TYPE_CHECKING:
    from gpuledger.collect.slurm import Polled, SlurmCollector
    from gpuledger.ingest.intake import Intake
    from gpuledger.settings import Settings
    from gpuledger.streams.topics import Topic

app = typer.Typer(help="Ask schedulers for what they know, again and again.", no_args_is_help=True)

LEAST_S = 5
SINCE_S = 86_400
SHOWN_MAX = 20


@app.command("slurm")
def slurm(
    once: Annotated[bool, typer.Option("--once", help="Look once and stop.")] = False,
    every: Annotated[
        int, typer.Option("--every", min=LEAST_S, help="Seconds from one look to the next.")
    ] = 60,
    cluster: Annotated[
        str | None,
        typer.Option("--cluster", help="Cluster and root account; as Slurm calls it unless given."),
    ] = None,
    since: Annotated[
        str | None,
        typer.Option("--since", help="From when on records are read the first time; a day ago unless given."),
    ] = None,
    overlap: Annotated[
        int,
        typer.Option("--overlap", min=0, help="Seconds that each window reaches back behind what was read."),
    ] = 3600,
    timeout: Annotated[int, typer.Option("--timeout", min=1, help="Seconds that one call may take.")] = 120,
    as_json: Json = False,
) -> None:
    """Book what sacct, squeue and scontrol say.

    Runs until interrupted. It may be stopped and started at any time, and run beside an import of the same records:
    nothing is missed, nothing is booked twice. A second collector of a cluster takes over from the first.
    """
    from gpuledger import settings
    from gpuledger.database.opening import open_database
    from gpuledger.ingest.intake import Intake
    from gpuledger.kernel.clock import SystemClock
    from gpuledger.sources.values import cluster_name

    config = settings.load()
    named = None if cluster is None else cluster_name(cluster)
    since_s = moment(since, "--since", config.calendar)
    with open_database(config) as engine:
        intake = Intake(engine, SystemClock(), config.calendar)
        collector = _collector(intake, config, named, since_s=since_s, overlap_s=overlap, timeout_s=timeout)
        if once:
            polled = collector.poll()
            _show(polled, as_json=as_json)
            raise typer.Exit(_status(polled))
        _go_on(collector, every)


@app.command("slurm-jobcomp")
def slurm_jobcomp(
    topic: Annotated[
        str, typer.Argument(help="The topic that Slurm's JobCompLoc names, or that of job starts.")
    ],
    once: Annotated[bool, typer.Option("--once", help="Stop when the topic is drained.")] = False,
    cluster: Annotated[
        str | None, typer.Option("--cluster", help="Cluster and root account; the record's own unless given.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Book the documents that Slurm's jobcomp/kafka plugin writes to a topic, each exactly once.

    Runs until interrupted; each topic needs a process of its own. The documents may be lost or late on Slurm's
    side: run collect slurm beside it, or reconcile slurm now and then.
    """
    from gpuledger import settings
    from gpuledger.collect.bridge import CONSUMER, Documents
    from gpuledger.database.opening import open_database
    from gpuledger.ingest.intake import Intake
    from gpuledger.ingest.worker import Worker
    from gpuledger.kernel.clock import SystemClock
    from gpuledger.kernel.errors import Refused
    from gpuledger.sources.registry import source
    from gpuledger.sources.values import cluster_name
    from gpuledger.streams.opening import open_broker
    from gpuledger.streams.topics import TOPICS

    config = settings.load()
    if config.kafka_bootstrap is None:
        raise Refused(
            "slurm-jobcomp reads from Kafka", hint="set GPULEDGER_KAFKA_BOOTSTRAP to the broker of that topic"
        )
    if topic in TOPICS:
        raise Refused(f"TOPIC: {topic} is gpuledger's own", hint="name the topic of Slurm's JobCompLoc")
    named = None if cluster is None else cluster_name(cluster)
    foreign = cast("Topic", topic)  # somebody else's name, which no list here can hold
    with open_database(config) as engine:
        intake = Intake(engine, SystemClock(), config.calendar)
        documents = Documents(engine, source("slurm-jobcomp"), named)
        worker = Worker(intake, open_broker(config), foreign, consumer=CONSUMER, understand=documents)
        done = worker.run(
            lambda so_far: note(f"{topic}: {so_far.records} records, {so_far.dead_lettered} dead letters"),
            once=once,
        )
    note(f"{done.accepted} accepted, {done.repeated} repeated, {done.dead_lettered} dead-lettered")
    if as_json:
        print_json(
            {
                "records": done.records,
                "accepted": done.accepted,
                "repeated": done.repeated,
                "dead_lettered": done.dead_lettered,
            }
        )
    if done.dead_lettered:
        raise typer.Exit(PROBLEMS)


def _collector(
    intake: "Intake",
    config: "Settings",
    named: str | None,
    *,
    since_s: int | None,
    overlap_s: int,
    timeout_s: int,
) -> "SlurmCollector":
    from gpuledger.collect.programs import Programs
    from gpuledger.collect.slurm import SlurmCollector, cluster_of
    from gpuledger.ingest.importer import BrokerSink, LedgerSink, Sink
    from gpuledger.kernel.clock import seconds
    from gpuledger.sources.protocol import ImportOptions
    from gpuledger.streams.opening import open_broker

    programs = Programs(config.home / "collect" / "slurm", timeout_s=timeout_s)
    sink: Sink = (
        LedgerSink(intake) if config.kafka_bootstrap is None else BrokerSink(intake, open_broker(config))
    )
    return SlurmCollector(
        intake,
        sink,
        programs,
        ImportOptions(),
        cluster=named or cluster_of(programs),
        since_s=seconds(intake.clock.now()) - SINCE_S if since_s is None else since_s,
        overlap_s=overlap_s,
    )


def _go_on(collector: "SlurmCollector", every_s: int) -> None:
    """Look for ever; what cannot be reached now is tried at the next look, for which nothing is lost."""
    from gpuledger.kernel.errors import Unavailable

    while True:
        began = time.monotonic()
        try:
            _tell(collector.poll())
        except Unavailable as error:
            note(f"collect slurm: {error.message}; the next look is in {every_s} s")
        time.sleep(max(every_s - (time.monotonic() - began), 0))


def _status(polled: "Polled") -> int:
    if polled.failures:
        return TRY_AGAIN
    return PROBLEMS if any(report.dead_lettered for report in polled.reports.values()) else 0


def _show(polled: "Polled", *, as_json: bool) -> None:
    _tell(polled)
    if as_json:
        print_json(
            {
                "sources": {name: report.as_json() for name, report in polled.reports.items()},
                "failures": [failure.message for failure in polled.failures],
            }
        )


def _tell(polled: "Polled") -> None:
    for failure in polled.failures:
        note(f"  failed: {failure.message}")
    for fault in [fault for report in polled.reports.values() for fault in report.faults][:SHOWN_MAX]:
        note(f"  dead letter: {fault}")
    counts = (
        f"{name} {report.records} records, {report.accepted} new" for name, report in polled.reports.items()
    )
    note(f"collect slurm: {'; '.join(counts) or 'nothing'}")
