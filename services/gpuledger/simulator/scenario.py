"""A scenario: a cluster, its accounts, who asks for what, what breaks, and for how long. Values only.

``scenario_file`` reads one from YAML; ``worlds`` and the engine take what they need from it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from gpuledger.kernel.knobs import PolicyConfig
from gpuledger.simulator.jobs import Demand, Job


@dataclass(frozen=True, slots=True, kw_only=True)
class HostSpec:
    """A host that the cluster has from the beginning.

    Args:
        host: Its name.
        gpus_milli: What is installed.
        gpu_model: The model.
        rack: The rack or switch it is on; empty when nobody cares.
    """

    host: str
    gpus_milli: int
    gpu_model: str
    rack: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountSpec:
    """A node of the program tree.

    Args:
        account: The path; absent inner nodes have share 1.
        share: Weight among its siblings.
        team_limit_milli: The most that its non-preemptible runs hold together in the old world; None for no limit.
    """

    account: str
    share: int
    team_limit_milli: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultModel:
    """How hosts break and are mended, in means of what is drawn; each host draws from a stream of its own.

    Args:
        mtbf_s: Mean time between faults of one host that take it down at once; None never breaks.
        repair_s: Mean time from going down until it is healthy again.
        drain_mtbf_s: Mean time between requests to repair one host that may be emptied first; None for none.
        drain_repair_s: Mean time of such a repair, from empty to healthy.
        hands_permille: How many of the repairs that are asked for need hands at the machine: hardware decides that, no
            world, so that it is reported as it was given.
    """

    mtbf_s: int | None = None
    repair_s: int = 4 * 3_600
    drain_mtbf_s: int | None = None
    drain_repair_s: int = 2 * 3_600
    hands_permille: int = 0


class Outage(NamedTuple):
    """A fault, or a wish to repair.

    Args:
        at_s: When.
        lasts_s: How long the host is down: from the fault, or from when it is empty.
    """

    at_s: int
    lasts_s: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultRecord:
    """How hosts broke and were mended somewhere, in order of time; nothing is drawn.

    Args:
        failed: Host -> the faults that took it down at once.
        wanted: Host -> the requests to repair it once it is empty.
    """

    failed: Mapping[str, Sequence[Outage]] = field(default_factory=dict)
    wanted: Mapping[str, Sequence[Outage]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Groups:
    """How waits are grouped: debug and interactive by kind, the others by size.

    Args:
        medium_milli: The largest that is medium.
        large_milli: The largest that is large; beyond it is largest.
    """

    medium_milli: int = 8_000
    large_milli: int = 64_000

    def of(self, job: Job) -> str:
        """Return the group of a job."""
        if job.kind in ("debug", "interactive"):
            return job.kind
        if job.gpus_milli <= self.medium_milli:
            return "medium"
        return "large" if job.gpus_milli <= self.large_milli else "largest"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """What is simulated.

    Args:
        name: Its name.
        cluster: The name of the cluster, which is the book in a ledger.
        start_s: When it begins; a midnight.
        days: How many days are measured.
        warm_up_days: How many days come before, simulated and not measured.
        hosts: The cluster.
        accounts: The program tree.
        demand: Gives, for a seed, where jobs come from.
        faults: What breaks: as it is drawn, or as it was.
        policy: The knobs of the production policy.
        cycle_s: How often the production policy has a cycle though nothing happened.
        groups: How waits are grouped.
        worlds: Settings of single worlds by name, such as those of the old one.
        seed: The seed unless another is given.
        notes: What whoever looks at results ought to know of where it came from, such as records that were left out.
    """

    name: str
    cluster: str
    start_s: int
    days: int
    warm_up_days: int
    hosts: tuple[HostSpec, ...]
    accounts: tuple[AccountSpec, ...]
    demand: Callable[[int], Demand]
    faults: FaultModel | FaultRecord = field(default_factory=FaultModel)
    policy: PolicyConfig = field(default_factory=PolicyConfig)
    cycle_s: int = 60
    groups: Groups = field(default_factory=Groups)
    worlds: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    seed: int = 1
    notes: tuple[str, ...] = ()

    @property
    def measured_from_s(self) -> int:
        """When the warm-up is over."""
        return self.start_s + self.warm_up_days * 86_400

    @property
    def end_s(self) -> int:
        """When it ends."""
        return self.measured_from_s + self.days * 86_400
