"""What a world is: it is told what happens, looks at the cluster, and says who starts and who has to leave."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from gpuledger.policy.placement import Placement
from gpuledger.policy.state import WorkClass
from gpuledger.simulator.facts import Fact, HostCondition
from gpuledger.simulator.jobs import Job


@dataclass(slots=True, kw_only=True)
class Host:
    """A host as it stands. Worlds read it; the engine alone writes it.

    Args:
        host: Its name.
        gpus_milli: What is installed.
        gpu_model: The model.
        rack: The rack or switch it is on; empty when nobody cares.
        condition: What it is good for now.
        free_milli: What nobody occupies; 0 while it is down.
    """

    host: str
    gpus_milli: int
    gpu_model: str
    rack: str = ""
    condition: HostCondition = HostCondition.HEALTHY
    free_milli: int = 0


@dataclass(slots=True, kw_only=True)
class Run:
    """A run as it stands. Worlds read it; the engine alone writes it.

    Args:
        job: What it works for.
        run: 1 for the first run of the job.
        placement: Where.
        klass: As what it is charged.
        started_s: Since when.
        protected_until_s: Until when the world promised not to take its GPUs.
        loaded_s: When it has loaded and works.
        leaves_s: When it is gone at the latest, once it was told to leave.
    """

    job: Job
    run: int
    placement: Placement
    klass: WorkClass
    started_s: int
    protected_until_s: int
    loaded_s: int
    leaves_s: int | None = None

    def checkpointed_s(self, at_s: int) -> int:
        """Return up to when its work is saved, as its checkpoints tell: ``started_s`` when it never was."""
        every_s = self.job.checkpoint_s
        if every_s is None or at_s < self.loaded_s + every_s:
            return self.started_s
        return at_s - (at_s - self.loaded_s) % every_s


@dataclass(slots=True, kw_only=True)
class Waiting:
    """A job that waits. Worlds read it; the engine alone writes it.

    Args:
        job: The job.
        since_s: Since when it waits: its submission, or when its last run left.
        runs: How many runs it had.
    """

    job: Job
    since_s: int
    runs: int = 0


@dataclass(slots=True, kw_only=True)
class Cluster:
    """The cluster as it stands at an instant. Worlds read it; the engine alone writes it.

    Args:
        cluster: Its name.
        at_s: The instant.
        hosts: By name, in the order of the scenario.
        running: By job: a job has one run at a time.
        waiting: By job, in order of arrival.
    """

    cluster: str
    at_s: int
    hosts: dict[str, Host] = field(default_factory=dict)
    running: dict[str, Run] = field(default_factory=dict)
    waiting: dict[str, Waiting] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """Hand GPUs over to a waiting job.

    Args:
        job: The job.
        placement: Where; all of it free, on healthy hosts, all that it asked for.
        klass: As what it is charged.
        protected_s: For how long nobody takes them.
        priority: What the job was ranked by, where users' priorities rank jobs of different accounts.
    """

    job: str
    placement: Placement
    klass: WorkClass = "allocated"
    protected_s: int = 0
    priority: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Orders:
    """What a world wants done at once.

    Args:
        starts: In this order.
        leave: Jobs whose run is told to leave; it has the grace. A run that was told before is not told again.
        stay: Jobs whose run was told to leave and may stay after all.
        asks: (host, job) pairs of users that somebody had to ask so that a host becomes empty.
        reserved: What is kept free for waiting jobs, by host; None when that did not change.
        wake_s: When to ask again at the latest though nothing happened; None when only an event changes anything.
    """

    starts: Sequence[Start] = ()
    leave: Sequence[str] = ()
    stay: Sequence[str] = ()
    asks: Sequence[tuple[str, str]] = ()
    reserved: Mapping[str, int] | None = None
    wake_s: int | None = None


def class_of(job: Job) -> WorkClass:
    """Return the class of a job where no budget decides: its own wish, told by its minimum runtime."""
    return "allocated" if job.minimum_runtime_s else "unallocated"


class World(Protocol):
    """A way to decide. Deterministic: the same facts and clusters bring the same orders.

    The engine tells it each fact as it happens, and asks once for each instant at which something happened, after all
    facts of the instant were told, and at ``wake_s``. Starts of its orders come back as facts, too.
    """

    name: str

    def told(self, fact: Fact) -> None:
        """Take note of what happened."""
        ...

    def decide(self, cluster: Cluster) -> Orders:
        """Say what to do now."""
        ...
