"""Facts about a workload -> its segments and waits. Pure, total, and blind to order of arrival.

A segment is the longest interval of a run with constant GPUs, account, class and hosts. A wait is an
interval in which the workload was eligible to run and did not. Both follow from the *set* of facts:
the start that counts, the stop that counts, and the changes between them.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from gpuledger.events import workload as events
from gpuledger.events.decision import DecisionMade
from gpuledger.events.incident import CreditGranted, CreditReversed
from gpuledger.kernel.clock import seconds
from gpuledger.ledger.credits import Credit, credit
from gpuledger.ledger.facts import STOPS, Known, winner
from gpuledger.ledger.holds import Hold, Span, admitted, holds

UNMAPPED = "unmapped/unknown"
"""The visible account of runs that nothing says an owner of (law 7)."""

NOBODY = "-"
"""The user of runs whose source names none."""

DEFAULT_MINIMUM_RUNTIME_S = 3600
"""Minimum runtime of the built-in mapping rule, for sources that have none."""


@dataclass(frozen=True, slots=True, order=True)
class Segment:
    """GPUs held by one run over ``[from_s, to_s)``; ``to_s`` is None while the run is open.

    ``capped_s`` is set on open segments only: the declared limit, beyond which nothing is charged.
    """

    workload: str
    run: str
    from_s: int
    to_s: int | None
    account: str
    klass: str
    user: str
    gpus_milli: int
    gpu_model: str | None
    hosts: tuple[str, ...]
    estimated: bool
    capped_s: int | None = None

    def until_s(self, now_s: int) -> int:
        """Return where the segment ends as seen at an instant; an open one goes on to its cap at most."""
        if self.to_s is not None:
            return self.to_s
        return now_s if self.capped_s is None else min(now_s, self.capped_s)


@dataclass(frozen=True, slots=True, order=True)
class Wait:
    """A workload eligible and not running over ``[from_s, to_s)``; ``to_s`` is None while it waits."""

    workload: str
    from_s: int
    to_s: int | None
    account: str
    gpus_milli: int
    gpu_model: str | None
    minimum_runtime_s: int
    priority: int
    submitted_s: int


@dataclass(frozen=True, slots=True)
class History:
    """All that follows from the facts known of one workload."""

    segments: tuple[Segment, ...]
    waits: tuple[Wait, ...]
    holds: tuple[Hold, ...] = ()
    credits: tuple[Credit, ...] = ()
    is_admitted: bool = False
    """Whether some admission decided about it: only then it has, or had, holds."""


@dataclass(frozen=True, slots=True)
class _Run:
    start: events.Started
    started: Known
    stop: Known | None
    changes: tuple[Known, ...]
    claims: "_Claims"

    @property
    def end_s(self) -> int | None:
        """When it stopped; None while it goes on."""
        return self.stop.at_s if self.stop else None


def derive(facts: Sequence[Known]) -> History:
    """Return the segments, waits, holds and credits that follow from all facts known of one workload.

    A run without a start has no segment yet; one that stopped before it started holds nothing and
    is charged nothing. The result depends on the set of facts only.
    """
    found = _sort_out(facts)
    submitted = winner(found.submitted)
    runs = [run for _, claims in sorted(found.runs.items()) if (run := _run(claims)) is not None]
    runs.sort(
        key=lambda run: run.started.at_s
    )  # of runs that start together the one named last is the newest
    segments = tuple(s for run in runs for s in _segments(run, submitted, found.decisions))
    return History(
        segments=segments,
        waits=tuple(_waits(found.over, submitted, runs)),
        holds=_holds(found, runs) if found.decisions else (),
        credits=tuple(c for run in runs if run.claims.credits for c in _credits(run)),
        is_admitted=bool(found.decisions),
    )


@dataclass(frozen=True, slots=True)
class _Claims:
    """All that is claimed of one run, contradictions included."""

    started: list[Known] = field(default_factory=list)
    stops: list[Known] = field(default_factory=list)
    changes: list[Known] = field(default_factory=list)
    checkpoints: list[Known] = field(default_factory=list)
    credits: list[Known] = field(default_factory=list)

    def add(self, fact: Known) -> None:
        """Put a fact where it belongs; what says nothing about GPUs held belongs nowhere."""
        data = fact.data
        if isinstance(data, events.Started):
            self.started.append(fact)
        elif isinstance(data, STOPS):
            self.stops.append(fact)
        elif isinstance(data, events.Resized | events.ClassChanged):
            self.changes.append(fact)
        elif isinstance(data, events.Checkpointed):
            self.checkpoints.append(fact)
        elif isinstance(data, CreditGranted | CreditReversed):
            self.credits.append(fact)


class _Found(NamedTuple):
    """The facts of one workload by what they speak of."""

    submitted: list[Known]
    over: list[Known]
    runs: dict[str, _Claims]
    decisions: dict[int, list[Known]]


def _sort_out(facts: Iterable[Known]) -> _Found:
    found = _Found([], [], {}, {})
    for fact in facts:
        data = fact.data
        if isinstance(data, events.Submitted):
            found.submitted.append(fact)
        elif (run := getattr(data, "run", None)) is not None:
            claims = found.runs.get(run)
            if claims is None:
                claims = found.runs[run] = _Claims()
            claims.add(fact)
        elif isinstance(data, events.Ended):
            found.over.append(fact)
        elif isinstance(data, DecisionMade):
            found.decisions.setdefault(data.attempt, []).append(fact)
    return found


def _run(claims: _Claims) -> _Run | None:
    started = winner(claims.started)
    if started is None:
        return None
    assert isinstance(started.data, events.Started)  # noqa: S101 - narrows the type; _sort_out chose it
    by_instant: dict[tuple[int, type], list[Known]] = {}
    for fact in claims.changes:
        by_instant.setdefault((fact.at_s, type(fact.data)), []).append(fact)
    changes = [w for candidates in by_instant.values() if (w := winner(candidates)) is not None]
    changes.sort(key=lambda f: (f.at_s, type(f.data).__name__))
    return _Run(started.data, started, winner(claims.stops), tuple(changes), claims)


def _holds(found: _Found, runs: Sequence[_Run]) -> tuple[Hold, ...]:
    spans: dict[int, Span] = {}
    for (
        run
    ) in runs:  # of two runs that call themselves the same attempt the first is the one that was admitted
        spans.setdefault(run.start.attempt, Span(run.start.run, run.started.at_s, run.end_s))
    return holds(found.decisions, spans, is_over=bool(found.over))


def _credits(run: _Run) -> Iterable[Credit]:
    if run.end_s is not None:
        given = credit(run.claims.credits, run.claims.checkpoints, run.started.at_s, run.end_s)
        if given is not None:
            yield given


def _segments(run: _Run, submitted: Known | None, decisions: Mapping[int, Sequence[Known]]) -> list[Segment]:
    start, asked = run.start, submitted.data if submitted else None
    assert asked is None or isinstance(asked, events.Submitted)  # noqa: S101
    end_s = run.end_s
    limit_s = asked.time_limit_s if asked else None
    decision = admitted(decisions.get(start.attempt, ()), run.started.at_s) if decisions else None
    current = Segment(
        workload=start.workload,
        run=start.run,
        from_s=run.started.at_s,
        to_s=end_s,
        account=start.account or (asked.account if asked else UNMAPPED),
        klass=decision.klass if decision else start.klass or _mapped_class(asked),
        user=start.user or (asked.user if asked else NOBODY),
        gpus_milli=start.gpus_milli,
        gpu_model=start.gpu_model or (asked.gpu_model if asked else None),
        hosts=tuple(sorted(start.hosts)),
        estimated=bool(run.stop and getattr(run.stop.data, "estimated", False)),
        capped_s=run.started.at_s + limit_s if limit_s and end_s is None else None,
    )
    pieces: list[Segment] = []
    for change in run.changes:
        if end_s is not None and change.at_s >= end_s:
            break
        changed = _changed(current, change)
        if changed == current:
            continue
        if change.at_s > current.from_s:
            pieces.append(replace(current, to_s=change.at_s, capped_s=None))
            changed = replace(changed, from_s=change.at_s)
        current = changed
    pieces.append(current)
    return [p for p in pieces if p.gpus_milli > 0 and (p.to_s is None or p.to_s > p.from_s)]


def _changed(segment: Segment, change: Known) -> Segment:
    if isinstance(change.data, events.Resized):
        hosts = tuple(sorted(change.data.hosts))
        return replace(segment, gpus_milli=change.data.gpus_milli, hosts=hosts)
    assert isinstance(change.data, events.ClassChanged)  # noqa: S101 - the only other kind of change
    return replace(segment, klass=change.data.klass)


def _mapped_class(asked: events.Submitted | None) -> str:
    """Minimum runtime 0 is how a user asks to run unallocated; the built-in rule says allocated."""
    return "unallocated" if asked is not None and asked.minimum_runtime_s == 0 else "allocated"


def _waits(ended: Sequence[Known], submitted: Known | None, runs: Sequence[_Run]) -> list[Wait]:
    if submitted is None:
        return []
    asked = submitted.data
    assert isinstance(asked, events.Submitted)  # noqa: S101 - derive chose it
    eligible_s = seconds(asked.eligible_at) if asked.eligible_at else submitted.at_s
    over = winner(ended)
    spans: list[tuple[int, int | None]] = []
    waiting_from: int | None = eligible_s
    for run in runs:
        if waiting_from is not None:
            spans.append((waiting_from, run.started.at_s))
        stopped = run.stop is not None and not isinstance(run.stop.data, events.Ended)
        # A run that stopped before it started gave nothing back before its start.
        waiting_from = max(run.started.at_s, run.stop.at_s) if run.stop and stopped else None
    if waiting_from is not None:
        spans.append((waiting_from, over.at_s if over else None))
    minimum = asked.minimum_runtime_s
    return [
        Wait(
            workload=asked.workload,
            from_s=from_s,
            to_s=to_s,
            account=asked.account,
            gpus_milli=asked.gpus_milli,
            gpu_model=asked.gpu_model,
            minimum_runtime_s=DEFAULT_MINIMUM_RUNTIME_S if minimum is None else minimum,
            priority=asked.priority or 0,
            submitted_s=submitted.at_s,
        )
        for from_s, to_s in spans
        if asked.gpus_milli > 0 and (to_s is None or to_s > from_s)
    ]
