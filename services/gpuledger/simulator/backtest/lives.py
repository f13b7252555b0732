"""What became of a workload, as its facts tell: when it was asked for, where it ran, why each run was over. Pure.

Runs, classes and owners are those of ``ledger.segments``: what is charged is what is replayed.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, get_args

from msgspec.structs import replace

from gpuledger.events import workload as events
from gpuledger.events.mapping import Kind
from gpuledger.events.words import words_of
from gpuledger.kernel.clock import seconds
from gpuledger.ledger.facts import STOPS, Known, winner
from gpuledger.ledger.mapping import Rules, Understood
from gpuledger.ledger.requests import LATEST_S, asked_at, requests_of
from gpuledger.ledger.segments import History, Segment, derive
from gpuledger.ledger.stops import Stop, why
from gpuledger.ledger.waits import whole_waits
from gpuledger.policy.placement import Placement, split
from gpuledger.policy.state import WorkClass
from gpuledger.simulator.facts import Departure

_TAKEN = frozenset(("preempted", "preemptionbyscheduler"))
_TOO_LONG = frozenset(("timeout", "deadline", "deadlineexceeded"))
_KINDS: tuple[Kind, ...] = get_args(Kind)


ANYWHERE = ""
"""The host of what nobody told the hosts of."""


class Piece(NamedTuple):
    """A stretch of a run with constant GPUs, class and hosts; ``to_s`` is None while it goes on."""

    from_s: int
    to_s: int | None
    klass: WorkClass
    placement: Placement


class LivedRun(NamedTuple):
    """A run.

    Args:
        pieces: Its stretches, in order; one at least.
        why: Why it was over; None while it goes on.
        ready_s: When it had loaded, where it told.
        saved_s: When its work was saved, where it told; ascending.
    """

    pieces: Sequence[Piece]
    why: Departure | None
    ready_s: int | None = None
    saved_s: Sequence[int] = ()

    @property
    def from_s(self) -> int:
        """When it began."""
        return self.pieces[0].from_s

    @property
    def to_s(self) -> int | None:
        """When it was over; None while it goes on."""
        return self.pieces[-1].to_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Life:
    """A workload.

    Args:
        workload: Its id.
        account: Who pays.
        user: Who asked, as a token.
        kind: What it is for.
        gpus_milli: What it asked for.
        gpu_model: The model it insists on, if any.
        minimum_runtime_s: As it was declared, or as the mapping has it.
        time_limit_s: As it was declared.
        priority: As it was declared.
        resumable: Whether it is queued again when its GPUs are taken, as far as anybody said.
        labels: What the source says of it in its own words.
        eligible_s: From when on it could start.
        is_submitted: Whether anybody told of its submission.
        runs: Its runs, in order; none begins before the one before is over.
        waits: (since when, until when) it waited; None until now.
    """

    workload: str
    account: str
    user: str
    kind: Kind
    gpus_milli: int
    gpu_model: str | None
    minimum_runtime_s: int
    time_limit_s: int | None
    priority: int
    resumable: bool
    labels: Mapping[str, str] | None
    eligible_s: int
    is_submitted: bool
    runs: Sequence[LivedRun]
    waits: Sequence[tuple[int, int | None]]

    def again(self, run: LivedRun) -> bool:
        """Say whether it ran or waited again after a run."""
        over_s = run.to_s
        if over_s is None:
            return False
        return any(other.from_s >= over_s for other in self.runs if other is not run) or any(
            from_s >= over_s for from_s, _ in self.waits
        )

    @property
    def cancelled_s(self) -> int | None:
        """When it was given up while it waited; None when it was not."""
        if not self.waits:
            return None
        since_s, until_s = self.waits[-1]
        return None if any(run.from_s >= since_s for run in self.runs) else until_s


def life(known: Iterable[Known], rules: Rules, sizes: Mapping[str, int]) -> Life | None:
    """Return what became of a workload; None when it asked for no GPUs and held none.

    Args:
        known: All facts known of it.
        rules: What foreign names mean.
        sizes: Host -> milli-GPU; a run of which only the whole is known is spread by them.
    """
    facts = list(known)
    history = derive(facts, rules)
    runs = _runs(facts, history, sizes)
    # A job of a simulation asks once: as it asked when it first ran, or asks by now; its limit bounds what runs still.
    told = requests_of(facts, rules)
    asked, by_now = asked_at(told, runs[0].from_s if runs else LATEST_S), asked_at(told, LATEST_S)
    if asked is not None and by_now is not None:
        asked = asked._replace(asked=replace(asked.asked, time_limit_s=by_now.asked.time_limit_s))
    gpus_milli = asked.asked.gpus_milli if asked else 0
    gpus_milli = gpus_milli or (history.segments[0].gpus_milli if runs else 0)
    if not gpus_milli:
        return None
    return _life(asked, history, runs, gpus_milli)


def _life(
    asked: Understood | None, history: History, runs: Sequence[LivedRun], gpus_milli: int
) -> Life | None:
    first = history.segments[0] if runs else None
    if asked is None:
        if first is None:
            return None
        told = events.Submitted(
            cluster="-",
            workload=first.workload,
            account=first.account,
            user=first.user,
            gpus_milli=gpus_milli,
            gpu_model=first.gpu_model,
            minimum_runtime_s=0 if first.klass == "unallocated" else None,
        )
        asked = Rules().understood([Known(told, first.from_s, "-", b"")])
        assert asked is not None  # noqa: S101 - there is one submission
        is_submitted = False
    else:
        told, is_submitted = asked.asked, True
    eligible_s = seconds(told.eligible_at) if told.eligible_at else asked.at_s
    return Life(
        workload=told.workload,
        account=first.account if first else asked.meaning.account,
        user=first.user if first else told.user,
        kind=next((kind for kind in _KINDS if kind == (told.kind or asked.meaning.kind)), "train"),
        gpus_milli=gpus_milli,
        gpu_model=told.gpu_model,
        minimum_runtime_s=asked.minimum_runtime_s,
        time_limit_s=told.time_limit_s or None,
        priority=told.priority or 0,
        resumable=asked.meaning.resumable if told.resumable is None else told.resumable,
        labels=told.labels,
        eligible_s=min(eligible_s, first.from_s) if first else eligible_s,
        is_submitted=is_submitted,
        runs=runs,
        waits=whole_waits(history.waits),
    )


def _runs(facts: Sequence[Known], history: History, sizes: Mapping[str, int]) -> list[LivedRun]:
    segments: dict[str, list[Segment]] = {}
    for segment in history.segments:
        segments.setdefault(segment.run, []).append(segment)
    found: list[LivedRun] = []
    for name, own in segments.items():
        told = [fact for fact in facts if getattr(fact.data, "run", None) == name]
        pieces = _pieces(told, own, sizes)
        if found and (end_s := found[-1].to_s) is not None and end_s > pieces[0].from_s:
            pieces = _after(pieces, end_s)
        elif found and found[-1].to_s is None:
            found[-1] = _until(found[-1], pieces[0].from_s)
        if pieces:
            found.append(_run(told, pieces))
    return found


def _run(told: Sequence[Known], pieces: Sequence[Piece]) -> LivedRun:
    from_s, to_s = pieces[0].from_s, pieces[-1].to_s
    ready = winner([fact for fact in told if isinstance(fact.data, events.Ready)])
    saved = sorted(
        fact.at_s
        for fact in told
        if isinstance(fact.data, events.Checkpointed)
        and fact.at_s >= from_s
        and (to_s is None or fact.at_s <= to_s)
    )
    return LivedRun(
        pieces,
        None if to_s is None else _why(winner([fact for fact in told if isinstance(fact.data, STOPS)])),
        max(ready.at_s, from_s) if ready is not None and (to_s is None or ready.at_s <= to_s) else None,
        saved,
    )


def _why(stop: Known | None) -> Departure:
    """Return why a run was over; one that nothing stopped has gone on elsewhere."""
    if stop is None:
        return Departure.DONE
    data = stop.data
    assert isinstance(data, events.Stopped)  # noqa: S101 - narrows the type; the caller sorted it there
    if why(data.reason) is Stop.NODE_FAILURE:
        return Departure.HOST_FAILED
    words = words_of(data.reason)
    if isinstance(data, events.Preempted) or (words and words[0] in _TAKEN):
        return Departure.PREEMPTED
    return Departure.TIME_LIMIT if words and words[0] in _TOO_LONG else Departure.DONE


def _pieces(told: Sequence[Known], segments: Sequence[Segment], sizes: Mapping[str, int]) -> list[Piece]:
    found: list[Piece] = []
    for segment in segments:
        klass: WorkClass = "allocated" if segment.klass == "allocated" else "unallocated"
        piece = Piece(segment.from_s, segment.to_s, klass, _placement(told, segment, sizes))
        if found and found[-1] == piece._replace(from_s=found[-1].from_s, to_s=piece.from_s):
            found[-1] = found[-1]._replace(to_s=piece.to_s)  # somebody else pays from here on
        else:
            found.append(piece)
    return found


def _placement(told: Sequence[Known], segment: Segment, sizes: Mapping[str, int]) -> Placement:
    """Return what a segment holds of each host: as it was told with the newest size, else spread."""
    sized = [
        fact
        for fact in told
        if isinstance(fact.data, events.Started | events.Resized) and fact.at_s <= segment.from_s
    ]
    newest_s = max((fact.at_s for fact in sized), default=0)
    counts = winner([fact for fact in sized if fact.at_s == newest_s])
    each = getattr(counts.data, "host_gpus_milli", None) if counts is not None else None
    if each and tuple(sorted(each)) == segment.hosts and sum(each.values()) == segment.gpus_milli:
        return {host: milli for host, milli in each.items() if milli}
    if not segment.hosts:
        return {ANYWHERE: segment.gpus_milli}
    return split(segment.gpus_milli, {host: sizes.get(host, 0) for host in segment.hosts})


def _after(pieces: Sequence[Piece], from_s: int) -> list[Piece]:
    """Return what of a run comes after an instant: a job has one run at a time."""
    return [
        piece._replace(from_s=max(piece.from_s, from_s))
        for piece in pieces
        if piece.to_s is None or piece.to_s > from_s
    ]


def _until(run: LivedRun, to_s: int) -> LivedRun:
    """Return a run that nobody saw end, up to the next one of its workload."""
    pieces = [
        piece._replace(to_s=to_s if piece.to_s is None else min(piece.to_s, to_s))
        for piece in run.pieces
        if piece.from_s < to_s
    ]
    return run._replace(pieces=pieces or [run.pieces[0]._replace(to_s=run.from_s)], why=Departure.DONE)


__all__ = ["ANYWHERE", "Life", "LivedRun", "Piece", "life"]
