"""What happened, as the facts that a simulation would have told: the same measures are taken of both. Pure.

A change of size or class ends a stretch of a run and begins another at the same instant. Where runs were told to hold
more of a host than it has, a run is counted on what others leave free, elsewhere if need be; what has room nowhere is
not counted, and said.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

from gpuledger.policy.placement import Placement
from gpuledger.simulator.backtest.lives import ANYWHERE, Life, LivedRun, Piece
from gpuledger.simulator.facts import (
    Cancelled,
    Departure,
    Fact,
    HostChanged,
    Left,
    Started,
    Submitted,
)
from gpuledger.simulator.jobs import Job
from gpuledger.simulator.scenario import HostSpec

_ORDER: Mapping[type, int] = {Left: 0, HostChanged: 1, Cancelled: 2, Submitted: 3, Started: 4}
"""Of one instant: what is over first, as in the engine."""


def past(
    lives: Iterable[Life],
    jobs: Mapping[str, Job],
    hosts: Iterable[HostSpec],
    changes: Iterable[HostChanged],
    *,
    start_s: int,
    end_s: int,
) -> tuple[list[Fact], tuple[str, ...]]:
    """Return what happened in ``[start_s, end_s)``, in order, and what of it could not be told.

    Args:
        lives: The workloads.
        jobs: Workload -> the job that is replayed for it; who has none is left out.
        hosts: The hosts.
        changes: What became of them.
        start_s: Begin of the time; what goes on then begins then.
        end_s: Its end.
    """
    facts: list[Fact] = [*changes]
    for life in lives:
        if life.workload in jobs:
            facts += _told(life, jobs[life.workload], start_s)
    facts = [fact for fact in facts if fact.at_s < end_s]
    facts.sort(key=lambda fact: (fact.at_s, _ORDER[type(fact)]))
    room = _Room(hosts)
    placed = list(room.place(facts, end_s))
    notes = []
    if room.untold:
        notes.append(
            f"the past: the hosts of {room.untold} runs are not told; they are counted where there is room"
        )
    if room.moved:
        notes.append(
            f"the past: {room.moved} runs held GPUs that others were told to hold; counted on others"
        )
    if room.missing_gpu_ms:
        notes.append(f"the past: {room.missing_gpu_ms} gpu_ms of runs had room nowhere and are not counted")
    return placed, tuple(notes)


def _told(life: Life, job: Job, start_s: int) -> Iterator[Fact]:
    yield Submitted(at_s=job.submitted_s, job=job)
    number = 0
    for run in life.runs:
        if run.to_s is not None and run.to_s <= start_s:
            continue
        pieces = [piece for piece in run.pieces if piece.to_s is None or piece.to_s > start_s]
        pieces[0] = pieces[0]._replace(from_s=max(pieces[0].from_s, start_s))
        for piece, following in pairwise([*pieces, None]):
            assert piece is not None  # noqa: S101 - the last alone is None
            number += 1
            yield Started(
                at_s=piece.from_s,
                job=job.job,
                run=number,
                placement=piece.placement,
                klass=piece.klass,
            )
            if piece.to_s is not None:
                yield _left(life, run, piece, number, is_last=following is None)
    cancelled_s = life.cancelled_s
    if cancelled_s is not None and cancelled_s > job.submitted_s:
        yield Cancelled(at_s=cancelled_s, job=job.job)


def _left(life: Life, run: LivedRun, piece: Piece, number: int, *, is_last: bool) -> Left:
    assert piece.to_s is not None  # noqa: S101 - asked by the caller
    loading_s = kept_s = lost_s = 0
    requeued = not is_last or life.again(run)
    why = (run.why or Departure.DONE) if is_last else Departure.DONE
    if is_last:
        loaded_s = min(max(run.ready_s or run.from_s, run.from_s), piece.to_s)
        loading_s = loaded_s - run.from_s
        worked_s = piece.to_s - loaded_s
        kept_s = max(run.saved_s[-1] - loaded_s, 0) if run.saved_s else 0
        if why is Departure.DONE and not requeued:
            kept_s = worked_s
        lost_s = worked_s - kept_s
    return Left(
        at_s=piece.to_s,
        job=life.workload,
        run=number,
        why=why,
        requeued=requeued,
        kept_s=kept_s,
        lost_s=lost_s,
        loading_s=loading_s,
        idle_s=0,
    )


class _Room:
    """What is free on each host while the past is told."""

    def __init__(self, hosts: Iterable[HostSpec]) -> None:
        self._free = {spec.host: spec.gpus_milli for spec in hosts}
        self._held: dict[str, Placement] = {}
        self.untold = self.moved = 0
        self.missing_gpu_ms = 0

    def place(self, facts: Sequence[Fact], end_s: int) -> Iterator[Fact]:
        """Yield the facts, each start where there is room."""
        left_s = {(fact.job, fact.run): fact.at_s for fact in facts if isinstance(fact, Left)}
        for fact in facts:
            if isinstance(fact, Left):
                for host, milli in self._held.pop(fact.job).items():
                    self._free[host] += milli
                yield fact
            elif isinstance(fact, Started):
                placement = self._found(fact.placement)
                self._held[fact.job] = placement
                missing = sum(fact.placement.values()) - sum(placement.values())
                self.missing_gpu_ms += missing * (left_s.get((fact.job, fact.run), end_s) - fact.at_s)
                self.untold += ANYWHERE in fact.placement
                self.moved += ANYWHERE not in fact.placement and placement != fact.placement
                yield Started(
                    at_s=fact.at_s, job=fact.job, run=fact.run, placement=placement, klass=fact.klass
                )
            else:
                yield fact

    def _found(self, wanted: Placement) -> Placement:
        found: dict[str, int] = {}
        for host, milli in wanted.items():
            self._take(found, host, min(self._free.get(host, 0), milli))
        rest = sum(wanted.values()) - sum(found.values())
        if rest:
            for host, free in self._free.items():
                taken = min(free, rest)
                self._take(found, host, taken)
                rest -= taken
        return found

    def _take(self, found: dict[str, int], host: str, milli: int) -> None:
        if milli:
            found[host] = found.get(host, 0) + milli
            self._free[host] -= milli


__all__ = ["past"]
