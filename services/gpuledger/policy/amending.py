"""What a submission between two cycles changes: decided from what the newest cycle was told, while that is right.

It is right while the cluster's book and ``~org`` have come to hold nothing but new submissions, and what the cycle or
an amendment ordered, admitted and started as they ordered it. Anything else calls for a full cycle
(docs/decisions/0054).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import msgspec

from gpuledger.database.engine import Reader
from gpuledger.events.budget import AllocationAmended, AllocationIssued
from gpuledger.events.decision import DecisionMade
from gpuledger.events.envelope import ORG_BOOK
from gpuledger.ledger import store
from gpuledger.ledger.since import Since, eligible_between, hosts_change_between, since
from gpuledger.policy.cycle import Action, Cycle, Decision, Shared
from gpuledger.policy.decisions import STARTED
from gpuledger.policy.incremental import Prepared
from gpuledger.policy.notices import Notice, notices
from gpuledger.policy.publication import PART_BYTES
from gpuledger.policy.published import as_json
from gpuledger.policy.reading import read_running, read_submitted
from gpuledger.policy.recording import cycle_id, digest_of
from gpuledger.policy.state import ClusterState, PendingWorkload, RunningRun

FEW = 8
"""More submissions at once are decided by a full cycle, which takes as long as some of them."""

AGE_S = 300
"""For so long what a cycle was told of use, and of whatever else goes on by itself, is good enough between two."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Base:
    """What submissions are answered from: a recorded cycle, with what amended it.

    Args:
        issued: The cycle, as it was journalled.
        told: What it was told.
        prepared: What it came to, with its amendments.
        digest: Names what was told by now: the cycle's input, and every submission since.
        seq: The row up to which the cluster's book was looked at.
        looked_s: The instant up to which.
        cycles: The ids of the cycle and of its amendments.
    """

    issued: AllocationIssued
    told: ClusterState
    prepared: Prepared
    digest: str
    seq: int
    looked_s: int
    cycles: frozenset[str]

    @classmethod
    def of(cls, issued: AllocationIssued, told: ClusterState, prepared: Prepared, *, digest: str) -> "Base":
        """Return what the first submission after a cycle is answered from."""
        return cls(
            issued=issued,
            told=told,
            prepared=prepared,
            digest=digest,
            seq=issued.sequences.get(issued.cluster, 0),
            looked_s=told.at_s,
            cycles=frozenset([issued.cycle]),
        )


class Amended(NamedTuple):
    """What came of a look at what was submitted.

    Args:
        base: What the next submission is answered from.
        at_s: The instant that it is decided for.
        fact: What is to be journalled; None where nobody waits that was not decided about.
        notices: What runs are told that have to leave.
    """

    base: Base
    at_s: int
    fact: AllocationAmended | None = None
    notices: tuple[Notice, ...] = ()


def amend(reader: Reader, base: Base, at_s: int) -> Amended | None:
    """Decide about what was submitted since; None when that calls for a full cycle.

    Args:
        reader: A snapshot.
        base: What was decided before.
        at_s: The instant, after that of the newest of it.
    """
    cluster, org_seq = base.issued.cluster, base.issued.sequences.get(ORG_BOOK, 0)
    came = since(reader, cluster, base.seq, org_seq=org_seq)
    if (
        came is None
        or at_s - base.told.at_s > AGE_S
        or not base.cycles.issuperset(came.cycles)
        or hosts_change_between(reader, cluster, base.looked_s, at_s)
        or not _as_ordered(reader, base, came, at_s)
    ):
        return None
    names = dict.fromkeys((*came.submitted, *eligible_between(reader, cluster, base.looked_s, at_s)))
    sequences = {cluster: came.seq, ORG_BOOK: org_seq}
    config = base.prepared.config
    workloads = read_submitted(reader, base.told, at_s, config, only=list(names), vector=sequences)
    looked = replace(base, seq=came.seq, looked_s=at_s)
    if not workloads:
        return Amended(looked, at_s)
    decided = None if len(workloads) > FEW else decide(looked, workloads, at_s, sequences)
    if decided is None or len(msgspec.json.encode(decided.fact)) > PART_BYTES:
        return None
    # A run that was ordered has no name yet by which it could be told anything.
    named = (one for one in notices(base.told, config, decided.cycle) if one.fact.run != STARTED)
    return Amended(decided.base, at_s, decided.fact, tuple(named))


class _Decided(NamedTuple):
    base: Base
    fact: AllocationAmended
    cycle: Cycle


def decide(
    base: Base, workloads: Sequence[PendingWorkload], at_s: int, sequences: Mapping[str, int]
) -> _Decided | None:
    """Decide about workloads, one after the other; None where that takes a full cycle, or one that runs has no name.

    Args:
        base: What was decided before.
        workloads: They, one at least.
        at_s: The instant.
        sequences: Book -> the row up to which they were read.
    """
    prepared = base.prepared
    stated: dict[str, Decision | Shared] = {}
    for workload in workloads:
        if not prepared.answers(workload, at_s):
            return None
        prepared, cycle = prepared.submitted(workload, at_s)
        for one in cycle.decisions:
            if one.action is Action.START or (
                one.action is Action.WAIT and one.workload == workload.workload
            ):
                stated[one.workload] = one
        if any(one.action is Action.PREEMPT and one.run == STARTED for one in cycle.decisions):
            return None
    leaving = (one for one in cycle.decisions if one.action is Action.PREEMPT)
    digest = digest_of((base.digest, at_s, tuple(workloads)))
    name = cycle_id(base.issued.cluster, at_s, digest)
    published = as_json(replace(cycle, decisions=(*stated.values(), *leaving)), cycle_id=name)
    record: dict[str, Any] = {key: published[key] for key in ("decisions", "reservations")}
    fact = AllocationAmended(
        cluster=base.issued.cluster,
        cycle=name,
        base=base.issued.cycle,
        submissions=[workload.workload for workload in workloads],
        sequences=dict(sequences),
        input_digest=digest,
        record=record,
    )
    after = replace(base, prepared=prepared, digest=digest, cycles=base.cycles | {name})
    return _Decided(after, fact, cycle)


def _as_ordered(reader: Reader, base: Base, came: Since, at_s: int) -> bool:
    """Tell whether what was admitted and started was ordered so: it runs as ordered, and holds what was counted."""
    cluster, started, admitted = base.issued.cluster, sorted(set(came.started)), sorted(set(came.admitted))
    ordered = {run.workload: run for run in base.prepared.ordered} if started or admitted else {}
    if not ordered.keys() >= {*started, *admitted}:
        return False
    runs = read_running(reader, cluster, at_s, base.prepared.config, only=started)
    decisions = [
        (ordered[name], known.data)
        for name, known in store.facts_of(reader, cluster, admitted)
        if isinstance(known.data, DecisionMade)
    ]
    return (
        [run.workload for run in runs] == started
        and all(_is_like(run, ordered[run.workload]) for run in runs)
        and all(_is_held_for(run, decision) for run, decision in decisions)
    )


def _is_like(run: RunningRun, ordered: RunningRun) -> bool:
    of_run, of_order = (
        (one.account, one.gpus_milli, one.klass, dict(one.placement)) for one in (run, ordered)
    )
    return of_run == of_order and run.started_at_s >= ordered.started_at_s


def _is_held_for(ordered: RunningRun, decision: DecisionMade) -> bool:
    """Tell whether an admission set aside what the order counted as used."""
    protected_s = ordered.protected_until_s - ordered.started_at_s
    return (decision.account, decision.gpus_milli, decision.klass, decision.hold_s, decision.extends_from) == (
        ordered.account, ordered.gpus_milli, ordered.klass, protected_s, None,
    )  # fmt: skip
