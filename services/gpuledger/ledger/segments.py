"""Facts about a workload -> its segments and waits. Pure, total, and blind to order of arrival.

A segment is the longest interval of a run with constant GPUs, account, class and hosts. A wait is an
interval in which the workload was eligible to run and did not. Both follow from the *set* of facts:
the start that counts, the stop that counts, and the changes between them.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from gpuledger.events import workload as events
from gpuledger.kernel.clock import seconds
from gpuledger.ledger.facts import STOPS, Known, winner

UNMAPPED = "unmapped/unknown"
"""The visible account of runs that nothing says an owner of (law 7)."""

NOBODY = "-"
"""The user of runs whose source names none."""

DEFAULT_MINIMUM_RUNTIME_S = 3600
"""Minimum runtime of the built-in mapping rule, for sources that have none."""


@dataclass(frozen=True, slots=True, order=True)
class Segment:
    """GPUs held by one run over ``[from_s, to_s)``; ``to_s`` is None while the run is open."""

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


@dataclass(frozen=True, slots=True)
class _Run:
    started: Known
    stop: Known | None
    changes: tuple[Known, ...]


def derive(facts: Sequence[Known]) -> History:
    """Return the segments and waits that follow from all facts known of one workload.

    A run without a start has no segment yet; one that stopped before it started holds nothing and
    is charged nothing. The result depends on the set of facts only.
    """
    found = _sort_out(facts)
    submitted = winner(found.submitted)
    runs = [run for _, claims in sorted(found.runs.items()) if (run := _run(claims)) is not None]
    runs.sort(
        key=lambda run: run.started.at_s
    )  # of runs that start together the one named last is the newest
    segments = tuple(s for run in runs for s in _segments(run, submitted))
    return History(segments=segments, waits=tuple(_waits(found.over, submitted, runs)))


class _Claims(NamedTuple):
    """All that is claimed of one run, contradictions included."""

    started: list[Known]
    stops: list[Known]
    changes: list[Known]


class _Found(NamedTuple):
    """The facts of one workload by what they speak of."""

    submitted: list[Known]
    over: list[Known]
    runs: dict[str, _Claims]


def _sort_out(facts: Iterable[Known]) -> _Found:
    found = _Found([], [], {})
    for fact in facts:
        data = fact.data
        if isinstance(data, events.Submitted):
            found.submitted.append(fact)
            continue
        run = getattr(data, "run", None)
        if run is None:
            if isinstance(data, events.Ended):
                found.over.append(fact)
            continue
        claims = found.runs.get(run)
        if claims is None:
            claims = found.runs[run] = _Claims([], [], [])
        if isinstance(data, events.Started):
            claims.started.append(fact)
        elif isinstance(data, STOPS):
            claims.stops.append(fact)
        elif isinstance(data, events.Resized | events.ClassChanged):
            claims.changes.append(fact)
    return found


def _run(claims: _Claims) -> _Run | None:
    started = winner(claims.started)
    if started is None:
        return None
    by_instant: dict[tuple[int, type], list[Known]] = {}
    for fact in claims.changes:
        by_instant.setdefault((fact.at_s, type(fact.data)), []).append(fact)
    changes = [w for candidates in by_instant.values() if (w := winner(candidates)) is not None]
    changes.sort(key=lambda f: (f.at_s, type(f.data).__name__))
    return _Run(started, winner(claims.stops), tuple(changes))


def _segments(run: _Run, submitted: Known | None) -> list[Segment]:
    start, asked = run.started.data, submitted.data if submitted else None
    assert isinstance(start, events.Started)  # noqa: S101 - narrows the type; _run chose it
    assert asked is None or isinstance(asked, events.Submitted)  # noqa: S101
    end_s = run.stop.at_s if run.stop else None
    current = Segment(
        workload=start.workload,
        run=start.run,
        from_s=run.started.at_s,
        to_s=end_s,
        account=start.account or (asked.account if asked else UNMAPPED),
        klass=start.klass or _mapped_class(asked),
        user=start.user or (asked.user if asked else NOBODY),
        gpus_milli=start.gpus_milli,
        gpu_model=start.gpu_model or (asked.gpu_model if asked else None),
        hosts=tuple(sorted(start.hosts)),
        estimated=bool(run.stop and getattr(run.stop.data, "estimated", False)),
    )
    pieces: list[Segment] = []
    for change in run.changes:
        if end_s is not None and change.at_s >= end_s:
            break
        changed = _changed(current, change)
        if changed == current:
            continue
        if change.at_s > current.from_s:
            pieces.append(replace(current, to_s=change.at_s))
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
