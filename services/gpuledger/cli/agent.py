"""``gpuledger agent``: what runs on the hosts."""

import signal
import threading
import time
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gpuledger.cli.output import note

if TYPE_CHECKING:
    from gpuledger.agent.owners import Owners
    from gpuledger.agent.sampler import Config, Sampler
    from gpuledger.agent.shipping import Shipping

app = typer.Typer(help="Agents that run on the hosts.", no_args_is_help=True)

MIB = 1 << 20


class Scheduler(StrEnum):
    """Who gives devices to runs on this host."""

    SLURM = "slurm"
    KUBERNETES = "kubernetes"
    NONE = "none"


@app.callback()
def agents() -> None:
    """Agents that run on the hosts."""


@app.command("nvml")
def nvml(
    *,
    cluster: Annotated[str, typer.Option("--cluster", help="The cluster.")],
    host: Annotated[
        str | None, typer.Option("--host", help="This host's name in the inventory; its own unless given.")
    ] = None,
    scheduler: Annotated[
        Scheduler, typer.Option("--scheduler", help="Who gives devices to runs here.")
    ] = Scheduler.NONE,
    job_map: Annotated[
        Path | None, typer.Option("--job-map", help="Slurm: folder where a prolog writes a file per device.")
    ] = None,
    checkpoint: Annotated[
        Path,
        typer.Option(
            "--kubelet-checkpoint",
            help="Kubernetes: the kubelet's memory, read where the socket does not answer.",
        ),
    ] = Path("/var/lib/kubelet/device-plugins/kubelet_internal_checkpoint"),
    pod_resources: Annotated[
        Path, typer.Option("--pod-resources", help="Kubernetes: the kubelet's socket that is asked first.")
    ] = Path("/var/lib/kubelet/pod-resources/kubelet.sock"),
    spool: Annotated[
        Path | None, typer.Option("--spool", help="Folder for what is not published yet; in the data folder.")
    ] = None,
    spool_mib: Annotated[int, typer.Option("--spool-mib", min=1, help="How much it holds.")] = 64,
    sample: Annotated[int, typer.Option("--sample", min=1, max=300, help="Seconds between readings.")] = 5,
    interval: Annotated[int, typer.Option("--interval", min=1, max=3600, help="Seconds per message.")] = 60,
    once: Annotated[bool, typer.Option("--once", help="One message, then stop.")] = False,
) -> None:
    """Measure this host's NVIDIA GPUs and publish; survives a missing driver, a lost GPU and a broker that is away."""
    import socket

    from gpuledger import settings
    from gpuledger.agent.checking import Health
    from gpuledger.agent.nvml import Nvml
    from gpuledger.agent.sampler import Config, Parts, Sampler
    from gpuledger.agent.shipping import Shipping
    from gpuledger.agent.spool import Spool
    from gpuledger.kernel.clock import SystemClock
    from gpuledger.sources.values import cluster_name
    from gpuledger.streams.opening import open_broker

    config = settings.load()
    folder = spool or config.home / "agent"
    waiting = Spool(folder, spool_mib * MIB)
    health, clock = Health(folder / "health.json"), SystemClock()
    holders = _owners(scheduler, job_map, checkpoint, pod_resources)
    works = Config(
        cluster=cluster_name(cluster),
        host=host or socket.gethostname(),
        sample_s=sample,
        interval_s=interval,
    )
    sampler = Sampler(works, Parts(Nvml(), holders, waiting, health, clock, time.sleep, note))
    _work(sampler, Shipping(waiting, open_broker(config), note), works, once=once)


def _work(sampler: "Sampler", shipping: "Shipping", works: "Config", *, once: bool) -> None:
    """Measure here and publish in a thread, until a signal comes or the one message is made."""
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    signal.signal(signal.SIGINT, lambda *_: stop.set())
    end_s = time.monotonic() + works.interval_s if once else float("inf")
    shipping.beside(
        lambda: sampler.run(lambda: stop.is_set() or time.monotonic() >= end_s), stop, float(works.sample_s)
    )


def _owners(scheduler: Scheduler, job_map: Path | None, checkpoint: Path, socket_: Path) -> "Owners":
    from gpuledger.agent import owners

    match scheduler:
        case Scheduler.SLURM:
            return owners.Slurm(job_map)
        case Scheduler.KUBERNETES:
            from gpuledger.kernel.errors import Refused

            try:
                from gpuledger.agent.pod_resources import PodResources
            except ImportError as error:
                raise Refused(
                    f"the kubelet cannot be asked: {error}", hint="pip install 'gpuledger[kubernetes]'"
                ) from error
            service = PodResources(f"unix://{socket_.absolute()}")
            return owners.Kubelet(checkpoint, service.given, note=note)
        case Scheduler.NONE:
            return owners.Nobody()
