"""A workload's story, from its submission to its end: what happened to it, when, and why. Pure.

One engine for the terminal, the API and the page: ``tell`` returns values, ``as_json`` gives them under published keys,
and ``policy.telling`` writes them as text. An end that nobody saw is marked as estimated.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import pairwise
from typing import Any

from gpuledger.events import workload as events
from gpuledger.events.decision import DecisionMade
from gpuledger.kernel.amounts import gpu_hours
from gpuledger.kernel.clock import iso, seconds
from gpuledger.ledger.costs import Cost, cost_of
from gpuledger.ledger.facts import STOPS, Known, winner
from gpuledger.ledger.holds import admitted
from gpuledger.ledger.mapping import DEFAULT_MINIMUM_RUNTIME_S, Rules, Understood
from gpuledger.ledger.requests import Request, asked_at, requests_of
from gpuledger.ledger.segments import History, Segment, derive
from gpuledger.ledger.superseded import Superseded, superseded
from gpuledger.policy.explain import DECIDED_EARLIER
from gpuledger.policy.happenings import AGAIN, Happening, requests_told
from gpuledger.policy.state import PolicyConfig
from gpuledger.policy.words import duration, gpus, moment


class State(StrEnum):
    """Where a workload stands."""

    NOT_ELIGIBLE = "not eligible"
    WAITS = "waits"
    RUNS = "runs"
    OVER = "over"


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """What is known of a workload at an instant.

    Args:
        at_s: The instant that it is told for.
        state: Where it stands.
        account: Who pays, or would.
        gpus_milli: What it asked for, or occupies where nobody submitted it.
        minimum_runtime_s: The shortest occupancy that makes progress; None where nobody submitted it.
        eligible_at_s: When it may first start; None where nobody submitted it.
        happenings: What happened, in order.
        cost: What is booked for it.
        open_gpu_ms: What its open run used since what is booked, physical; 0 without one.
        superseded: Facts that do not count, as others contradict them that are ranked higher.
        payers: Every account that pays for a part of it, or that it waited for: whose story it is.
    """

    cluster: str
    workload: str
    at_s: int
    state: State
    account: str
    gpus_milli: int
    minimum_runtime_s: int | None
    eligible_at_s: int | None
    happenings: tuple[Happening, ...]
    cost: Cost
    open_gpu_ms: int = 0
    superseded: tuple[Superseded, ...] = ()
    payers: frozenset[str] = frozenset()

    def as_json(self) -> dict[str, Any]:
        """Return the story under its published keys."""
        cost = {
            "charged": self.cost.charged_gpu_ms,
            "unallocated": self.cost.unallocated_gpu_ms,
            "credited": self.cost.credited_gpu_ms,
            "not_booked_yet": self.open_gpu_ms,
        }
        return {
            "cluster": self.cluster,
            "workload": self.workload,
            "at": moment(self.at_s),
            "state": self.state.value,
            "account": self.account,
            "gpus_milli": self.gpus_milli,
            "minimum_runtime_s": self.minimum_runtime_s,
            "events": [happening.as_json() for happening in self.happenings],
            "superseded": [one.as_json() for one in self.superseded],
            "cost": {f"{name}_gpu_ms": amount for name, amount in cost.items()}
            | {f"{name}_gpu_hours": str(gpu_hours(amount)) for name, amount in cost.items()},
        }


@dataclass(frozen=True, slots=True)
class Told:
    """What a story is told from.

    Args:
        known: Every fact up to the instant.
        rules: The mapping that the book reads them by.
        ticked_s: Where the book's clock stands; None before its first tick.
        preempted_for: Run -> why the policy told it to leave, where a recorded cycle says so.
        restores: Digest of a checkpoint -> what its user needs to go on from it.
    """

    known: Sequence[Known]
    rules: Rules
    ticked_s: int | None = None
    preempted_for: Mapping[str, str] = field(default_factory=dict)
    restores: Mapping[bytes, str] = field(default_factory=dict)


def tell(cluster: str, workload: str, at_s: int, told: Told, config: PolicyConfig) -> Story:
    """Tell the story of a workload as it was known at an instant, by effective time.

    Args:
        cluster: The cluster.
        workload: The workload.
        at_s: The instant.
        told: What is known.
        config: The knobs; the protection cap of runs that nobody admitted.
    """
    lost = superseded(told.known)
    void = {id(one.fact) for one in lost if one.of is None}
    requests = requests_of((fact for fact in told.known if id(fact) not in void), told.rules)
    asked = asked_at(requests, at_s)
    history = derive(told.known, told.rules)
    found = [
        *requests_told(requests, history),
        *_decisions(told.known),
        *_runs(history, requests, told, config),
        *_notices(told.known),
        *_marks(told, history),
        *_credits(history),
    ]
    cost, open_gpu_ms = cost_of(history, at_s, told.ticked_s)
    payers = [s.account for s in history.segments] + [w.account for w in history.waits if w.to_s is None]
    account = payers[-1] if payers else asked.meaning.account if asked else ""
    return Story(
        cluster=cluster,
        workload=workload,
        at_s=at_s,
        state=_state(history, at_s),
        account=account,
        gpus_milli=asked.asked.gpus_milli
        if asked
        else max((s.gpus_milli for s in history.segments), default=0),
        minimum_runtime_s=asked.minimum_runtime_s if asked else None,
        eligible_at_s=min((wait.from_s for wait in history.waits), default=None),
        happenings=tuple(sorted(found, key=lambda one: (one.at_s, one.what == AGAIN))),
        cost=cost,
        open_gpu_ms=open_gpu_ms,
        superseded=lost,
        payers=frozenset({account, *history.accounts}),
    )


def preempted_runs(known: Iterable[Known]) -> list[tuple[str, int]]:
    """Return (run, when) of every run that the system preempted."""
    return [
        (k.data.run, k.at_s) for k in known if isinstance(k.data, events.Preempted) and k.data.run is not None
    ]


def _state(history: History, at_s: int) -> State:
    if any(segment.to_s is None for segment in history.segments):
        return State.RUNS
    waits = [wait for wait in history.waits if wait.to_s is None]
    if not waits:
        return State.OVER
    return State.WAITS if min(wait.from_s for wait in waits) <= at_s else State.NOT_ELIGIBLE


def _decisions(known: Iterable[Known]) -> Iterable[Happening]:
    for fact in known:
        data = fact.data
        if not isinstance(data, DecisionMade):
            continue
        if data.extends_from is not None:
            kept = data.klass == "allocated"
            text = (
                f"Its next slice from {moment(seconds(data.extends_from))} on is set aside: {data.reason}."
                if kept
                else f"Goes on unallocated from {moment(seconds(data.extends_from))} on: {data.reason}."
            )
            yield Happening(at_s=fact.at_s, what="renewed" if kept else "not renewed", text=text)
        elif data.klass == "allocated":
            expiry = f", for a start before {iso(data.expires_at)}" if data.expires_at else ""
            text = f"Admitted, attempt {data.attempt}: {data.reason}{expiry}."
            yield Happening(at_s=fact.at_s, what="admitted", text=text)
        else:
            text = f"Not funded, attempt {data.attempt}, so it may run unallocated: {data.reason}."
            yield Happening(at_s=fact.at_s, what="not funded", text=text)


def _runs(
    history: History, requests: Sequence[Request], told: Told, config: PolicyConfig
) -> Iterable[Happening]:
    stops: dict[str | None, list[Known]] = {}
    for fact in told.known:
        if isinstance(fact.data, STOPS):
            stops.setdefault(fact.data.run, []).append(fact)
    by_run: dict[str, list[Segment]] = {}
    for segment in sorted(history.segments, key=lambda s: s.from_s):
        by_run.setdefault(segment.run, []).append(segment)
    for run, segments in by_run.items():
        first = segments[0]
        protection = _protection(first, asked_at(requests, first.from_s), told.known, config)
        where = f" on {_hosts(first.hosts)}" if first.hosts else ""
        text = f"Started{where} with {gpus(first.gpus_milli)}, {first.klass}{protection}."
        yield Happening(at_s=first.from_s, what="started", text=text, run=run)
        yield from _changes(run, segments, told.known)
        yield from _stop(run, segments[-1], stops.get(run, ()), told)
    if not history.segments:
        for fact in stops.get(None, ()):
            text = f"Over before it started: {getattr(fact.data, 'reason', '')}."
            yield Happening(at_s=fact.at_s, what="ended", text=text)


def _protection(
    first: Segment, asked: Understood | None, known: Iterable[Known], config: PolicyConfig
) -> str:
    if first.klass == "unallocated":
        return ", uncharged and preemptible from the outset"
    starts = [k for k in known if isinstance(k.data, events.Started) and k.data.run == first.run]
    attempts = {k.data.attempt for k in starts if isinstance(k.data, events.Started)}
    decisions = [k for k in known if isinstance(k.data, DecisionMade) and k.data.attempt in attempts]
    decision = admitted(decisions, first.from_s)
    if decision is not None:
        return f", protected until {moment(first.from_s + decision.hold_s)}"
    minimum_s = asked.minimum_runtime_s if asked else DEFAULT_MINIMUM_RUNTIME_S  # as the policy reads it
    protected_s = config.protected_s(minimum_s)
    if not protected_s:
        return ", without protection"
    return (
        f", protected until {moment(first.from_s + protected_s)} by its minimum runtime (nobody admitted it)"
    )


def _notices(known: Iterable[Known]) -> Iterable[Happening]:
    """Tell what a run was told: that it has to leave, or may have to."""
    for fact in known:
        data = fact.data
        if isinstance(data, events.PreemptionAnnounced):
            what = "preemption foreseen" if data.foreseen else "preemption announced"
            text = f"{data.reason} Its GPUs are expected back at {iso(data.leaves_at)}."
            yield Happening(at_s=fact.at_s, what=what, text=text, run=data.run)


def _changes(run: str, segments: Sequence[Segment], known: Iterable[Known]) -> Iterable[Happening]:
    reasons = {
        k.at_s: k.data.reason for k in known if isinstance(k.data, events.ClassChanged) and k.data.run == run
    }
    for before, after in pairwise(segments):
        if after.klass != before.klass:
            because = f": {reasons[after.from_s]}" if after.from_s in reasons else ""
            free = "uncharged and preemptible" if after.klass == "unallocated" else "charged"
            text = f"Runs {after.klass} from here on, {free}{because}."
            yield Happening(at_s=after.from_s, what="class changed", text=text, run=run)
        if after.gpus_milli != before.gpus_milli:
            text = f"Resized from {gpus(before.gpus_milli)} to {gpus(after.gpus_milli)}."
            yield Happening(at_s=after.from_s, what="resized", text=text, run=run)
        if after.account != before.account:
            text = f"Paid by {after.account} from here on."
            yield Happening(at_s=after.from_s, what="account changed", text=text, run=run)


def _stop(run: str, last: Segment, claimed: Sequence[Known], told: Told) -> Iterable[Happening]:
    counts = winner(list(claimed))
    if last.to_s is None:
        return
    if counts is None:
        text = "Ended at the last evidence of life: nobody said when it did."
        yield Happening(at_s=last.to_s, what="ended", text=text, run=run, is_estimated=True)
        return
    stop = counts.data
    assert isinstance(stop, STOPS)  # noqa: S101 - only those were gathered
    ran = f"after {duration(last.to_s - told_start(run, told.known, last))}"
    code = f", exit {stop.exit}" if stop.exit else ""
    if isinstance(stop, events.Preempted):
        why = (
            _compared(told.preempted_for[run], run, told.known)
            if run in told.preempted_for
            else f"the reason given is {stop.reason!r}; no recorded cycle told it to leave"
        )
        text, what = f"Preempted {ran}: {why}", "preempted"
    elif isinstance(stop, events.Requeued):
        text, what = f"Requeued {ran}: {stop.reason}.", "requeued"
    else:
        text, what = f"Ended {ran}: {stop.reason}{code}.", "ended"
    if not text.endswith("."):
        text += "."
    yield Happening(at_s=last.to_s, what=what, text=text, run=run, is_estimated=last.estimated)


def _compared(why: str, run: str, known: Iterable[Known]) -> str:
    """Return an order with the comparison that decided: of one that was only repeated the announcement has it."""
    for_whom = why.removesuffix(DECIDED_EARLIER)
    announced = [
        (fact.at_s, fact.data.reason)
        for fact in known
        if isinstance(fact.data, events.PreemptionAnnounced)
        and (fact.data.run, fact.data.foreseen) == (run, False)
        and fact.data.reason.startswith(for_whom)
    ]
    return max(announced)[1] if announced and for_whom != why else why


def told_start(run: str, known: Iterable[Known], last: Segment) -> int:
    """Return when a run started; where nobody said, when its last segment began."""
    starts = [k for k in known if isinstance(k.data, events.Started) and k.data.run == run]
    counts = winner(starts)
    return last.from_s if counts is None else counts.at_s


def _marks(told: Told, history: History) -> Iterable[Happening]:
    """Tell of suspensions, the first work, and the last checkpoint of each run."""
    runs = {segment.run for segment in history.segments}
    saved: dict[str, int] = {}
    restore: dict[str, tuple[int, str]] = {}
    for fact in told.known:
        data = fact.data
        if not isinstance(data, events.RunFact) or data.run not in runs:
            continue
        if isinstance(data, events.Checkpointed):
            saved[data.run] = max(fact.at_s, saved.get(data.run, fact.at_s))
            if fact.digest in told.restores:
                found = (fact.at_s, told.restores[fact.digest])
                restore[data.run] = max(found, restore.get(data.run, found))
        elif isinstance(data, events.Suspended):
            text = "Suspended; its GPUs stay occupied and charged."
            yield Happening(at_s=fact.at_s, what="suspended", text=text, run=data.run)
        elif isinstance(data, events.Resumed):
            yield Happening(at_s=fact.at_s, what="resumed", text="Goes on.", run=data.run)
        elif isinstance(data, events.Ready):
            text = "Has loaded what it needs, and begins its work."
            yield Happening(at_s=fact.at_s, what="ready", text=text, run=data.run)
    for run, at_s in saved.items():
        text = "Saved its work, for the last time so far."
        if run in restore:
            from_s, how = restore[run]
            text += f" To go on from {'it' if from_s == at_s else moment(from_s)}: {how}"
        yield Happening(at_s=at_s, what="checkpointed", text=text, run=run)


def _credits(history: History) -> Iterable[Happening]:
    for credit in history.credits:
        text = (
            f"Given back: what was charged from {moment(credit.from_s)} to {moment(credit.to_s)}, "
            f"for the hardware failure {credit.incident}."
        )
        yield Happening(at_s=credit.to_s, what="credited", text=text, run=credit.run)


def _hosts(hosts: Sequence[str]) -> str:
    names = sorted(set(hosts))
    shown = 4
    more = f" and {len(names) - shown} more" if len(names) > shown else ""
    return ("host " if len(names) == 1 else f"{len(names)} hosts: ") + ", ".join(names[:shown]) + more
