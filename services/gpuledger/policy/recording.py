"""The record of a cycle: journalled and queued in the outbox in one transaction, before it is published.

It names the book sequences, the configuration and the input that it was computed from, so that a replay computes the
same. Decisions to wait are many and say the same again and again: the record holds their digest, and they lie beside
it for a while.
"""

import dataclasses
import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
from msgspec.structs import replace

from gpuledger.database.engine import Writer
from gpuledger.events.budget import AllocationAmended, AllocationIssued
from gpuledger.events.envelope import Event, make
from gpuledger.events.workload import PreemptionAnnounced
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.clock import Clock, instant
from gpuledger.ledger import cycle_decisions, cycles, outbox, state, store
from gpuledger.ledger.append import append
from gpuledger.policy.cycle import Action, Cycle
from gpuledger.policy.notices import Notice, notices
from gpuledger.policy.pieces import FORM
from gpuledger.policy.publication import SOURCE, messages
from gpuledger.policy.published import as_json
from gpuledger.policy.rules import RULES
from gpuledger.policy.state import ClusterState, PolicyConfig
from gpuledger.policy.written import Written, write
from gpuledger.streams.topics import ALLOCATIONS


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """A cycle that was computed, with what it was computed from.

    Args:
        at_s: The instant that it decides for.
        issued: What is journalled of it.
        written: Every decision.
        notices: What runs are told that have to leave.
    """

    at_s: int
    issued: AllocationIssued
    written: Written
    notices: tuple[Notice, ...] = ()

    @property
    def published(self) -> dict[str, Any]:
        """The whole cycle under its published keys, made anew at each reading."""
        return {**self.issued.record, "decisions": self.written.read()}

    @classmethod
    def of(
        cls,
        state: ClusterState,
        config: PolicyConfig,
        sequences: Mapping[str, int],
        cycle: Cycle,
        *,
        every_s: int | None = None,
        form: int = FORM,
        rules: int = RULES,
    ) -> "Decided":
        """Name a computed cycle by its input: equal inputs have equal names, on any machine.

        Args:
            state: What it was told.
            config: The knobs.
            sequences: Book -> sequence that the state was read under.
            cycle: The cycle.
            every_s: The interval of cycles, where a leader runs it.
            form: In which form its decisions are digested; see ``pieces``.
            rules: Which version of the rules its record names.
        """
        digest = input_digest(state, config, sequences)
        name = cycle_id(state.cluster, state.at_s, digest)
        written = write(cycle.decisions, form=form)
        orders = tuple(decision for decision in cycle.decisions if decision.action is not Action.WAIT)
        issued = AllocationIssued(
            cluster=state.cluster,
            cycle=name,
            sequences=dict(sequences),
            config_version=config.version,
            config=config.written(),
            input_digest=digest,
            decisions_digest=written.digest,
            form=form,
            rules=rules,
            waiting=written.count - len(orders),
            every_s=every_s,
            record=dict(as_json(dataclasses.replace(cycle, decisions=orders), cycle_id=name)),
        )
        told = notices(state, config, cycle)
        return cls(at_s=state.at_s, issued=issued, written=written, notices=told)


def record(
    writer: Writer,
    decided: Decided,
    *,
    clock: Clock,
    calendar: Calendar,
    kept_s: int = cycle_decisions.KEPT_S,
) -> cycles.Recorded | None:
    """Journal a cycle and queue it for publication, unless one was recorded for its instant: return that one then.

    Whoever else would record one for the same instant waits for the book's lock, and finds this one.

    Args:
        writer: A transaction of its own; the caller commits it.
        decided: The cycle.
        clock: Stamps the row.
        calendar: The organisation's days.
        kept_s: How long decisions are kept.
    """
    issued = decided.issued
    store.lock_book(writer, issued.cluster)
    if (before := cycles.of_instant(writer, issued.cluster, decided.at_s)) is not None:
        return before
    event, _ = make(id=f"cycle/{issued.cycle}", source=SOURCE, at_s=decided.at_s, data=issued)
    told = _untold(writer, issued.cluster, decided.at_s, decided.notices)
    append(writer, issued.cluster, [event, *told], clock=clock, calendar=calendar)
    seq = store.sequence_of(writer, issued.cluster, event.digest)  # a settlement may have followed it
    for value in messages(issued, decided.at_s):
        outbox.enqueue(writer, ALLOCATIONS, issued.cluster, value)
    cycle_decisions.keep(writer, issued.cluster, seq, decided.at_s, decided.written.pieces)
    cycle_decisions.forget(writer, issued.cluster, decided.at_s - kept_s, seq)
    return None


def record_amendment(
    writer: Writer,
    fact: AllocationAmended,
    told: Sequence[Notice],
    cycles_before: Collection[str],
    *,
    at_s: int,
    clock: Clock,
    calendar: Calendar,
) -> bool:
    """Journal an amendment and queue it for publication, unless the newest word is another than it was made from.

    Args:
        writer: A transaction of its own; the caller commits it.
        fact: The amendment.
        told: What runs are told that have to leave.
        cycles_before: The ids of the cycle that it amends and of what amended that before.
        at_s: The instant that it decides for.
        clock: Stamps the row.
        calendar: The organisation's days.

    Returns:
        Whether it was recorded.
    """
    store.lock_book(writer, fact.cluster)
    word = cycles.newest_word(writer, fact.cluster, at_s=at_s)
    if word is None or word.cycles != set(cycles_before):
        return False
    event, value = make(id=f"cycle/{fact.cycle}", source=SOURCE, at_s=at_s, data=fact)
    events = [event, *_untold(writer, fact.cluster, at_s, told)]
    append(writer, fact.cluster, events, clock=clock, calendar=calendar)
    outbox.enqueue(writer, ALLOCATIONS, fact.cluster, value)
    return True


def _untold(writer: Writer, cluster: str, at_s: int, told: Sequence[Notice]) -> list[Event]:
    """Return what runs have not been told yet: each is told once, whatever later cycles repeat.

    A run that cannot go on later is told that it ends.
    """
    ids = [notice.id for notice in told]
    known = {id_ for id_, _, _ in store.known_identities(writer, cluster, ids)} if ids else set()
    new = {notice.id: notice.fact for notice in told if notice.id not in known}
    ending = state.ending(writer, cluster, [fact.workload for fact in new.values()], at_s) if new else set()
    return [
        make(id=id_, source=SOURCE, at_s=at_s, data=_ending(fact) if fact.workload in ending else fact)[0]
        for id_, fact in new.items()
    ]


def _ending(fact: PreemptionAnnounced) -> PreemptionAnnounced:
    return replace(fact, ends=True, reason=f"{fact.reason} It cannot go on later, and ends then.")


def cycle_id(cluster: str, at_s: int, digest: str) -> str:
    """Return how a cycle is named that decides for an instant on an input."""
    return f"{cluster}@{instant(at_s):%Y-%m-%dT%H:%M:%SZ}#{digest[:12]}"


def input_digest(state: ClusterState, config: PolicyConfig, sequences: Mapping[str, int]) -> str:
    """Return what names the input of a cycle.

    As of knobs, what came into states later is left out where it says what was decided by before it came: so records of
    that time are what they were.
    """
    told = {field.name: getattr(state, field.name) for field in dataclasses.fields(state)}
    largest_milli = max((host.gpus_milli for host in state.hosts if not host.draining), default=None)
    if state.largest_host_milli in (None, largest_milli):
        del told["largest_host_milli"]
    return digest_of((told, config.written(), sequences))


def digest_of(value: object) -> str:
    """Return the hex SHA-256 of a value as JSON, keys in order."""
    return hashlib.sha256(msgspec.json.encode(value, order="sorted")).hexdigest()
