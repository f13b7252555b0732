"""The past as a cycle is told it: use, entitlement and capacity as far as they are remembered, read from the ledger."""

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from gpuledger.database.engine import Reader
from gpuledger.events.envelope import ORG_BOOK
from gpuledger.kernel.amounts import GPU_MILLI, WEIGHT_ONE
from gpuledger.kernel.knobs import PolicyConfig
from gpuledger.ledger import look_back, queries, state
from gpuledger.ledger.rates import UNWEIGHTED, Rates
from gpuledger.policy.entitlement import Entitled, History, entitled
from gpuledger.policy.memory import Memory, Step, steps_of

Books = Mapping[str, int | None]
"""Cluster -> the row of its book as of which it is read; None for now."""


class Used(NamedTuple):
    """What an account used, as far as it is remembered, in gpu_ms as the policy counts it."""

    allocated_gpu_ms: int = 0
    unallocated_gpu_ms: int = 0


NOTHING = Used()


@dataclass(frozen=True, slots=True)
class Past:
    """What a cycle remembers.

    Args:
        capacity_gpu_ms: Healthy capacity.
        shared_milli: Healthy GPUs now, as use counts them.
        use: Use by account; accounts that used nothing are absent.
        held_gpu_ms: What is set aside by account, in full.
        memory: How much the past weighs.
        capacity: Healthy milli-GPU over time, each times its weight in per mille.
        history: How shares and accounts came to be.
        rates: The weights; every model weighs 1000 where physical GPU-time counts.
    """

    capacity_gpu_ms: int
    shared_milli: int
    use: Mapping[str, Used]
    held_gpu_ms: Mapping[str, int]
    memory: Memory
    capacity: tuple[Step, ...]
    history: History
    rates: Rates

    def entitled(self, paths: Collection[str]) -> dict[str, Entitled]:
        """Return what each leaf of a tree was entitled to."""
        return entitled(paths, self.history, self.memory, self.capacity, per_unit=WEIGHT_ONE)

    def weights(self, models: Mapping[str, int]) -> Callable[[str | None], int]:
        """Return what a GPU counts now in per mille, by its model; without a model the mean of healthy ones.

        Args:
            models: Model -> healthy milli-GPU; without any a GPU of no model counts one.
        """
        return weights(self.rates, models, self.memory.end_s)


def weights(rates: Rates, models: Mapping[str, int], at_s: int) -> Callable[[str | None], int]:
    """Return what a GPU counts at an instant in per mille, by its model; see ``Past.weights``."""
    weighted = sum(milli * rates.weight(model, at_s) for model, milli in models.items())
    mean = weighted // sum(models.values()) if models else WEIGHT_ONE
    return lambda model: rates.weight(model, at_s) if model else mean


def read_past(
    reader: Reader,
    clusters: Sequence[str],
    at_s: int,
    config: PolicyConfig,
    *,
    vector: Mapping[str, int] | None = None,
) -> Past:
    """Read what is remembered of clusters together at an instant; see ``reading.read_state``."""
    memory = Memory.of(config, at_s)
    books: Books = {cluster: None if vector is None else vector.get(cluster, 0) for cluster in clusters}
    org_seq = None if vector is None else vector.get(ORG_BOOK, 0)
    rates = queries.rate_card(reader, org_seq) if config.unit == "weighted" else UNWEIGHTED
    capacity = _capacity(reader, books, memory, rates)
    remembered = memory.of_steps(capacity, memory.start_s, memory.end_s)
    return Past(
        capacity_gpu_ms=memory.rounded(remembered, per_unit=WEIGHT_ONE),
        shared_milli=_shared_milli(reader, books, at_s, rates),
        use=_use(reader, books, memory, rates),
        held_gpu_ms=read_held(reader, books, at_s, rates),
        memory=memory,
        capacity=capacity,
        history=_history(reader, clusters, memory, vector),
        rates=rates,
    )


def _shared_milli(reader: Reader, books: Books, at_s: int, rates: Rates) -> int:
    weighted = sum(
        milli * rates.weight(model, at_s)
        for cluster, seq in books.items()
        for model, milli in state.healthy_models(reader, cluster, at_s, seq=seq).items()
    )
    return weighted // WEIGHT_ONE


def _capacity(reader: Reader, books: Books, memory: Memory, rates: Rates) -> tuple[Step, ...]:
    changes: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for cluster, seq in books.items():
        for at_s, model, gpus in look_back.capacity_changes(
            reader, cluster, memory.start_s, memory.end_s, seq=seq
        ):
            changes[model].append((at_s, gpus))
    weighted: list[tuple[int, int]] = []
    for model, found in changes.items():
        steps = steps_of(found)
        for (from_s, gpus), (to_s, _) in pairwise([*steps, Step(memory.end_s, 0)]):
            for begin_s, end_s, weight in rates.pieces(model, from_s, to_s):
                amount = gpus * GPU_MILLI * weight
                weighted += [(begin_s, amount), (end_s, -amount)]
    return tuple(steps_of(weighted))


def _use(reader: Reader, books: Books, memory: Memory, rates: Rates) -> dict[str, Used]:
    """Sum what the edges of segments say, net of credits; time is cut where a weight changes."""
    changes = {at_s for steps in rates.steps.values() for at_s, _ in steps}
    cuts = sorted(at_s for at_s in changes if memory.start_s < at_s < memory.end_s)
    pieces = list(pairwise([memory.start_s, *cuts, memory.end_s]))
    by_model = bool(rates.steps)
    units: dict[tuple[str, str], int] = defaultdict(int)
    for cluster, seq in books.items():
        for edge in look_back.use_edges(
            reader, cluster, pieces, bucket_s=memory.bucket_s, by_model=by_model, seq=seq
        ):
            begin_s = pieces[edge.piece][0]
            weight = (
                rates.weighted(edge.gpu_model, edge.gpus_milli, begin_s, begin_s + 1)
                if by_model
                else WEIGHT_ONE
            )
            seconds = memory.sums[edge.bucket] * edge.number + memory.weights[edge.bucket] * edge.seconds
            units[edge.account, edge.klass] += weight * seconds
        for given in look_back.credited(reader, cluster, memory.start_s, seq=seq):
            for begin_s, end_s in pieces:
                weight = rates.weighted(given.gpu_model, given.gpus_milli, begin_s, begin_s + 1)
                seconds = memory.weight(max(given.from_s, begin_s), min(given.to_s, end_s))
                units[given.account, "allocated"] -= weight * seconds
    return {
        account: Used(
            memory.rounded(max(units[account, "allocated"], 0), per_unit=WEIGHT_ONE),
            memory.rounded(units[account, "unallocated"], per_unit=WEIGHT_ONE),
        )
        for account in sorted({account for account, _ in units})
    }


def read_held(
    reader: Reader, books: Books, at_s: int, rates: Rates, *, only: Sequence[str] | None = None
) -> dict[str, int]:
    """Return what is set aside by account at an instant, in gpu_ms as use is counted; for some workloads, or all."""
    held: dict[str, int] = defaultdict(int)
    for cluster, seq in books.items():
        for hold in state.open_holds(reader, cluster, at_s, seq=seq, only=only):
            held[hold.account] += hold.seconds * rates.weighted(
                hold.gpu_model, hold.gpus_milli, at_s, at_s + 1
            )
    return {account: amount // WEIGHT_ONE for account, amount in held.items()}


def _history(
    reader: Reader, clusters: Sequence[str], memory: Memory, vector: Mapping[str, int] | None
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
