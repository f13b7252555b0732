"""What a cycle is told: the accounts, the runs, the queue and the rules of one cluster at one instant.

Values only. Amounts are ``gpu_ms`` (milli-GPU x seconds), GPUs are milli-GPU, instants are whole seconds
since 1970-01-01T00:00:00Z.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Literal, NamedTuple

from gpuledger.kernel.accounts import check_path
from gpuledger.kernel.errors import Refused
from gpuledger.kernel.knobs import PER_MILLE, PolicyConfig
from gpuledger.policy.placement import HostState, Placement

__all__ = [
    "PER_MILLE",
    "AccountState",
    "ClusterState",
    "PendingWorkload",
    "PolicyConfig",
    "Reservation",
    "ReservationKind",
    "RunId",
    "RunningRun",
    "WorkClass",
]

WorkClass = Literal["allocated", "unallocated"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountState:
    """One node of the program tree and what it did in the look-back window.

    Inner nodes may be listed for their share. The amounts of an inner node are those of the work it owns
    *itself*, never sums over its children: they count in its virtual child ``~own``.

    Args:
        account: The path.
        share: Weight among the siblings; 0 is issued nothing.
        used_gpu_ms: Allocated use in the window **plus open holds** (net of credits).
        held_gpu_ms: The part of ``used_gpu_ms`` that is open holds.
        entitled_gpu_ms: Share in force x healthy capacity, integrated over the window, of a leaf; None
            computes it from the present shares and ``ClusterState.capacity_window_gpu_ms``. Ignored on
            inner nodes, whose entitlement is the sum of their leaves'.
        par_gpu_ms: What counts as both used and entitled, for the time before a leaf existed; part of neither amount.
        demand_milli: Milli-GPU of funded work that is running or eligible to run.
        unallocated_gpu_ms: Unallocated use in the window; orders the unallocated work only.
        limit_milli: The most that the node, with everything below it, is issued; None for no limit.
        created_s: When the account came to be, if known; the older of two equals gets the unit that rounding leaves.
    """

    account: str
    share: int
    used_gpu_ms: int = 0
    held_gpu_ms: int = 0
    entitled_gpu_ms: int | None = None
    par_gpu_ms: int = 0
    demand_milli: int = 0
    unallocated_gpu_ms: int = 0
    limit_milli: int | None = None
    created_s: int | None = None

    def __post_init__(self) -> None:
        """Refuse a malformed path, a negative amount, and holds that are not part of the use."""
        check_path(self.account)
        amounts = (
            self.share,
            self.used_gpu_ms,
            self.held_gpu_ms,
            self.entitled_gpu_ms or 0,
            self.par_gpu_ms,
            self.demand_milli,
            self.unallocated_gpu_ms,
            self.limit_milli or 0,
        )
        if min(amounts) < 0:  # every cycle makes one of these for every account
            _refuse_negative(f"account {self.account!r}", **dict(zip(_ACCOUNT_AMOUNTS, amounts, strict=True)))
        if self.held_gpu_ms > self.used_gpu_ms:
            raise Refused(
                f"account {self.account!r} holds {self.held_gpu_ms} gpu_ms but used only {self.used_gpu_ms}",
                hint="used_gpu_ms counts the open holds; held_gpu_ms says how much of it they are",
            )

    def holding(self, gpu_ms: int) -> "AccountState":
        """Return the account with so much more set aside."""
        if not gpu_ms:
            return self
        return replace(self, used_gpu_ms=self.used_gpu_ms + gpu_ms, held_gpu_ms=self.held_gpu_ms + gpu_ms)


class RunId(NamedTuple):
    """What names a run: runs of two workloads may have the same id."""

    workload: str
    run: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningRun:
    """A run that occupies GPUs now.

    Args:
        workload: The workload it belongs to.
        run: The run's id within the workload.
        account: The account that pays.
        gpus_milli: Milli-GPU it occupies.
        started_at_s: When the GPUs were handed over.
        protected_until_s: From this instant on it may be preempted.
        klass: ``allocated`` (charged) or ``unallocated`` (free, always preemptible).
        placement: What it holds on which host; empty when nobody said.
        priority: Order inside its account, higher first.
        checkpointed_at_s: Up to when its work is saved; None without a checkpoint.
        id: What names the run.
    """

    workload: str
    run: str
    account: str
    gpus_milli: int
    started_at_s: int
    protected_until_s: int
    klass: WorkClass = "allocated"
    placement: Placement = field(default_factory=dict)
    priority: int = 0
    checkpointed_at_s: int | None = None
    id: RunId = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Name the run; refuse a malformed account, negative GPUs, and a placement of another size."""
        object.__setattr__(self, "id", RunId(self.workload, self.run))
        check_path(self.account)
        _refuse_negative(f"run {self.run!r}", gpus_milli=self.gpus_milli)
        placed_milli = sum(self.placement.values())
        if self.placement and placed_milli != self.gpus_milli:
            raise Refused(
                f"run {self.run!r} of {self.gpus_milli} milli-GPU holds {placed_milli} on its hosts",
                hint="a placement says where all of it is, or nothing",
            )

    def is_preemptible(self, at_s: int) -> bool:
        """Say whether nothing protects the run at the instant."""
        return self.klass == "unallocated" or self.protected_until_s <= at_s

    def safe_until_s(self, quantum_s: int) -> int:
        """Return when another account's work may first take its GPUs: past its protection and its quantum."""
        if self.klass == "unallocated":
            return self.started_at_s
        return max(self.protected_until_s, self.started_at_s + quantum_s)

    def lost_gpu_ms(self, at_s: int) -> int:
        """Return the work that is lost when it ends: since its checkpoint, else since its start."""
        return self.gpus_milli * max(at_s - max(self.started_at_s, self.checkpointed_at_s or 0), 0)


class ReservationKind(StrEnum):
    """What a reservation rests on."""

    PROMISE = "promise"
    """Runs were told to leave; as soon as they are gone the workload starts."""
    BOUND = "bound"
    """At the instant the runs on these GPUs are past their protection, and leave whatever the ratios."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservation:
    """GPUs that are kept for a waiting workload, until it starts, is cancelled, or a host is lost.

    Args:
        workload: For which workload.
        placement: How much on which host.
        at_s: From when on, at the latest, it may have them.
        kind: What that rests on.
        leaving: The runs that were told to leave for it.
    """

    workload: str
    placement: Placement
    at_s: int
    kind: ReservationKind
    leaving: tuple[RunId, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingWorkload:
    """A workload that waits for GPUs.

    Args:
        workload: Its id within the cluster.
        account: The account that pays.
        gpus_milli: Milli-GPU it asks for, all at once.
        submitted_at_s: When it was submitted.
        eligible_at_s: When it may first start.
        priority: Order inside its account, higher first; compared with nobody else's.
        minimum_runtime_s: The shortest occupancy that makes progress; 0 runs unallocated.
        gpu_model: The GPU model it insists on, if any.
        weight_permille: What a GPU that it holds counts, where use is weighted.
    """

    workload: str
    account: str
    gpus_milli: int
    submitted_at_s: int
    eligible_at_s: int
    priority: int = 0
    minimum_runtime_s: int
    gpu_model: str | None = None
    weight_permille: int = PER_MILLE

    def __post_init__(self) -> None:
        """Refuse a malformed account and negative amounts."""
        check_path(self.account)
        _refuse_negative(
            f"workload {self.workload!r}",
            gpus_milli=self.gpus_milli,
            minimum_runtime_s=self.minimum_runtime_s,
            weight_permille=self.weight_permille,
        )

    def counted_gpu_ms(self, seconds: int) -> int:
        """Return what holding its GPUs for so long counts as used."""
        return self.gpus_milli * seconds * self.weight_permille // PER_MILLE

    def begun(
        self, run: str, at_s: int, *, klass: WorkClass, placement: Placement, config: PolicyConfig
    ) -> tuple[RunningRun, int]:
        """Return the run that it becomes when it starts, and what it holds then, counted as used, in gpu_ms.

        A funded start holds its GPUs for its minimum runtime, up to the cap; an unallocated one holds nothing.
        """
        protected_s = config.protected_s(self.minimum_runtime_s) if klass == "allocated" else 0
        begun = RunningRun(
            workload=self.workload,
            run=run,
            account=self.account,
            gpus_milli=self.gpus_milli,
            started_at_s=at_s,
            protected_until_s=at_s + protected_s,
            klass=klass,
            placement=placement,
            priority=self.priority,
        )
        return begun, self.counted_gpu_ms(protected_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterState:
    """Everything one cycle may look at.

    Args:
        cluster: The cluster.
        at_s: The instant of the cycle.
        healthy_milli: Healthy capacity now, in milli-GPU.
        capacity_window_gpu_ms: Healthy capacity integrated over the look-back window.
        accounts: The program tree; absent inner nodes have share 1.
        running: Runs that occupy GPUs, each once.
        pending: Workloads that wait, each once.
        hosts: Where they run, healthy or draining; without any, the cluster is one host of its healthy size.
        reservations: Those that the cycle before left, at most one per workload.
        shared_milli: Healthy GPUs that the tree is about, as use counts them: those of every cluster of the tree, each
            at its weight. None for ``healthy_milli``.
        largest_host_milli: Milli-GPU of the largest installed host, well or not: size classes go by it. None for the
            largest of ``hosts``.
        credits_gpu_ms: Credits by account, where GPUs are divided by them; a sibling that is left out has their mean.
    """

    cluster: str
    at_s: int
    healthy_milli: int
    capacity_window_gpu_ms: int
    accounts: tuple[AccountState, ...] = ()
    running: tuple[RunningRun, ...] = ()
    pending: tuple[PendingWorkload, ...] = ()
    hosts: tuple[HostState, ...] = ()
    reservations: tuple[Reservation, ...] = ()
    shared_milli: int | None = None
    largest_host_milli: int | None = None
    credits_gpu_ms: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse negative capacity, and what is listed twice."""
        _refuse_negative(
            f"cluster {self.cluster!r}",
            healthy_milli=self.healthy_milli,
            capacity_window_gpu_ms=self.capacity_window_gpu_ms,
            shared_milli=self.shared_milli or 0,
            largest_host_milli=self.largest_host_milli or 0,
        )
        self._refuse_twice("workload {!r} is pending", [workload.workload for workload in self.pending])
        self._refuse_twice("workload {!r} has a reservation", [kept.workload for kept in self.reservations])
        ids = [run.id for run in self.running]
        if len(ids) != len(set(ids)):  # names are made only for the message: there are many runs
            self._refuse_twice("run {!r} is running", ["/".join(run) for run in ids])

    def _refuse_twice(self, what: str, names: list[str]) -> None:
        if len(names) != len(set(names)):
            twice = next(name for name, times in Counter(names).items() if times > 1)
            raise Refused(f"{what.format(twice)} twice on {self.cluster!r}")


_ACCOUNT_AMOUNTS = (
    "share",
    "used_gpu_ms",
    "held_gpu_ms",
    "entitled_gpu_ms",
    "par_gpu_ms",
    "demand_milli",
    "unallocated_gpu_ms",
    "limit_milli",
)


def _refuse_negative(owner: str, **amounts: int) -> None:
    for name, amount in amounts.items():
        if amount < 0:
            raise Refused(f"{owner} has {name} = {amount}", hint="it cannot be below 0")
