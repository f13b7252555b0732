"""``gpuledger close run`` and ``close reopen``: close a budget period, or open a closed one again."""

import importlib.util
import json
import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gpuledger.cli.asking import agreed, who
from gpuledger.cli.options import Json, OneCluster, Yes
from gpuledger.cli.output import note, print_json
from gpuledger.cli.running import pipeline_env
from gpuledger.kernel.exits import PROBLEMS

if TYPE_CHECKING:
    from collections.abc import Iterator

    import sqlalchemy as sa

    from gpuledger.close.run import OnStep, Outcome
    from gpuledger.close.steps import Closer, Compare, Gate, Stopped
    from gpuledger.kernel.errors import GpuledgerError
    from gpuledger.settings import Settings

app = typer.Typer(help="Closing budget periods.", no_args_is_help=True)

Period = Annotated[str, typer.Argument(help="Budget period, such as 2026-12.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would be done and stop.")]


@app.command("run")
def run(
    period: Period,
    cluster: OneCluster,
    *,
    record: Annotated[
        Path | None,
        typer.Option("--record", help="What sacct --json or sacct -P --duplicates printed, to compare with."),
    ] = None,
    live: Annotated[bool, typer.Option("--live", help="Ask sacct now, to compare with.")] = False,
    accept: Annotated[
        bool, typer.Option("--accept-differences", help="Go on whatever differs; the file says what does.")
    ] = False,
    grace: Annotated[
        int | None,
        typer.Option(
            "--grace", min=0, help="Hours after the period's end to wait for silent sources; 24 unless set."
        ),
    ] = None,
    gate: Annotated[
        bool,
        typer.Option("--gate/--no-gate", help="Validate by Great Expectations too, where it is installed."),
    ] = True,
    dry_run: DryRun = False,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Close a period that is over: freeze, reconcile, settle, validate, seal, publish.

    A close that stopped goes on from there; one that is sealed gets its files again.
    """
    from gpuledger import settings
    from gpuledger.close import steps
    from gpuledger.close.run import run as close
    from gpuledger.database.opening import open_database

    config = settings.load()
    document: dict[str, object] = {"cluster": cluster, "period": period, "applied": False}
    with open_database(config) as engine:
        closer = closer_of(engine, config, cluster, period, grace)
        compare = _comparing(config, closer, record, live=live)
        steps.check(closer)
        note(f"~ close    {cluster} {period}")
        if not dry_run and agreed(1, yes=yes):
            with _having_told(config, closer, as_json=as_json) as on_step:
                outcome = close(
                    closer,
                    compare=compare,
                    accept=accept,
                    gate=_gate(config, engine) if gate else None,
                    on_step=on_step,
                )
            document |= {**outcome.as_json(), "applied": True}
            _show(outcome, cluster, period, as_json=as_json)
    if as_json:
        print_json(document)
    elif not document["applied"]:
        print("1 change not applied")


@app.command("reopen")
def reopen(
    period: Period,
    cluster: OneCluster,
    *,
    reason: Annotated[str, typer.Option("--reason", help="Why; kept with the order.")],
    dry_run: DryRun = False,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Let a closed period take bookings again; what its close expired and carried over is taken back."""
    from gpuledger import settings
    from gpuledger.close import steps
    from gpuledger.close.fence import one_closer
    from gpuledger.database.engine import reading
    from gpuledger.database.opening import open_database
    from gpuledger.ledger import closing, queries

    config = settings.load()
    document: dict[str, object] = {"cluster": cluster, "period": period, "applied": False}
    with open_database(config) as engine:
        closer = closer_of(engine, config, cluster, period)
        with reading(engine) as reader:
            queries.require_cluster(reader, cluster)
            closing.check_reopening(reader, cluster, period, reason)
        note(f"~ reopen   {cluster} {period}")
        if not dry_run and agreed(1, yes=yes):
            with one_closer(engine, cluster):
                version = steps.reopen(closer, reason)
            document |= {"version": version, "applied": True}
    if as_json:
        print_json(document)
    elif document["applied"]:
        print(
            f"{period} of {cluster} is open again: version {document['version']} of its close no longer holds"
        )
    else:
        print("1 change not applied")


def closer_of(
    engine: "sa.Engine", config: "Settings", cluster: str, period: str, grace_hours: int | None = None
) -> "Closer":
    """Return who closes a period, as the settings say."""
    from gpuledger.close.steps import closer_by

    return closer_by(config, engine, cluster, period, who(), grace_hours=grace_hours)


def _comparing(config: "Settings", closer: "Closer", record: Path | None, *, live: bool) -> "Compare | None":
    """Return what compares the period with Slurm's accounting, where it is asked for."""
    from gpuledger.close.slurm import comparing
    from gpuledger.kernel.errors import Refused

    if record is not None and live:
        raise Refused("--record and --live are two records", hint="name one of them")
    return comparing(closer, record, config.sacct_folder) if record is not None or live else None


def _gate(config: "Settings", engine: "sa.Engine") -> "Gate | None":
    """Return what validates a statement by Great Expectations; None, and a word, where that is not installed."""
    if importlib.util.find_spec("great_expectations") is None:
        note("  the built-in checks alone: pip install 'gpuledger[pipelines]' brings Great Expectations")
        return None
    url = engine.url.render_as_string(hide_password=False)
    from gpuledger.close.steps import Verdict
    from gpuledger.kernel.errors import Unavailable

    def gate(place: "tuple[str, str, int]") -> "Verdict":
        done = subprocess.run(
            [sys.executable, "-m", "gpuledger_pipelines.close_gate", *map(str, place)],
            env={**os.environ, **pipeline_env(config, url)},
            stdout=subprocess.PIPE,
            check=False,
        )
        try:
            said = json.loads(done.stdout)
        except ValueError as error:
            raise Unavailable(
                f"the gate of the statement ended with status {done.returncode} and no verdict",
                hint="its messages stand above; --no-gate validates by the built-in checks alone",
            ) from error
        return Verdict(said["checks"], tuple(said["findings"]))

    return gate


@contextmanager
def _having_told(config: "Settings", closer: "Closer", *, as_json: bool) -> "Iterator[OnStep]":
    """Say each step of a close as it begins; have people told where it stops, for a timer reads nothing."""
    from gpuledger.close.steps import Stopped
    from gpuledger.kernel.errors import GpuledgerError

    begun: list[str] = []

    def on_step(step: str) -> None:
        begun.append(step)
        note(f"  {step}")

    try:
        yield on_step
    except GpuledgerError as error:
        _have_told(config, closer, begun, error)
        if isinstance(error, Stopped):
            raise _told(error, as_json=as_json) from error
        raise


def _have_told(config: "Settings", closer: "Closer", begun: list[str], error: "GpuledgerError") -> None:
    from gpuledger.close.steps import Stopped
    from gpuledger.notify.following import close_failed
    from gpuledger.notify.noting import note_found
    from gpuledger.notify.payloads import CloseFailed

    data = CloseFailed(
        cluster=closer.cluster,
        period=closer.period,
        step=begun[-1] if begun else "begin",
        message=error.message,
        findings=list(error.findings) if isinstance(error, Stopped) else [],
    )
    fault = note_found(config, closer.engine, close_failed(data, closer.clock.now()), closer.clock)
    if fault is not None:
        note(f"  {fault}")


def _told(stopped: "Stopped", *, as_json: bool) -> typer.Exit:
    """Say what stopped a close; return how the command ends."""
    if as_json:
        told = {
            "error": stopped.message,
            "hint": stopped.hint,
            "exit": PROBLEMS,
            "findings": stopped.findings,
        }
        print(json.dumps(told), file=sys.stderr)
        return typer.Exit(PROBLEMS)
    for line in (
        f"gpuledger: {stopped.message}",
        *(f"  {each}" for each in stopped.findings),
        f"  hint: {stopped.hint}",
    ):
        note(line)
    return typer.Exit(PROBLEMS)


def _show(outcome: "Outcome", cluster: str, period: str, *, as_json: bool) -> None:
    for line in outcome.left_out:
        note(f"  not made: {line}")
    if as_json:
        return
    again = ", closed before" if outcome.repeated else ""
    print(
        f"{period} of {cluster} is closed: version {outcome.rows.version}, row {outcome.rows.closed_seq}{again}"
    )
    print(f"  sealed    {outcome.digest}")
    print(f"  files     {outcome.folder}")
