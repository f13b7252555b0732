"""The past as a cycle is told it: use, entitlement and capacity as far as they are remembered, read from the ledger."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from gpuledger.database.engine import Reader
from gpuledger.events.envelope import ORG_BOOK
from gpuledger.kernel.amounts import GPU_MILLI
from gpuledger.kernel.knobs import PolicyConfig
from gpuledger.ledger import look_back
from gpuledger.policy.entitlement import Entitled, History, entitled
from gpuledger.policy.memory import Memory, Step, steps_of


class Used(NamedTuple):
    """What an account used, as far as it is remembered, in gpu_ms."""

    allocated_gpu_ms: int = 0
    unallocated_gpu_ms: int = 0


NOTHING = Used()


@dataclass(frozen=True, slots=True)
class Past:
    """What a cycle remembers.

    Args:
        capacity_gpu_ms: Healthy capacity.
        use: Use by account; accounts that used nothing are absent.
        memory: How much the past weighs.
        capacity: Healthy milli-GPU over time.
        history: How shares and accounts came to be.
    """

    capacity_gpu_ms: int
    use: Mapping[str, Used]
    memory: Memory
    capacity: tuple[Step, ...]
    history: History

    def entitled(self, paths: Collection[str]) -> dict[str, Entitled]:
        """Return what each leaf of a tree was entitled to."""
        return entitled(paths, self.history, self.memory, self.capacity)


def read_past(
    reader: Reader,
    cluster: str,
    at_s: int,
    config: PolicyConfig,
    *,
    vector: Mapping[str, int] | None = None,
) -> Past:
    """Read what is remembered of a cluster at an instant; see ``reading.read_state``."""
    memory = Memory.of(config, at_s)
    seq = None if vector is None else vector.get(cluster, 0)
    capacity = tuple(
        steps_of(
            (when_s, gpus * GPU_MILLI)
            for when_s, _, gpus in look_back.capacity_changes(
                reader, cluster, memory.start_s, memory.end_s, seq=seq
            )
        )
    )
    return Past(
        capacity_gpu_ms=memory.rounded(memory.of_steps(capacity, memory.start_s, memory.end_s)),
        use=_use(reader, cluster, memory, seq),
        memory=memory,
        capacity=capacity,
        history=_history(reader, (cluster,), memory, vector),
    )


def _use(reader: Reader, cluster: str, memory: Memory, seq: int | None) -> dict[str, Used]:
    units: dict[tuple[str, str], int] = defaultdict(int)
    pieces = list(pairwise((memory.start_s, memory.end_s)))
    for edge in look_back.use_edges(
        reader, cluster, pieces, bucket_s=memory.bucket_s, by_model=False, seq=seq
    ):
        amount = memory.sums[edge.bucket] * edge.number + memory.weights[edge.bucket] * edge.seconds
        units[edge.account, edge.klass] += amount
    return {
        account: Used(
            memory.rounded(units[account, "allocated"]), memory.rounded(units[account, "unallocated"])
        )
        for account in sorted({account for account, _ in units})
    }


def _history(
    reader: Reader, clusters: Iterable[str], memory: Memory, vector: Mapping[str, int] | None
) -> History:
    """Return how shares and accounts came to be; an account exists from its creation, first share or first use on."""
    org_seq = None if vector is None else vector.get(ORG_BOOK, 0)
    shares = {
        account: [Step(*version) for version in versions]
        for account, versions in look_back.share_versions(reader, memory.end_s, org_seq=org_seq).items()
    }
    births = {
        account: min([created_s, *(step.from_s for step in shares.get(account, ())[:1])])
        for account, created_s in look_back.created(reader, org_seq=org_seq).items()
        if created_s > memory.start_s
    }
    used = look_back.first_use(reader, clusters, births, vector=vector) if births else {}
    return History(
        shares=shares,
        births={account: min(born_s, used.get(account, born_s)) for account, born_s in births.items()},
    )
