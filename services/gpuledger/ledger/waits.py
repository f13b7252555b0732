"""When a workload was eligible to run and did not: from what it asked for, and when its runs started and stopped. Pure.

It waits from when it is eligible until a run starts, and again after a run that was preempted or requeued, until the
next or until it is over. Where what it asks for changes a wait is cut: what waits on is the same request, which began
to wait when it did.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

import msgspec
from msgspec.structs import replace

from gpuledger.events import workload as events
from gpuledger.kernel.clock import seconds
from gpuledger.ledger.facts import Known, winner
from gpuledger.ledger.mapping import Understood
from gpuledger.ledger.requests import Request


class Wait(msgspec.Struct, frozen=True, order=True, gc=False, cache_hash=True):
    """A workload eligible and not running over ``[from_s, to_s)``; ``to_s`` is None while it waits.

    ``began_s`` is set where it waited before: since then, and what it asks for was changed.
    """

    workload: str
    from_s: int
    to_s: int | None
    account: str
    gpus_milli: int
    gpu_model: str | None
    minimum_runtime_s: int
    priority: int
    submitted_s: int
    began_s: int | None = None


class Ran(Protocol):
    """A run: the start and the stop that count."""

    @property
    def started(self) -> Known:
        """Its start."""
        ...

    @property
    def stop(self) -> Known | None:
        """What ended it; None while it goes on."""
        ...


class _Span(NamedTuple):
    """From when to when nothing runs; ``is_first`` before the first run."""

    from_s: int
    to_s: int | None
    is_first: bool


def waits(
    over: Known | None,
    asked: Understood,
    anew: Sequence[tuple[int, int]],
    runs: Sequence[Ran],
    told: Sequence[Request] = (),
) -> list[Wait]:
    """Return the waits of a workload, in order.

    Args:
        over: What ended the workload; None while it is not over.
        asked: What was submitted.
        anew: When it was submitted anew, in order, and when it could first start then.
        runs: Its runs, in order of their starts.
        told: What it asked for as time went by; nothing where nothing was changed.
    """
    if anew:
        anew = [submitted for submitted in anew if submitted[0] > asked.at_s]
    spans: list[tuple[int, int | None, bool]] = []
    eligible_s = _eligible_s(asked.asked, asked.at_s)
    # An update may say that it could start earlier.
    waiting_from: int | None = min(eligible_s, asked.at_s) if told else eligible_s
    for run in runs:
        if waiting_from is not None:
            spans.append((waiting_from, run.started.at_s, run is runs[0]))
        waiting_from = _waiting_again(run, anew)
    if waiting_from is not None:
        spans.append((waiting_from, over.at_s if over else None, not runs))
    if told:
        return [wait for span in spans for wait in _cut(_Span(*span), told)]
    return [_wait(asked, from_s, to_s) for from_s, to_s, _ in spans if _is_one(asked, from_s, to_s)]


def whole_waits(found: Sequence[Wait]) -> list[tuple[int, int | None]]:
    """Return from when to when requests waited: what was cut where something changed is one wait."""
    spans: list[tuple[int, int | None]] = []
    for wait in found:
        if wait.began_s is not None and spans:
            spans[-1] = (spans[-1][0], wait.to_s)
        else:
            spans.append((wait.from_s, wait.to_s))
    return spans


def again(submissions: Sequence[Known]) -> Sequence[tuple[int, int]]:
    """Return when records say that the workload was submitted anew, in order, and when it could first start then."""
    if len(submissions) <= 1:
        return ()
    first_s = min(known.at_s for known in submissions)
    by_instant: dict[int, list[Known]] = {}
    for known in submissions:
        if known.at_s > first_s and getattr(known.data, "version", None) is not None:
            by_instant.setdefault(known.at_s, []).append(known)
    found = []
    for at_s, candidates in sorted(by_instant.items()):
        counts = winner(candidates)
        assert counts is not None  # noqa: S101 - there is one at least
        assert isinstance(counts.data, events.Submitted)  # noqa: S101 - narrows the type
        found.append((at_s, _eligible_s(counts.data, at_s)))
    return found


def _cut(span: _Span, told: Sequence[Request]) -> Iterator[Wait]:
    """Yield the waits of a span: one for each stretch of time in which the same is asked for, and it may start."""
    current: Wait | None = None
    for number, request in enumerate(told):
        asked = request.understood
        ends = [told[number + 1].from_s] if number + 1 < len(told) else []
        if span.to_s is not None:
            ends.append(span.to_s)
        starts = [span.from_s] if number == 0 else [span.from_s, request.from_s]
        if request.eligible_s is not None:
            starts.append(request.eligible_s)
        elif span.is_first:
            starts.append(_eligible_s(asked.asked, asked.at_s))
        from_s, to_s = max(starts), min(ends) if ends else None
        if not _is_one(asked, from_s, to_s):
            continue
        wait = _wait(asked, from_s, to_s)
        if current is not None and current.to_s == from_s:
            if _asks(current) == _asks(wait):
                current = replace(current, to_s=to_s)
                continue
            wait = replace(wait, began_s=current.from_s if current.began_s is None else current.began_s)
        if current is not None:
            yield current
        current = wait
    if current is not None:
        yield current


def _asks(wait: Wait) -> tuple[object, ...]:
    return wait.account, wait.gpus_milli, wait.gpu_model, wait.minimum_runtime_s, wait.priority


def _wait(asked: Understood, from_s: int, to_s: int | None) -> Wait:
    return Wait(
        workload=asked.asked.workload,
        from_s=from_s,
        to_s=to_s,
        account=asked.meaning.account,
        gpus_milli=asked.asked.gpus_milli,
        gpu_model=asked.asked.gpu_model,
        minimum_runtime_s=asked.minimum_runtime_s,
        priority=asked.asked.priority or 0,
        submitted_s=asked.at_s,
    )


def _is_one(asked: Understood, from_s: int, to_s: int | None) -> bool:
    return asked.asked.gpus_milli > 0 and (to_s is None or to_s > from_s)


def _waiting_again(run: Ran, anew: Sequence[tuple[int, int]]) -> int | None:
    """Return from when the workload waits for its next run; None while it runs, and when it is done."""
    stop = run.stop
    if stop is None:
        return None
    # A run that stopped before it started gave nothing back before its start.
    for at_s, eligible_s in anew:
        if at_s >= stop.at_s:
            return max(run.started.at_s, at_s, eligible_s)
    return None if isinstance(stop.data, events.Ended) else max(run.started.at_s, stop.at_s)


def _eligible_s(asked: events.Submitted, submitted_s: int) -> int:
    return seconds(asked.eligible_at) if asked.eligible_at else submitted_s
