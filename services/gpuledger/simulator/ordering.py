"""Whether what a world orders can be done. A mistake of a world is never mended in silence."""

from collections.abc import Mapping

from gpuledger.kernel.errors import Corrupt
from gpuledger.policy.placement import Placement
from gpuledger.simulator.facts import HostCondition
from gpuledger.simulator.worlds.protocol import Cluster, Orders, Start


class ImpossibleOrder(Corrupt):
    """A world ordered what cannot be done: the world has to be mended.

    Args:
        world: The name of the world.
        at_s: When it ordered that.
        what: What is wrong.
        job: The job, where one is concerned.
        host: The host, where one is concerned.
    """

    def __init__(
        self, world: str, at_s: int, what: str, *, job: str | None = None, host: str | None = None
    ) -> None:
        where = "".join(
            f", {word} {name!r}" for word, name in (("job", job), ("host", host)) if name is not None
        )
        super().__init__(
            f"world {world!r} at {at_s}{where}: {what}",
            hint="this is a fault of that world's code, not of the scenario; run it again with the same seed to see it",
        )
        self.world = world
        self.at_s = at_s
        self.what = what
        self.job = job
        self.host = host


def check_start(world: str, cluster: Cluster, start: Start) -> None:
    """Check that GPUs can be handed over.

    Raises:
        ImpossibleOrder: When the job does not wait, or its GPUs are not all there, free, on healthy hosts.
    """
    at_s, name = cluster.at_s, start.job
    waiting = cluster.waiting.get(name)
    if waiting is None:
        state = "runs already" if name in cluster.running else "does not wait"
        raise ImpossibleOrder(world, at_s, f"it is to start, and {state}", job=name)
    job, total_milli = waiting.job, 0
    if start.protected_s < 0:
        raise ImpossibleOrder(world, at_s, f"it is protected for {start.protected_s} s", job=name)
    for host_name, milli in start.placement.items():
        wrong = _wrong_with(cluster, host_name, milli, job.gpu_model)
        if wrong:
            raise ImpossibleOrder(world, at_s, wrong, job=name, host=host_name)
        total_milli += milli
    if total_milli != job.gpus_milli:
        raise ImpossibleOrder(
            world, at_s, f"it asked for {job.gpus_milli} milli-GPU and is to get {total_milli}", job=name
        )


def _wrong_with(cluster: Cluster, host_name: str, milli: int, gpu_model: str | None) -> str:
    host = cluster.hosts.get(host_name)
    if host is None:
        return "there is no such host"
    if host.condition is not HostCondition.HEALTHY:
        return f"a run is to start on a host that is {host.condition}"
    if gpu_model is not None and host.gpu_model != gpu_model:
        return f"it insists on {gpu_model}, which is not {host.gpu_model}"
    if not 0 < milli <= host.free_milli:
        return f"{milli} milli-GPU are handed out where {host.free_milli} are free"
    return ""


def check_told(world: str, cluster: Cluster, orders: Orders) -> None:
    """Check who is told to leave, to stay, and whose user was asked.

    Raises:
        ImpossibleOrder: When a job does not run, is to leave and to stay, or its user was asked for a host that
            nobody wants to repair or that it is not on.
    """
    at_s = cluster.at_s
    for word, names in (("leave", orders.leave), ("stay", orders.stay)):
        for name in names:
            if name not in cluster.running:
                raise ImpossibleOrder(world, at_s, f"it is told to {word}, and does not run", job=name)
    if orders.leave and orders.stay:
        both = sorted({*orders.leave} & {*orders.stay})
        if both:
            raise ImpossibleOrder(world, at_s, "it is told to leave and to stay at once", job=both[0])
    for host_name, name in orders.asks:
        host, run = cluster.hosts.get(host_name), cluster.running.get(name)
        if host is None or host.condition is not HostCondition.DRAINING:
            raise ImpossibleOrder(world, at_s, "a user was asked, and it does not drain", host=host_name)
        if run is None or host_name not in run.placement:
            raise ImpossibleOrder(
                world, at_s, "its user was asked, and it is not there", job=name, host=host_name
            )


def check_reserved(world: str, cluster: Cluster, reserved: Mapping[str, int]) -> Placement:
    """Check that what is kept free is free, and return it.

    Raises:
        ImpossibleOrder: When it is more than nobody occupies.
    """
    for host_name, milli in reserved.items():
        host = cluster.hosts.get(host_name)
        free_milli = host.free_milli if host is not None else 0
        if not 0 < milli <= free_milli:
            raise ImpossibleOrder(
                world,
                cluster.at_s,
                f"{milli} milli-GPU are reserved where {free_milli} are free",
                host=host_name,
            )
    return dict(reserved)
