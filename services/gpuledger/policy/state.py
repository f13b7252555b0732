"""What a cycle is told: the accounts, the runs, the queue and the rules of one cluster at one instant.

Values only. Amounts are ``gpu_ms`` (milli-GPU x seconds), GPUs are milli-GPU, instants are whole seconds
since 1970-01-01T00:00:00Z.
"""

import dataclasses
import hashlib
from dataclasses import dataclass
from typing import Literal

from gpuledger.kernel.accounts import check_path
from gpuledger.kernel.errors import Refused

WorkClass = Literal["allocated", "unallocated"]
PER_MILLE = 1000


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
    demand_milli: int = 0
    unallocated_gpu_ms: int = 0
    limit_milli: int | None = None
    created_s: int | None = None

    def __post_init__(self) -> None:
        """Refuse a malformed path, a negative amount, and holds that are not part of the use."""
        check_path(self.account)
        _refuse_negative(
            f"account {self.account!r}",
            share=self.share,
            used_gpu_ms=self.used_gpu_ms,
            held_gpu_ms=self.held_gpu_ms,
            entitled_gpu_ms=self.entitled_gpu_ms or 0,
            demand_milli=self.demand_milli,
            unallocated_gpu_ms=self.unallocated_gpu_ms,
            limit_milli=self.limit_milli or 0,
        )
        if self.held_gpu_ms > self.used_gpu_ms:
            raise Refused(
                f"account {self.account!r} holds {self.held_gpu_ms} gpu_ms but used only {self.used_gpu_ms}",
                hint="used_gpu_ms counts the open holds; held_gpu_ms says how much of it they are",
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningRun:
    """A run that occupies GPUs now.

    Args:
        workload: The workload it belongs to.
        run: The run's id.
        account: The account that pays.
        gpus_milli: Milli-GPU it occupies.
        started_at_s: When the GPUs were handed over.
        protected_until_s: From this instant on it may be preempted.
        klass: ``allocated`` (charged) or ``unallocated`` (free, always preemptible).
    """

    workload: str
    run: str
    account: str
    gpus_milli: int
    started_at_s: int
    protected_until_s: int
    klass: WorkClass = "allocated"

    def __post_init__(self) -> None:
        """Refuse a malformed account and negative GPUs."""
        check_path(self.account)
        _refuse_negative(f"run {self.run!r}", gpus_milli=self.gpus_milli)

    def is_preemptible(self, at_s: int) -> bool:
        """Say whether nothing protects the run at the instant."""
        return self.klass == "unallocated" or self.protected_until_s <= at_s


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
    """

    workload: str
    account: str
    gpus_milli: int
    submitted_at_s: int
    eligible_at_s: int
    priority: int = 0
    minimum_runtime_s: int
    gpu_model: str | None = None

    def __post_init__(self) -> None:
        """Refuse a malformed account and negative amounts."""
        check_path(self.account)
        _refuse_negative(
            f"workload {self.workload!r}",
            gpus_milli=self.gpus_milli,
            minimum_runtime_s=self.minimum_runtime_s,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterState:
    """Everything one cycle may look at.

    Args:
        cluster: The cluster.
        at_s: The instant of the cycle.
        healthy_milli: Healthy capacity now, in milli-GPU.
        capacity_window_gpu_ms: Healthy capacity integrated over the look-back window.
        accounts: The program tree; absent inner nodes have share 1.
        running: Runs that occupy GPUs.
        pending: Workloads that wait, each once.
    """

    cluster: str
    at_s: int
    healthy_milli: int
    capacity_window_gpu_ms: int
    accounts: tuple[AccountState, ...] = ()
    running: tuple[RunningRun, ...] = ()
    pending: tuple[PendingWorkload, ...] = ()

    def __post_init__(self) -> None:
        """Refuse negative capacity and a workload that is listed twice."""
        _refuse_negative(
            f"cluster {self.cluster!r}",
            healthy_milli=self.healthy_milli,
            capacity_window_gpu_ms=self.capacity_window_gpu_ms,
        )
        seen: set[str] = set()
        for workload in self.pending:
            if workload.workload in seen:
                raise Refused(f"workload {workload.workload!r} is pending twice on {self.cluster!r}")
            seen.add(workload.workload)


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyConfig:
    """The knobs of the policy, all integers.

    Args:
        window_s: Length of the look-back window; use and entitlement are integrated over it by the caller.
        protection_cap_s: The longest minimum runtime that is protected; also how far the order looks ahead.
        floor_alpha_permille: alpha of the floor: an account that waits and runs below (1 - alpha) of its
            present entitlement comes first.
        issue_kappa_permille: kappa of the issue: an over-served account keeps at least this part of its share
            as weight.
        horizon_s: A deficit is made good over this long.
        quantum_s: Occupancy that the order expects of a start without a minimum runtime.
    """

    window_s: int = 7 * 86_400
    protection_cap_s: int = 8 * 3_600
    floor_alpha_permille: int = 500
    issue_kappa_permille: int = 500
    horizon_s: int = 86_400
    quantum_s: int = 900

    def __post_init__(self) -> None:
        """Refuse lengths below one second and parts outside their range.

        kappa is above 0: a weight of 0 would leave GPUs idle that an account with a share asks for.
        """
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            bottom = 0 if field.name == "floor_alpha_permille" else 1
            top = PER_MILLE if field.name.endswith("_permille") else value
            if not bottom <= value <= top:
                raise Refused(
                    f"policy setting {field.name} is {value}",
                    hint="lengths are at least 1 s, alpha lies in 0..1000 and kappa in 1..1000 per mille",
                )

    @property
    def version(self) -> str:
        """Digest of every setting: equal settings have equal versions, on any machine."""
        lines = (f"{field.name}={getattr(self, field.name)}" for field in dataclasses.fields(self))
        return hashlib.sha256("\n".join(sorted(lines)).encode()).hexdigest()


def _refuse_negative(owner: str, **amounts: int) -> None:
    for name, amount in amounts.items():
        if amount < 0:
            raise Refused(f"{owner} has {name} = {amount}", hint="it cannot be below 0")
