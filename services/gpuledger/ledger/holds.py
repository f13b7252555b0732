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
from gpuledger.kernel.accounts import owner_of
from gpuledger.kernel.clock import seconds
from gpuledger.ledger.facts import Known, rank


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


SKEW_S = 300
"""Clocks of schedulers and the ledger may differ by five minutes: a decision so much later than the start counts."""


def admitted(decisions: Iterable[Known], started_s: int | None) -> DecisionMade | None:
    """Return the admission that counts for an attempt: the newest before its start that had not expired by then."""
    counts = admission_of(decisions, started_s)
    if counts is None:
        return None
    assert isinstance(counts.data, DecisionMade)  # noqa: S101 - narrows the type
    return counts.data


def admission_of(decisions: Iterable[Known], started_s: int | None) -> Known | None:
    """Return the fact of it, which says when it was made and by whom."""
    return newest([known for known in decisions if _is_admission(known, started_s)])


def newest(decisions: Sequence[Known]) -> Known | None:
    """Return the decision that was made last, or None; decisions are made one after the other."""
    return max(
        decisions,
        key=lambda known: (known.at_s, getattr(known.data, "seen_seq", 0), rank(known)),
        default=None,
    )


def _is_admission(known: Known, started_s: int | None) -> bool:
    data = known.data
    assert isinstance(data, DecisionMade)  # noqa: S101 - the caller sorted facts by type
    if data.extends_from is not None:
        return False
    if started_s is None:
        return True
    is_in_time = data.expires_at is None or started_s < seconds(data.expires_at)
    return is_in_time and known.at_s <= started_s + SKEW_S


def holds(
    decisions: Mapping[int, Sequence[Known]], spans: Mapping[int, Sequence[Span]], *, is_over: bool
) -> tuple[Hold, ...]:
    """Return the windows that are set aside, by attempt and time; windows of one run never overlap.

    Args:
        decisions: Attempt -> every decision about it.
        spans: Attempt -> its runs by their start, of those that started. Where several claim one attempt the first
            was admitted, and a slice belongs to the one that goes on when it begins.
        is_over: Whether the workload ended without another run to come.
    """
    found: list[Hold] = []
    for attempt, known in sorted(decisions.items()):
        runs = spans.get(attempt, ())
        for number, span in enumerate(runs):
            found += _drained(known, span, runs[number + 1 :], is_first=number == 0)
        if not runs and not is_over:
            found += _pending(known)
    return tuple(found)


def _pending(decisions: Sequence[Known]) -> list[Hold]:
    counts = newest([known for known in decisions if _is_admission(known, None)])
    if counts is None:
        return []
    window = _window(counts, counts.at_s)
    return [window] if window.to_s > window.from_s else []


def _drained(decisions: Sequence[Known], span: Span, later: Sequence[Span], *, is_first: bool) -> list[Hold]:
    windows = []
    counts = newest([known for known in decisions if _is_admission(known, span.from_s)])
    if counts is not None and is_first:
        windows.append(_window(counts, span.from_s))
    for known in decisions:
        data = known.data
        assert isinstance(data, DecisionMade)  # noqa: S101 - the caller sorted facts by type
        if data.extends_from is not None and _is_of(
            seconds(data.extends_from), span, later, is_first=is_first
        ):
            windows.append(_window(known, max(seconds(data.extends_from), span.from_s)))
    found: list[Hold] = []
    free_s = span.from_s
    for window in sorted(
        windows, key=lambda w: (w.from_s, w.to_s, w.gpus_milli, w.account, w.gpu_model or "")
    ):
        to_s = window.to_s if span.to_s is None else min(window.to_s, span.to_s)
        from_s = max(window.from_s, free_s)
        if to_s > from_s:
            found.append(replace(window, run=span.run, from_s=from_s, to_s=to_s))
            free_s = to_s
        elif (
            found and window.to_s > window.from_s and to_s == free_s
        ):  # decided anew: for what the run has become
            found[-1] = replace(
                found[-1], account=window.account, gpus_milli=window.gpus_milli, gpu_model=window.gpu_model
            )
    return found


def _is_of(from_s: int, span: Span, later: Sequence[Span], *, is_first: bool) -> bool:
    """Tell whether a slice belongs to a run: the last of its attempt that had started by then, or the first."""
    return (span.from_s <= from_s or is_first) and not any(run.from_s <= from_s for run in later)


def _window(known: Known, from_s: int) -> Hold:
    data = known.data
    assert isinstance(data, DecisionMade)  # noqa: S101 - the caller sorted facts by type
    return Hold(
        workload=data.workload,
        attempt=data.attempt,
        from_s=from_s,
        to_s=from_s + data.hold_s,
        account=owner_of(data.account),
        gpus_milli=data.gpus_milli,
        gpu_model=data.gpu_model,
        run=None,
        expires_s=seconds(data.expires_at) if data.expires_at else None,
    )
