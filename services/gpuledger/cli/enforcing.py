"""``gpuledger enforce``: settings of a scheduler that follow the newest cycle."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from urllib.parse import quote

import typer

from gpuledger.cli.options import Json
from gpuledger.cli.output import counted, note, print_json
from gpuledger.kernel.exits import PROBLEMS, TRY_AGAIN, exit_status

if TYPE_CHECKING:
    from collections.abc import Callable

    import sqlalchemy as sa

    from gpuledger.collect.kubernetes_api import KubernetesApi
    from gpuledger.enforce.applying import Outcome, Scheduler
    from gpuledger.enforce.config import EnforceFile
    from gpuledger.settings import Settings

app = typer.Typer(
    help="Turn the newest cycle into settings of a scheduler: shown, applied, held against drift.",
    no_args_is_help=True,
)

LEAST_S = 5

Config = Annotated[
    Path, typer.Option("--config", help="Says what may be changed; docs/enforcing.md lists every key.")
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Show what would be changed, and change nothing; status 3 on drift.")
]
Every = Annotated[
    int | None, typer.Option("--every", min=LEAST_S, help="Go on, so many seconds from one run to the next.")
]
Kubeconfig = Annotated[
    Path | None,
    typer.Option(
        "--kubeconfig",
        help="Says where the cluster is; KUBECONFIG or ~/.kube/config unless given, in a pod its own account.",
    ),
]
Context = Annotated[
    str | None, typer.Option("--context", help="A context of the kubeconfig; its current one unless given.")
]


@app.command("slurm")
def slurm(
    config: Config,
    dry_run: DryRun = False,
    every: Every = None,
    timeout: Annotated[int, typer.Option("--timeout", min=1, help="Seconds that one call may take.")] = 60,
    as_json: Json = False,
) -> None:
    """Fair-share, limits, the free QOS, priorities of waiting jobs, requeues and drains, by sacctmgr and scontrol."""

    def scheduler(engine: "sa.Engine", settings: "Settings", file: "EnforceFile") -> "Scheduler":
        from gpuledger.collect.programs import Programs
        from gpuledger.enforce.slurm_rim import SlurmCommands
        from gpuledger.kernel.clock import SystemClock

        programs = Programs(settings.home / "enforce" / "answers", timeout_s=timeout)
        return SlurmCommands(engine, programs, file.slurm, SystemClock(), settings.calendar)

    _run("slurm", config, scheduler, dry_run=dry_run, every_s=every, as_json=as_json)


@app.command("kueue")
def kueue(
    config: Config,
    dry_run: DryRun = False,
    every: Every = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    as_json: Json = False,
) -> None:
    """Weights, quotas and limits of ClusterQueues and Cohorts; Workloads that have to leave are deactivated."""

    def scheduler(engine: "sa.Engine", settings: "Settings", file: "EnforceFile") -> "Scheduler":
        from gpuledger.kernel.clock import SystemClock

        api = _api(kubeconfig, context)
        from gpuledger.enforce.kubernetes_rim import Cluster, KueueQueues

        return KueueQueues(Cluster(engine, api, SystemClock(), settings.calendar), file.kueue)

    _run("kueue", config, scheduler, dry_run=dry_run, every_s=every, as_json=as_json)


@app.command("kai")
def kai(
    config: Config,
    dry_run: DryRun = False,
    every: Every = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    as_json: Json = False,
) -> None:
    """Quota, weight, limit and minimum runtimes of KAI's Queues; pods of groups that have to leave are evicted."""

    def scheduler(engine: "sa.Engine", settings: "Settings", file: "EnforceFile") -> "Scheduler":
        from gpuledger.kernel.clock import SystemClock

        api = _api(kubeconfig, context)
        from gpuledger.enforce.kubernetes_rim import Cluster, KaiQueues

        return KaiQueues(Cluster(engine, api, SystemClock(), settings.calendar), file.kai)

    _run("kai", config, scheduler, dry_run=dry_run, every_s=every, as_json=as_json)


def _api(kubeconfig: Path | None, context: str | None) -> "KubernetesApi":
    from gpuledger.kernel.errors import Refused

    try:
        from gpuledger.collect.kubernetes_api import KubernetesApi
    except ModuleNotFoundError as error:
        raise Refused(
            "the Kubernetes client is not installed", hint="pip install 'gpuledger[kubernetes]'"
        ) from error
    return KubernetesApi(kubeconfig, context)


def _run(
    name: str,
    path: Path,
    scheduler: "Callable[[sa.Engine, Settings, EnforceFile], Scheduler]",
    *,
    dry_run: bool,
    every_s: int | None,
    as_json: bool,
) -> None:
    from gpuledger import settings
    from gpuledger.database.opening import open_database
    from gpuledger.enforce.applying import enforce, look
    from gpuledger.enforce.config import read_config
    from gpuledger.enforce.memory import Memory
    from gpuledger.enforce.reading import NoCycle
    from gpuledger.kernel.clock import SystemClock, seconds
    from gpuledger.kernel.errors import Refused, Unavailable

    if dry_run and every_s is not None:
        raise Refused("--dry-run and --every do not go together", hint="a dry run looks once")
    file, config = read_config(path), settings.load()
    with open_database(config) as engine:
        target = scheduler(engine, config, file)
        part = getattr(file, name)
        memory = Memory(config.home / "enforce", f"{name}-{quote(part.cluster or 'default', safe='')}")
        if dry_run:
            raise typer.Exit(_shown(look(target, memory), as_json=as_json))
        while True:
            began = time.monotonic()
            try:
                status = _shown(enforce(target, memory, seconds(SystemClock().now())), as_json=as_json)
            except (Unavailable, NoCycle) as error:
                if every_s is None:
                    raise
                note(f"enforce {name}: {error.message}; the next run is in {every_s} s")
            if every_s is None:
                raise typer.Exit(status)
            time.sleep(max(every_s - (time.monotonic() - began), 0))


def _shown(outcome: "Outcome", *, as_json: bool) -> int:
    """Show what was done or would be; return the exit status."""
    if as_json:
        print_json(outcome.as_json())
    else:
        _print(outcome)
    if statuses := {exit_status(error) for _, error in outcome.failed}:
        return TRY_AGAIN if TRY_AGAIN in statuses else min(statuses)
    return PROBLEMS if outcome.is_dry and outcome.plan.drifts else 0


def _print(outcome: "Outcome") -> None:
    why = {target.key: f"not done: {error.message}" for target, error in outcome.failed}
    again = "not done: looked at again before it was done, it is not so any more"
    why |= {target.key: again for target in outcome.dropped}
    for drift in outcome.plan.drifts:
        print(f"drift: {drift.sentence}")
    for target in outcome.plan.changes:
        mark = "would stop work: " if target.destructive and outcome.is_dry else ""
        print(f"{mark}{target.sentence}")
        print(f"    {target.action.shown}")
        if target.key in why:
            print(f"    {why[target.key]}")
    for said in outcome.plan.notes:
        print(f"note: {said}")
    total = len(outcome.plan.changes)
    if not total:
        told = "nothing to change"
    elif outcome.is_dry:
        told = f"{counted(total, 'change')} would be made"
    else:
        told = f"{len(outcome.done)} of {counted(total, 'change')} made"
    print(f"{outcome.plan.cycle}: {told}")
