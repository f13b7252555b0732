"""What admissions have set aside for a workload: the windows of its runs that are paid from a hold. Pure.

A hold is a window of time: GPUs that are set aside from the start of an attempt for its protected time, or for
the next slice of a run that goes on. Charges inside a window drain the hold, those outside come from the budget;
what is left of a window when the run stops goes back. An attempt that did not start yet holds its GPUs from the
decision on, until the hold expires or the workload is over.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from gpuledger.events.decision import DecisionMade
from gpuledger.kernel.clock import seconds
from gpuledger.ledger.facts import Known, winner


@dataclass(frozen=True, slots=True, order=True)
class Hold:
    """GPU-time set aside for one attempt over ``[from_s, to_s)``.

    Args:
        workload: The workload.
        attempt: Which start of it.
        from_s: The run's start, where the slice begins, or the decision while nothing has started.
        to_s: Where the window ends; the run's end when that is earlier.
        account: The leaf that pays while nothing has started.
        gpus_milli: GPUs set aside while nothing has started; a run that has holds what it occupies.
        gpu_model: Their model.
        run: The run that drains it; None while nothing has started.
        expires_s: A start at or after this finds no hold.
    """

    workload: str
    attempt: int
    from_s: int
    to_s: int
    account: str
    gpus_milli: int
    gpu_model: str | None
    run: str | None
    expires_s: int | None

    @property
    def mark(self) -> str:
        """What stands for the attempt where postings name a run."""
        return f"#{self.attempt}"


class Span(NamedTuple):
    """When an attempt ran; ``to_s`` is None while it goes on."""

    run: str
    from_s: int
    to_s: int | None


def admitted(decisions: Iterable[Known], started_s: int | None) -> DecisionMade | None:
    """Return the admission that counts for an attempt: the newest that had not expired when it started."""
    valid = [known for known in decisions if _is_admission(known, started_s)]
    counts = winner(valid)
    if counts is None:
        return None
    assert isinstance(counts.data, DecisionMade)  # noqa: S101 - narrows the type
    return counts.data


def _is_admission(known: Known, started_s: int | None) -> bool:
    data = known.data
    assert isinstance(data, DecisionMade)  # noqa: S101 - the caller sorted facts by type
    if data.extends_from is not None:
        return False
    return started_s is None or data.expires_at is None or started_s < seconds(data.expires_at)


def holds(
    decisions: Mapping[int, Sequence[Known]], spans: Mapping[int, Span], *, is_over: bool
) -> tuple[Hold, ...]:
    """Return the windows that are set aside, by attempt and time; windows of one run never overlap.

    Args:
        decisions: Attempt -> every decision about it.
        spans: Attempt -> its run, of those that started.
        is_over: Whether the workload ended without another run to come.
    """
    found: list[Hold] = []
    for attempt, known in sorted(decisions.items()):
        span = spans.get(attempt)
        if span is not None:
            found += _drained(known, span)
        elif not is_over:
            found += _pending(known)
    return tuple(found)


def _pending(decisions: Sequence[Known]) -> list[Hold]:
    counts = winner([known for known in decisions if _is_admission(known, None)])
    if counts is None:
        return []
    window = _window(counts, counts.at_s)
    return [window] if window.to_s > window.from_s else []


def _drained(decisions: Sequence[Known], span: Span) -> list[Hold]:
    windows = []
    counts = winner([known for known in decisions if _is_admission(known, span.from_s)])
    if counts is not None:
        windows.append(_window(counts, span.from_s))
    for known in decisions:
        data = known.data
        assert isinstance(data, DecisionMade)  # noqa: S101 - the caller sorted facts by type
        if data.extends_from is not None:
            windows.append(_window(known, max(seconds(data.extends_from), span.from_s)))
    found: list[Hold] = []
    free_s = span.from_s
    for window in sorted(windows, key=lambda w: (w.from_s, w.to_s)):
        to_s = window.to_s if span.to_s is None else min(window.to_s, span.to_s)
        from_s = max(window.from_s, free_s)
        if to_s > from_s:
            found.append(replace(window, run=span.run, from_s=from_s, to_s=to_s))
            free_s = to_s
    return found


def _window(known: Known, from_s: int) -> Hold:
    data = known.data
    assert isinstance(data, DecisionMade)  # noqa: S101 - the caller sorted facts by type
    return Hold(
        workload=data.workload,
        attempt=data.attempt,
        from_s=from_s,
        to_s=from_s + data.hold_s,
        account=data.account,
        gpus_milli=data.gpus_milli,
        gpu_model=data.gpu_model,
        run=None,
        expires_s=seconds(data.expires_at) if data.expires_at else None,
    )
