"""What submissions and ends between two cycles change: decided from what the newest cycle was told, if that is right.

It is right while the cluster's book and ``~org`` have come to hold nothing but new submissions, what the cycle or an
amendment ordered, admitted and started as they ordered it, runs that ended, were preempted or saved their work, and
work that was withdrawn. Anything else calls for a full cycle, and so does work of hard accounts that begins to wait
(docs/decisions/0054, 0066, 0078).
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import msgspec

from gpuledger.database.engine import Reader
from gpuledger.events.budget import AllocationAmended, AllocationIssued
from gpuledger.events.decision import DecisionMade
from gpuledger.events.envelope import ORG_BOOK
from gpuledger.ledger import store
from gpuledger.ledger.since import ROWS_MAX, Since, eligible_between, hosts_change_between, since
from gpuledger.policy.affording import hard_above
from gpuledger.policy.cycle import Action, Cycle, Decision, Shared
from gpuledger.policy.decisions import STARTED
from gpuledger.policy.history import read_held
from gpuledger.policy.incremental import Prepared
from gpuledger.policy.notices import Notice, notices
from gpuledger.policy.publication import PART_BYTES
from gpuledger.policy.published import as_json
from gpuledger.policy.reading import read_rates, read_running, read_submitted
from gpuledger.policy.recording import cycle_id, digest_of
from gpuledger.policy.state import ClusterState, PendingWorkload, RunId, RunningRun
from gpuledger.policy.turnover import NO_TURNOVER, Turnover

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
        touched: Workloads whose runs are to be read anew, for their rows say more than ``prepared`` was told.
        leaving: The runs that had to leave by what was recorded last.
    """

    issued: AllocationIssued
    told: ClusterState
    prepared: Prepared
    digest: str
    seq: int
    looked_s: int
    cycles: frozenset[str]
    touched: tuple[str, ...] = ()
    leaving: frozenset[RunId] = frozenset()

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
            leaving=_leaving(prepared.cycle),
        )


class Amended(NamedTuple):
    """What came of a look at what was submitted.

    Args:
        base: What the next submission is answered from.
        at_s: The instant that it is decided for.
        fact: What is to be journalled; None where nobody waits that was not decided about, and nothing came of what
            ended.
        notices: What runs are told that have to leave.
    """

    base: Base
    at_s: int
    fact: AllocationAmended | None = None
    notices: tuple[Notice, ...] = ()


def amend(reader: Reader, base: Base, at_s: int) -> Amended | None:
    """Decide about what was submitted, and what ended, since; None when that calls for a full cycle.

    Args:
        reader: A snapshot.
        base: What was decided before.
        at_s: The instant, after that of the newest of it.

    Raises:
        Refused: When what was read contradicts what was told.
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
    touched = tuple(dict.fromkeys((*base.touched, *came.started, *came.ended, *came.saved)))
    looked = replace(base, seq=came.seq, looked_s=at_s, touched=touched)
    names = dict.fromkeys((*came.submitted, *eligible_between(reader, cluster, base.looked_s, at_s)))
    if len(touched) > ROWS_MAX:
        return None
    if not names and not came.ended:
        return Amended(looked, at_s)
    sequences = {cluster: came.seq, ORG_BOOK: org_seq}
    turnover, again = turnover_of(reader, looked, at_s, sequences)
    only = list(dict.fromkeys((*names, *again)))
    workloads = read_submitted(reader, base.told, at_s, base.prepared.config, only=only, vector=sequences)
    if not workloads and not turnover:
        return Amended(looked, at_s)
    if workloads and hard_above(reader, {one.account for one in workloads}, at_s, org_seq=org_seq):
        return None  # whether that can be paid for is asked of a purse, about all that waits
    decided = None if len(workloads) > FEW else decide(looked, workloads, at_s, sequences, turnover)
    if decided is None or len(msgspec.json.encode(decided.fact)) > PART_BYTES:
        return None
    if not workloads and decided.is_nothing_new:
        return Amended(looked, at_s)  # taken up together with what comes next
    # A run that was ordered has no name yet by which it could be told anything.
    told = notices(decided.there, base.prepared.config, decided.cycle)
    named = (one for one in told if one.fact.run != STARTED)
    return Amended(decided.base, at_s, decided.fact, tuple(named))


def turnover_of(
    reader: Reader, base: Base, at_s: int, sequences: Mapping[str, int]
) -> tuple[Turnover, tuple[str, ...]]:
    """Return what came and went of the workloads that are to be read anew, and those of them that wait again.

    What the cycle counted as set aside for a run is counted no more once its workload does not run.

    Args:
        reader: A snapshot.
        base: What was decided before.
        at_s: The instant.
        sequences: Book -> the row up to which it is read.
    """
    if not base.touched:
        return NO_TURNOVER, ()
    cluster, config, prepared = base.issued.cluster, base.prepared.config, base.prepared
    only, seq = sorted(base.touched), sequences.get(base.issued.cluster, 0)
    now = {run.id: run for run in read_running(reader, cluster, at_s, config, only=only, seq=seq)}
    waiting = read_submitted(reader, base.told, at_s, config, only=only, vector=sequences)
    there = {run.id: run for run in prepared.there.running if run.workload in base.touched}
    gone = [run for run in there.values() if now.get(run.id) != run]
    come = [run for run in now.values() if there.get(run.id) != run]
    running, waits = {run.workload for run in now.values()}, {one.workload for one in waiting}
    held, holding = _released(reader, base, [run for run in gone if run.workload not in running])
    turnover = Turnover(
        gone=tuple(run.id for run in gone),
        come=tuple(come),
        left=tuple(name for name in only if name not in waits and prepared.waits(name)),
        held_gpu_ms=held,
        holding_gpu_ms=holding,
    )
    return turnover, tuple(one.workload for one in waiting if not prepared.waits(one.workload))


def _released(
    reader: Reader, base: Base, ended: Sequence[RunningRun]
) -> tuple[dict[str, int], dict[str, int]]:
    """Return by how much what accounts have set aside is another, and what is set aside for the workloads by now.

    For what was ordered since the cycle that is what the order counted; for all else what the cycle was told.
    """
    ordered, held = base.prepared.holding_gpu_ms, Counter[str]()
    for run in ended:
        held[run.account] -= ordered.get(run.workload, 0)
    told = [run.workload for run in ended if run.workload not in ordered]
    if told:
        config, told_seq = base.prepared.config, base.issued.sequences
        rates = read_rates(reader, config, told_seq)
        books = {base.issued.cluster: told_seq.get(base.issued.cluster, 0)}
        held.subtract(read_held(reader, books, base.told.at_s, rates, only=told))
    return dict(held), {run.workload: 0 for run in ended}


class _Decided(NamedTuple):
    """An amendment, and what it follows from.

    Args:
        base: What the next one is answered from.
        fact: What is to be journalled.
        cycle: The last cycle by event of it.
        there: Runs and hosts as that was told of them.
        is_nothing_new: Whether nobody starts, nobody has to leave who had not to before, and all reservations stand.
    """

    base: Base
    fact: AllocationAmended
    cycle: Cycle
    there: ClusterState
    is_nothing_new: bool


def decide(
    base: Base,
    workloads: Sequence[PendingWorkload],
    at_s: int,
    sequences: Mapping[str, int],
    turnover: Turnover = NO_TURNOVER,
) -> _Decided | None:
    """Decide about workloads, one after the other; None where that takes a full cycle, or one that runs has no name.

    Args:
        base: What was decided before.
        workloads: They; where there are none, it is decided who gets what turnover left free.
        at_s: The instant.
        sequences: Book -> the row up to which they were read.
        turnover: What came and went since; it is taken up before anything is decided.
    """
    prepared = base.prepared.after(turnover, at_s) if turnover else base.prepared
    there, before = prepared.there, prepared.cycle.reservations
    stated: dict[str, Decision | Shared] = {}
    for workload in workloads or (None,):
        found = _next(prepared, workload, at_s)
        if found is None:
            return None
        prepared, cycle = found
        name = None if workload is None else workload.workload
        for one in cycle.decisions:
            if one.action is Action.START or (one.action is Action.WAIT and one.workload == name):
                stated[one.workload] = one
        if any(one.action is Action.PREEMPT and one.run == STARTED for one in cycle.decisions):
            return None
    leaving = (one for one in cycle.decisions if one.action is Action.PREEMPT)
    said = (
        (base.digest, at_s, tuple(workloads), turnover) if turnover else (base.digest, at_s, tuple(workloads))
    )
    digest = digest_of(said)
    name = cycle_id(base.issued.cluster, at_s, digest)
    published = as_json(replace(cycle, decisions=(*stated.values(), *leaving)), cycle_id=name)
    record: dict[str, Any] = {key: published[key] for key in ("decisions", "reservations")}
    fact = AllocationAmended(
        cluster=base.issued.cluster,
        cycle=name,
        base=base.issued.cycle,
        submissions=[workload.workload for workload in workloads],
        changed=sorted(base.touched) if turnover else [],
        sequences=dict(sequences),
        input_digest=digest,
        record=record,
    )
    after = replace(
        base,
        prepared=prepared,
        digest=digest,
        cycles=base.cycles | {name},
        touched=() if turnover else base.touched,
        leaving=_leaving(cycle),
    )
    nothing_new = not stated and cycle.reservations == before and after.leaving <= base.leaving
    return _Decided(after, fact, cycle, there, nothing_new)


def _next(prepared: Prepared, workload: PendingWorkload | None, at_s: int) -> tuple[Prepared, Cycle] | None:
    """Decide about a workload, or of nobody's submission; None when that calls for a full cycle."""
    if workload is None:
        return prepared.decided(at_s)
    return prepared.submitted(workload, at_s) if prepared.answers(workload, at_s) else None


def _leaving(cycle: Cycle) -> frozenset[RunId]:
    """Return the runs that a cycle tells to leave."""
    return frozenset(
        RunId(one.workload, one.run or "")
        for one in cycle.decisions
        if one.action is Action.PREEMPT and isinstance(one, Decision)
    )


def _as_ordered(reader: Reader, base: Base, came: Since, at_s: int) -> bool:
    """Tell whether what was admitted and started was ordered so: it runs as ordered, and holds what was counted."""
    cluster, started, admitted = base.issued.cluster, sorted(set(came.started)), sorted(set(came.admitted))
    ordered = {run.workload: run for run in base.prepared.ordered} if started or admitted else {}
    if not ordered.keys() >= {*started, *admitted}:
        return False
    over = set(came.ended)  # how somebody ran who does so no more changes nothing
    begun = [name for name in started if name not in over]
    runs = read_running(reader, cluster, at_s, base.prepared.config, only=begun)
    decisions = [
        (ordered[name], known.data)
        for name, known in store.facts_of(reader, cluster, admitted)
        if isinstance(known.data, DecisionMade)
    ]
    return (
        [run.workload for run in runs] == begun
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
