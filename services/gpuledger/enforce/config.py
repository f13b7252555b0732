"""The file that says what an enforcer may change: YAML, read strictly."""

from pathlib import Path
from typing import Annotated

from pydantic import Field

from gpuledger.ingest.yaml_file import ClusterName, Strict, Word, read_yaml
from gpuledger.policy.orders import STALE_AFTER_S

DOCS = "docs/enforcing.md"

Seconds = Annotated[int, Field(ge=1, le=366 * 86_400)]


class Unallocated(Strict):
    """The QOS of work that nobody is charged for.

    Args:
        qos: Its name.
        preempted_by: QOS whose jobs may take its GPUs.
    """

    qos: Word = "unallocated"
    preempted_by: tuple[Word, ...] = ("normal",)


class Budgets(Strict):
    """Limits of hard accounts.

    Args:
        slack_gpu_minutes: A limit is raised only when it is more than this below what is left; lowered at once.
    """

    slack_gpu_minutes: Annotated[int, Field(ge=0, le=10**9)] = 60


class Order(Strict):
    """The order of waiting jobs.

    Args:
        jobs: So many jobs at the head of the queue are given a priority.
        base: Above which their priorities lie; higher than any that Slurm computes itself.
    """

    jobs: Annotated[int, Field(ge=1, le=10_000)] = 200
    base: Annotated[int, Field(ge=1, le=2_000_000_000)] = 1_000_000_000


class Common(Strict):
    """What every scheduler's part has.

    Args:
        cluster: The cluster in the ledger.
        managed: Globs of the accounts or queues that may be changed; nothing else is.
        names: Foreign name -> path of ours, where the mapping does not say it.
        preempt: Whether runs are stopped that a cycle told to leave.
        stale_after_s: A cycle older than this stops and orders nothing.
    """

    cluster: ClusterName | None = None
    managed: tuple[Word, ...] = ()
    names: dict[Word, Word] = Field(default_factory=dict)
    preempt: bool = False
    stale_after_s: Seconds = STALE_AFTER_S


class Slurm(Common):
    """What may be changed in Slurm.

    Args:
        shares: Whether accounts' fair-share is set.
        order: How waiting jobs are ordered; not at all unless given.
        budgets: Whether hard accounts are limited; not unless given.
        unallocated: The QOS of unallocated work; none unless given.
        hosts: Whether hosts are drained and resumed.
    """

    shares: bool = True
    order: Order | None = None
    budgets: Budgets | None = None
    unallocated: Unallocated | None = None
    hosts: bool = False


class Kueue(Common):
    """What may be changed in Kueue.

    Args:
        resource: The resource that stands for a GPU.
        flavors: Flavours whose quota is set; the only one of a queue unless given.
        weights: Whether fair-sharing weights are set.
        quotas: Whether nominal quotas are set.
        borrow: Whether queues may borrow what others leave: without a limit, or nothing; left alone unless given.
        lend: Whether queues lend what they leave: without a limit, or nothing; left alone unless given.
    """

    resource: Word = "nvidia.com/gpu"
    flavors: tuple[Word, ...] = ()
    weights: bool = True
    quotas: bool = True
    borrow: bool | None = None
    lend: bool | None = None


class Kai(Common):
    """What may be changed in KAI.

    Args:
        quotas: Whether quotas and over-quota weights are set.
        limits: Whether queues are limited to what they are issued; else without a limit.
        min_runtime_s: The minimum runtime that KAI itself keeps to, before it preempts and reclaims.
    """

    quotas: bool = True
    limits: bool = False
    min_runtime_s: Annotated[int, Field(ge=0, le=366 * 86_400)] | None = None


class EnforceFile(Strict):
    """The file.

    Args:
        slurm: What may be changed in Slurm.
        kueue: What may be changed in Kueue.
        kai: What may be changed in KAI.
    """

    slurm: Slurm = Slurm()
    kueue: Kueue = Kueue()
    kai: Kai = Kai()


def read_config(path: Path) -> EnforceFile:
    """Return what a file allows.

    Raises:
        NotFound: When there is no such file.
        Refused: When it is not YAML, or a key or value does not fit; names each place.
    """
    return read_yaml(path, EnforceFile, DOCS)
