"""``gpuledger reconcile``: the ledger against a scheduler's own record."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gpuledger.cli.options import From, Json, moment
from gpuledger.cli.output import counted, note, print_json, print_table
from gpuledger.kernel.exits import PROBLEMS

if TYPE_CHECKING:
    from gpuledger.ingest.intake import Intake
    from gpuledger.reconcile.reconciling import Reconciliation
    from gpuledger.settings import Settings

app = typer.Typer(help="Compare the ledger with a scheduler's own record.", no_args_is_help=True)

SINCE_S = 7 * 86_400
SHOWN_MAX = 50


@app.command("slurm")
def slurm(
    path: Annotated[
        Path | None,
        typer.Argument(metavar="[FILE]", help="What sacct --json or sacct -P --duplicates printed."),
    ] = None,
    live: Annotated[bool, typer.Option("--live", help="Ask sacct now, in place of a file.")] = False,
    from_: From = None,
    cluster: Annotated[
        str | None, typer.Option("--cluster", help="Cluster and root account; the record's own unless given.")
    ] = None,
    repair: Annotated[
        bool, typer.Option("--repair", help="Tell the ledger what the record says where the two differ.")
    ] = False,
    grace: Annotated[
        int, typer.Option("--grace", min=0, help="Seconds that a fact may be on its way to the ledger.")
    ] = 600,
    as_json: Json = False,
) -> None:
    """Explain every run that the ledger and Slurm's accounting do not agree on; status 3 when one has no cause.

    --from says from when on the file was asked for, or from when on sacct is to be asked: a week ago unless given.
    """
    from gpuledger import settings
    from gpuledger.database.opening import open_database
    from gpuledger.ingest.intake import Intake
    from gpuledger.kernel.clock import SystemClock
    from gpuledger.kernel.errors import Refused
    from gpuledger.sources.values import cluster_name

    if (path is None) == (not live):
        raise Refused(
            "name a FILE or say --live", hint="gpuledger reconcile slurm FILE, or --live where sacct works"
        )
    config = settings.load()
    named = None if cluster is None else cluster_name(cluster)
    from_s = moment(from_, "--from", config.calendar)
    with open_database(config) as engine:
        intake = Intake(engine, SystemClock(), config.calendar)
        found = _compared(intake, config, path, named, from_s, grace)
        repaired = 0
        if repair and found.mending:
            repaired = _repair(intake, config, found)
            found = _compared(intake, config, path, named, from_s, grace)
    _show(found, repaired, as_json=as_json)
    if not found.is_explained:
        raise typer.Exit(PROBLEMS)


def _compared(
    intake: "Intake",
    config: "Settings",
    path: Path | None,
    named: str | None,
    from_s: int | None,
    grace_s: int,
) -> "Reconciliation":
    from gpuledger.kernel.clock import seconds
    from gpuledger.reconcile import slurm as sides
    from gpuledger.sources.protocol import ImportOptions

    options = ImportOptions(cluster=named)
    if path is not None:
        return sides.with_file(intake.engine, path, options, grace_s=grace_s, from_s=from_s)
    from gpuledger.collect.programs import Programs
    from gpuledger.collect.slurm import cluster_of

    programs = Programs(config.sacct_folder)
    now_s = seconds(intake.clock.now())
    return sides.with_sacct(
        intake.engine,
        programs,
        options,
        cluster=named or cluster_of(programs),
        grace_s=grace_s,
        from_s=now_s - SINCE_S if from_s is None else from_s,
        now_s=now_s,
    )


def _repair(intake: "Intake", config: "Settings", found: "Reconciliation") -> int:
    """Book what the record says of every run that can be mended; return how many runs."""
    from gpuledger.cli.ingesting import drain
    from gpuledger.ingest.importer import BrokerSink, LedgerSink
    from gpuledger.streams.opening import open_broker

    facts = [pair for mending in found.mending.values() for pair in mending]
    if config.kafka_bootstrap is None:
        LedgerSink(intake).take(facts, [])
    else:
        sink = BrokerSink(intake, open_broker(config))
        sink.take(facts, [])
        sink.publisher.close()
        drain(intake, config)
    intake.open_periods(sorted({key.cluster for key in found.mending}))
    return len(found.mending)


def _show(found: "Reconciliation", repaired: int, *, as_json: bool) -> None:
    from gpuledger.kernel.amounts import gpu_hours

    if repaired:
        note(f"repaired {counted(repaired, 'run')}")
    if as_json:
        print_json(_document(found, repaired))
        return
    print(
        f"{len(found.amounts):,} runs compared, {len(found.found):,} differ,"
        f" {sum(not d.klass.is_explained for d in found.found):,} without a cause"
    )
    if found.found:
        rows = [
            (d.klass, d.key.cluster, d.key.workload, d.key.run, d.message) for d in found.found[:SHOWN_MAX]
        ]
        print_table(["difference", "cluster", "workload", "run", ""], rows)
    if len(found.found) > SHOWN_MAX:
        note(f"  ... and {len(found.found) - SHOWN_MAX} more; --json shows all")
    for (cluster, host), gpu_ms in found.conflicts.items():
        print(
            f"conflict: runs held {gpu_hours(gpu_ms)} GPU-hours of {host} of {cluster} beyond what is installed"
        )


def _document(found: "Reconciliation", repaired: int) -> dict[str, Any]:
    classes: dict[str, int] = {}
    for difference in found.found:
        classes[difference.klass] = classes.get(difference.klass, 0) + 1
    return {
        "ok": found.is_explained,
        "runs": len(found.amounts),
        "ledger_gpu_ms": sum(amounts.ledger_gpu_ms for amounts in found.amounts.values()),
        "record_gpu_ms": sum(amounts.record_gpu_ms for amounts in found.amounts.values()),
        "conflict_gpu_ms": sum(found.conflicts.values()),
        "conflicts": [
            {"cluster": cluster, "host": host, "gpu_ms": gpu_ms}
            for (cluster, host), gpu_ms in found.conflicts.items()
        ],
        "repaired": repaired,
        "classes": classes,
        "differences": [
            {
                "class": difference.klass,
                "explained": difference.klass.is_explained,
                **difference.key._asdict(),
                "ledger_gpu_ms": difference.ledger_gpu_ms,
                "record_gpu_ms": difference.record_gpu_ms,
                "message": difference.message,
            }
            for difference in found.found
        ],
    }
