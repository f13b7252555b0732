"""``gpuledger collect kubernetes``."""

import threading
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gpuledger.cli.options import Json
from gpuledger.cli.output import note, print_json
from gpuledger.kernel.exits import PROBLEMS

if TYPE_CHECKING:
    from gpuledger.collect.kubernetes import Collected, Collector
    from gpuledger.ingest.intake import Intake
    from gpuledger.settings import Settings

SHOWN_MAX = 20


def kubernetes(
    once: Annotated[bool, typer.Option("--once", help="Book what happened up to now and stop.")] = False,
    cluster: Annotated[
        str, typer.Option("--cluster", help="Cluster and root account in the ledger.")
    ] = "kubernetes",
    kubeconfig: Annotated[
        Path | None,
        typer.Option(
            "--kubeconfig",
            help="Says where the cluster is; KUBECONFIG or ~/.kube/config unless given, in a pod its own account.",
        ),
    ] = None,
    context: Annotated[
        str | None,
        typer.Option("--context", help="A context of the kubeconfig; its current one unless given."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Watch Kueue Workloads, KAI PodGroups, Pods and Nodes, and book what they tell.

    Runs until interrupted. It may be stopped and started at any time, and run beside an import of the same objects:
    nothing is booked twice, and nothing is missed that the cluster still remembers.
    """
    from gpuledger import settings
    from gpuledger.database.opening import open_database
    from gpuledger.ingest.intake import Intake
    from gpuledger.kernel.clock import SystemClock
    from gpuledger.sources.values import cluster_name

    cluster_name(cluster)
    config = settings.load()
    with open_database(config) as engine:
        intake = Intake(engine, SystemClock(), config.calendar)
        collector = _collector(intake, config, cluster, kubeconfig, context)
        if once:
            collected = collector.look()
            _settle(intake, config, cluster)
            _show(collected)
            if as_json:
                print_json(collected.as_json())
            raise typer.Exit(PROBLEMS if collected.dead_lettered else 0)

        def on_batch(collected: "Collected") -> None:
            _settle(intake, config, cluster)
            _show(collected)

        collector.watch(threading.Event(), on_batch)


def _collector(
    intake: "Intake", config: "Settings", cluster: str, kubeconfig: Path | None, context: str | None
) -> "Collector":
    from gpuledger.ingest.importer import BrokerSink, LedgerSink, Sink
    from gpuledger.kernel.errors import Refused
    from gpuledger.streams.opening import open_broker

    try:
        from gpuledger.collect.kubernetes import Collector
        from gpuledger.collect.kubernetes_api import KubernetesApi
        from gpuledger.collect.kubernetes_state import PositionFile
    except ModuleNotFoundError as error:
        raise Refused(
            "the Kubernetes client is not installed", hint="pip install 'gpuledger[kubernetes]'"
        ) from error
    sink: Sink = (
        LedgerSink(intake) if config.kafka_bootstrap is None else BrokerSink(intake, open_broker(config))
    )
    file = PositionFile(config.home / "collect" / f"kubernetes-{cluster}.json")
    return Collector(KubernetesApi(kubeconfig, context), sink, intake.clock, file, cluster)


def _settle(intake: "Intake", config: "Settings", cluster: str) -> None:
    """Open periods that have movements now; with Kafka the ingest worker does that."""
    if config.kafka_bootstrap is None:
        intake.open_periods([cluster])


def _show(collected: "Collected") -> None:
    for line in collected.told[:SHOWN_MAX]:
        note(f"  {line}")
    if len(collected.told) > SHOWN_MAX:
        note(f"  ... and {len(collected.told) - SHOWN_MAX} more")
    collected.told.clear()
    note(
        f"collect kubernetes: {collected.records} states, {collected.accepted} new, {collected.repeated} known,"
        f" {collected.dead_lettered} dead letters"
    )
