"""Admission: in which class an attempt may run, and what is set aside for it. A serialised command.

Under the book's lock the account's balance is read and ``decision.made`` is journalled with the hold, so that two
attempts never spend the same GPU-time. Nothing is refused: what is not funded runs unallocated, uncharged and
preemptible from the outset (DESIGN section 8, the contract).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard

from gpuledger.database.engine import Reader, Writer
from gpuledger.events import workload as workload_events
from gpuledger.events.decision import DecisionMade
from gpuledger.events.envelope import ORG_BOOK, make
from gpuledger.events.registry import Fact
from gpuledger.kernel.accounts import lineage, own_path, share_unless_set
from gpuledger.kernel.amounts import gpu_hours
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.clock import Clock, instant, iso, seconds
from gpuledger.kernel.errors import NotFound, Refused
from gpuledger.kernel.knobs import PolicyConfig
from gpuledger.ledger import queries, store
from gpuledger.ledger.append import append, missing
from gpuledger.ledger.applied import rules
from gpuledger.ledger.facts import Known
from gpuledger.ledger.holds import newest
from gpuledger.ledger.knobs import read_config
from gpuledger.ledger.mapping import AS_GIVEN, Rules
from gpuledger.ledger.periods import open_periods
from gpuledger.ledger.purse import Need, Purse
from gpuledger.ledger.requests import asked_at, requests_of
from gpuledger.ledger.segments import History, derive
from gpuledger.ledger.stops import Stop, why
from gpuledger.ledger.ticking import catch_up

SOURCE = "gpuledger/admission"

SLICE_S = 900
"""What is set aside at a time beyond protection: 15 minutes, the base bucket."""

HOLD_EXPIRY_S = 900
"""A start that has not come within 15 minutes finds no hold any more: nobody keeps GPU-time by asking."""


@dataclass(frozen=True, slots=True)
class Admission:
    """The answer to "may this attempt be protected?".

    Args:
        decision: What was decided.
        seq: The row that says so.
        repeated: Whether it had been decided before.
    """

    decision: DecisionMade
    seq: int
    repeated: bool

    def as_json(self) -> dict[str, Any]:
        """Return it under its published keys."""
        decision = self.decision
        return {
            "cluster": decision.cluster,
            "workload": decision.workload,
            "attempt": decision.attempt,
            "class": decision.klass,
            "account": decision.account,
            "gpus_milli": decision.gpus_milli,
            "hold_gpu_ms": decision.hold_gpu_ms,
            "protected_s": decision.hold_s,
            "expires_at": decision.expires_at and iso(decision.expires_at),
            "reason": decision.reason,
            "seq": self.seq,
            "repeated": self.repeated,
        }


@dataclass(frozen=True, slots=True)
class _Asked:
    """What an attempt asks for, as the book knows the workload."""

    account: str
    gpus_milli: int
    gpu_model: str | None
    minimum_runtime_s: int
    attempt: int
    protection_s: int
    is_own_wish: bool
    """Whether minimum runtime 0 is what was asked for, and not what a mapping rule says."""


def admit(writer: Writer, cluster: str, workload: str, *, clock: Clock, calendar: Calendar) -> Admission:
    """Decide about the next attempt of a workload, and set aside what protects it.

    Asked again before it starts and before the hold expires, the answer is the same.

    Args:
        writer: A transaction of its own; the caller commits it.
        cluster: The cluster.
        workload: A workload that was submitted there.
        clock: Says when the hold begins to run out.
        calendar: The organisation's days: a hold over a period's edge is split.

    Raises:
        NotFound: When the cluster or the workload is not known.
        Refused: When the workload runs already, or is over, or the settings of the policy do not go together.
    """
    queries.require_cluster(writer, cluster)
    store.lock_book(writer, cluster)
    append(writer, cluster, [], clock=clock, calendar=calendar)  # decide by the policy data of this moment
    known = [fact for _, fact in store.facts_of(writer, cluster, [workload])]
    now_s = seconds(clock.now())
    config = read_config(writer, cluster, now_s)
    asked = _asked((cluster, workload), known, queries.mapping(writer, cluster), config, now_s)
    standing = _standing(known, asked, now_s)
    if standing is not None:
        seq = store.sequence_of(writer, cluster, standing.digest)
        assert isinstance(standing.data, DecisionMade)  # noqa: S101 - narrows the type
        return Admission(standing.data, seq, repeated=True)
    catch_up(writer, cluster, now_s, clock=clock, calendar=calendar)
    decision = _decide(writer, cluster, workload, asked, now_s, calendar)
    event, _ = make(
        id=f"{workload}/{asked.attempt}/{decision.seen_seq}", source=SOURCE, at_s=now_s, data=decision
    )
    appended = append(writer, cluster, [event], clock=clock, calendar=calendar)
    assert appended.head is not None  # noqa: S101 - a new row moved it
    if decision.hold_gpu_ms:  # what the opening of a period was counted on to grant is granted now
        open_periods(writer, cluster, clock=clock, calendar=calendar)
    return Admission(decision, appended.head.last_seq, repeated=False)


@dataclass(frozen=True, slots=True)
class Terms:
    """Under which policy data attempts of a cluster are read.

    Args:
        rules: The mapping that its book reads workloads by.
        config: The knobs in force.
        is_behind: Whether ``~org`` has policy data that the book has still to take over.
    """

    rules: Rules
    config: PolicyConfig
    is_behind: bool


def terms(reader: Reader, cluster: str, now_s: int) -> Terms:
    """Return the terms of a cluster that has a book; raises as ``admit``."""
    applied = queries.policies_applied(reader, cluster).get(cluster, [])
    return Terms(
        rules(applied, cluster) if applied else AS_GIVEN,
        read_config(reader, cluster, now_s),
        bool(missing(reader, applied)),
    )


def standing(reader: Reader, cluster: str, workload: str, terms: Terms, now_s: int) -> Admission | None:
    """Return the answer that stands, as ``admit`` would repeat it; None where it has to decide.

    Nothing is locked: who asks again in a loop holds up nobody who writes.

    Args:
        reader: A snapshot.
        cluster: The cluster.
        workload: A workload that was submitted there.
        terms: What the snapshot says of the cluster.
        now_s: The present, seconds since the epoch.

    Raises:
        NotFound: As ``admit``.
        Refused: Likewise.
    """
    if terms.is_behind:
        return None
    numbered = list(store.numbered_facts_of(reader, cluster, workload))
    known = [fact for _, fact in numbered]
    asked = _asked((cluster, workload), known, terms.rules, terms.config, now_s)
    found = _standing(known, asked, now_s)
    if found is None:
        return None
    assert isinstance(found.data, DecisionMade)  # noqa: S101 - narrows the type
    seq = max(seq for seq, fact in numbered if fact.digest == found.digest)
    return Admission(found.data, seq, repeated=True)


def _asked(
    of: tuple[str, str], known: Sequence[Known], mapping: Rules, config: PolicyConfig, now_s: int
) -> _Asked:
    cluster, workload = of
    submitted = asked_at(requests_of(known, mapping), now_s)
    if submitted is None:
        raise NotFound(
            f"workload {workload!r} was not submitted to {cluster!r}",
            hint="publish workload.submitted first; the ledger admits what it knows",
        )
    data = submitted.asked
    history = derive(known, mapping)
    if any(segment.to_s is None for segment in history.segments):
        raise Refused(
            f"workload {workload!r} runs already", hint="ask again after it was preempted or requeued"
        )
    if not any(wait.to_s is None for wait in history.waits):
        raise Refused(
            f"workload {workload!r} is over, or asks for no GPUs", hint="a resubmission is a new workload"
        )
    attempts = (k.data.attempt for k in known if isinstance(k.data, workload_events.Started))
    minimum_s = config.protected_s(submitted.minimum_runtime_s)
    return _Asked(
        account=submitted.meaning.account,
        gpus_milli=data.gpus_milli,
        gpu_model=data.gpu_model,
        minimum_runtime_s=minimum_s,
        attempt=max(attempts, default=0) + 1,
        protection_s=minimum_s - _used_s(known, history, minimum_s),
        is_own_wish=data.minimum_runtime_s == 0,
    )


def _used_s(known: Sequence[Known], history: History, minimum_s: int) -> int:
    """Return the protection that runs since the last preemption used up.

    What the user requeued goes on with what was left; a run that the system preempted, or whose host failed, starts
    afresh.
    """
    preempted = {k.data.run for k in known if _is_by_the_system(k.data)}
    used = 0
    for segment in sorted(history.segments, key=lambda s: s.from_s):
        if segment.run in preempted:
            used = 0
        elif segment.klass == "allocated" and segment.to_s is not None:
            used += segment.to_s - segment.from_s
    return min(used, minimum_s)


def _is_by_the_system(fact: Fact) -> TypeGuard[workload_events.Stopped]:
    return isinstance(fact, workload_events.Preempted) or (
        isinstance(fact, workload_events.Requeued) and why(fact.reason) is Stop.NODE_FAILURE
    )


def _standing(known: Sequence[Known], asked: _Asked, now_s: int) -> Known | None:
    """Return the decision about the attempt that has not expired; one about another submission does not count."""
    return newest(
        [
            k
            for k in known
            if isinstance(k.data, DecisionMade)
            and k.data.attempt == asked.attempt
            and (k.data.account, k.data.gpus_milli, k.data.gpu_model)
            == (asked.account, asked.gpus_milli, asked.gpu_model)
            and k.data.extends_from is None
            and (k.data.expires_at is None or seconds(k.data.expires_at) > now_s)
        ]
    )


def _decide(
    writer: Writer, cluster: str, workload: str, asked: _Asked, now_s: int, calendar: Calendar
) -> DecisionMade:
    # Where nothing is left of the protection, a hard account still needs its next slice.
    is_hard = bool(queries.hard_accounts(writer, instant(now_s)) & set(lineage(asked.account)))
    hold_s = asked.protection_s or (SLICE_S if is_hard else 0)
    reason = _unfunded(writer, cluster, asked, (now_s, now_s + hold_s), calendar)
    held = 0 if reason else asked.gpus_milli * hold_s
    return DecisionMade(
        cluster=cluster,
        workload=workload,
        attempt=asked.attempt,
        klass="unallocated" if reason else "allocated",
        account=asked.account,
        gpus_milli=asked.gpus_milli,
        gpu_model=asked.gpu_model,
        hold_gpu_ms=held,
        expires_at=instant(now_s + HOLD_EXPIRY_S),
        reason=reason or f"{asked.account} is funded: {gpu_hours(held)} GPU-hours are set aside",
        seen_seq=store.lock_book(writer, cluster).last_seq,
        org_seq=queries.sequences(writer).get(ORG_BOOK, 0),
    )


def _unfunded(
    writer: Writer, cluster: str, asked: _Asked, span: tuple[int, int], calendar: Calendar
) -> str | None:
    """Return why the attempt is not funded, or None when it is (DESIGN section 2, *funded*)."""
    if asked.minimum_runtime_s == 0:
        asks = "minimum runtime 0 asks" if asked.is_own_wish else "its mapping rule says"
        return f"{asks} to run unallocated"
    shares = queries.shares_at(writer, instant(span[0]))
    leaf = own_path(asked.account) if queries.is_inner(writer, asked.account) else asked.account
    if unshared := [node for node in lineage(leaf) if shares.get(node, share_unless_set(node)) == 0]:
        return f"{unshared[0]} has share 0, so nothing below it is funded"
    need = Need(asked.account, asked.gpus_milli, asked.gpu_model, span)
    return Purse(writer, cluster, span[0], calendar).shortfall(need)
