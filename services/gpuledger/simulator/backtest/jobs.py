"""Lives of workloads as jobs that can be run again: when they are asked for, how long they work, what interrupts cost.

What nobody saw is not made up, or counted and said: a run that was cut takes longer than it was seen to, by a second;
who never ran is taken to need what such work usually needs.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import median_low
from typing import NamedTuple

from gpuledger.simulator.backtest.lives import Life, LivedRun
from gpuledger.simulator.facts import Departure
from gpuledger.simulator.jobs import Job

USUAL_S = 3_600
"""What work is taken to need where nothing at all is known to have ended."""

_CUT = "cut: {} jobs were not seen to finish their work; each takes longer than was seen, by a second"
_NEVER_RAN = "never ran: {} jobs; each is taken to need what jobs of its user and size, or of its account, usually need"
_UNTOLD = "not told of: the submission of {} jobs; each is submitted when its first run began"
_CARRIED = (
    "under way: {} jobs ran or waited when it begins; they are submitted then, with the work that was left"
)


class _Span(NamedTuple):
    """A run as far as it lies in what is replayed."""

    from_s: int
    to_s: int
    loaded_s: int
    saved_s: Sequence[int]
    why: Departure | None
    is_left: bool
    """It was interrupted, and the workload ran or waited again."""

    @property
    def worked_s(self) -> int:
        return max(self.to_s - self.loaded_s, 0)

    @property
    def kept_s(self) -> int:
        return max(self.saved_s[-1] - self.loaded_s, 0) if self.saved_s else 0


@dataclass(slots=True)
class _Made:
    job: Job
    work_s: int | None
    """None for a job that never ran."""
    is_cut: bool
    is_carried: bool


def jobs_of(
    lives: Iterable[Life], *, start_s: int, end_s: int, known_s: int
) -> tuple[list[Job], tuple[str, ...]]:
    """Return what is submitted when a stretch of time is replayed, in order, and what ought to be known of it.

    Args:
        lives: Workloads, in the order in which they became known.
        start_s: When it begins: what was over by then is left out.
        end_s: When it ends: what could not start before that is left out.
        known_s: Up to when anything is known.
    """
    counts: Counter[str] = Counter()
    made = []
    for life in lives:
        one = _made(life, start_s, end_s, known_s)
        if one is not None:
            made.append(one)
            counts[_UNTOLD] += not life.is_submitted
            counts[_CUT] += one.is_cut
            counts[_NEVER_RAN] += one.work_s is None
            counts[_CARRIED] += one.is_carried
    notes = tuple(text.format(count) for text, count in sorted(counts.items()) if count)
    ran_first = sorted(_with_work(made), key=lambda one: (one.job.submitted_s, not one.is_carried))
    return [one.job for one in ran_first], notes


def _made(life: Life, start_s: int, end_s: int, known_s: int) -> _Made | None:
    if life.eligible_s >= end_s:
        return None
    cancelled_s = life.cancelled_s
    spans = [*_spans(life, start_s, known_s)]
    waits = [
        (max(from_s, start_s), known_s if to_s is None else to_s)
        for from_s, to_s in life.waits
        if to_s is None or to_s > start_s
    ]
    if not spans and not waits:
        return None
    submitted_s = max(life.eligible_s, start_s)
    work_s, is_cut = _work_s(spans, waits)
    last = spans[-1] if spans else None
    job = Job(
        job=life.workload,
        account=life.account,
        user=life.user,
        kind=life.kind,
        gpus_milli=life.gpus_milli,
        submitted_s=submitted_s,
        work_s=work_s or USUAL_S,
        minimum_runtime_s=life.minimum_runtime_s,
        time_limit_s=_limit_s(life, spans),
        priority=life.priority,
        gpu_model=life.gpu_model,
        startup_s=_startup_s(life),
        checkpoint_s=_checkpoint_s(life),
        patience_s=None if cancelled_s is None else _patience_s(waits),
        # Whoever was over when its GPUs were taken is no work that waits again.
        resumable=life.resumable
        and not (
            last is not None and not last.is_left and last.why in {Departure.PREEMPTED, Departure.HOST_FAILED}
        ),
        labels=life.labels,
    )
    return _Made(job, work_s, is_cut, life.eligible_s < start_s)


def _spans(life: Life, start_s: int, known_s: int) -> Iterator[_Span]:
    usual_s = _startup_s(life)
    for run in life.runs:
        to_s = _until_s(run, life.time_limit_s, known_s)
        if to_s <= start_s:
            continue
        from_s = max(run.from_s, start_s)
        loaded_s = min(max(run.ready_s or run.from_s + usual_s, from_s), to_s)
        saved_s = [at_s for at_s in run.saved_s if at_s > loaded_s]
        is_left = life.again(run) and run.why is not None
        yield _Span(from_s, to_s, loaded_s, saved_s, run.why, is_left)


def _startup_s(life: Life) -> int:
    """Return how long its runs load: the middle of what was told; nothing where nobody told."""
    loads = [run.ready_s - run.from_s for run in life.runs if run.ready_s is not None]
    return median_low(loads) if loads else 0


def _until_s(run: LivedRun, limit_s: int | None, known_s: int) -> int:
    """Return when a run was over, or up to when it is known to go on: at most to its declared limit."""
    if run.to_s is not None:
        return run.to_s
    return known_s if limit_s is None else max(min(known_s, run.from_s + limit_s), run.from_s + 1)


def _work_s(spans: Sequence[_Span], waits: Sequence[tuple[int, int]]) -> tuple[int | None, bool]:
    """Return how long a job works, undisturbed, as far as it was seen, and whether it was cut."""
    if not spans:
        return None, False
    kept_s = seen_s = 0
    for span in spans:  # before each run so much was left that it did not finish
        seen_s = max(seen_s, kept_s + span.worked_s)
        kept_s += span.kept_s
    last = spans[-1]
    if last.why is Departure.DONE and not (last.is_left and waits):
        return max(kept_s - last.kept_s + last.worked_s, 1), False
    return seen_s + 1, True


def _limit_s(life: Life, spans: Sequence[_Span]) -> int | None:
    """Return the limit as declared; one that a run outlived is raised to what it took."""
    if life.time_limit_s is None:
        return None
    limit_s = life.time_limit_s
    if spans and spans[0].from_s > life.runs[0].from_s and len(spans) == 1:
        begun = next(run for run in life.runs if run.to_s is None or run.to_s > spans[0].from_s)
        limit_s = max(limit_s - (spans[0].from_s - begun.from_s), 1)
    return max([limit_s, *(span.to_s - span.from_s for span in spans)])


def _checkpoint_s(life: Life) -> int | None:
    """Return how long it works between two checkpoints: the middle of what was seen."""
    gaps = []
    for run in life.runs:
        marks = [run.from_s if run.ready_s is None else run.ready_s, *run.saved_s]
        gaps += [to_s - from_s for from_s, to_s in pairwise(marks) if to_s > from_s]
    return median_low(gaps) if gaps else None


def _patience_s(waits: Sequence[tuple[int, int]]) -> int:
    """Return after how long of waiting it is given up: as it was, and no sooner than it was seen to wait before."""
    *before, last = [to_s - from_s for from_s, to_s in waits]
    return max([last, *(length_s + 1 for length_s in before)])


def _with_work(made: Sequence[_Made]) -> Iterator[_Made]:
    """Yield all of them, those that never ran with what is usual: of their like, else of more and more."""
    seen: dict[tuple[object, ...], list[int]] = {}
    for one in made:
        if one.work_s is not None:
            for key in _likes(one.job):
                seen.setdefault(key, []).append(one.work_s)
    usual = {key: median_low(lengths) for key, lengths in seen.items()}
    for one in made:
        if one.work_s is None:
            work_s = next((usual[key] for key in _likes(one.job) if key in usual), USUAL_S)
            one.job = replace(one.job, work_s=work_s)
        yield one


def _likes(job: Job) -> tuple[tuple[object, ...], ...]:
    return (job.account, job.user, job.gpus_milli), (job.account, job.gpus_milli), (job.account,), ()


__all__ = ["USUAL_S", "jobs_of"]
