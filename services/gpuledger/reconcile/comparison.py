"""Runs as the ledger has them against runs as a scheduler's record has them. Pure.

Only GPU-time is compared: which run held how many GPUs from when to when, and who pays. Each difference gets a
class that says how it came about, as far as the two sides show it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

import msgspec

from gpuledger.events.registry import name_of
from gpuledger.events.workload import Started, Updated
from gpuledger.kernel.clock import instant, iso
from gpuledger.ledger.facts import STOPS, Known, winner
from gpuledger.ledger.segments import Segment, derive

GRACE_S = 600
"""How long a fact may be on its way, unless somebody says otherwise."""


class Class(StrEnum):
    """How a difference came about."""

    LATE = "late"
    """It happened shortly before the record was taken, and is still to come."""
    NEWER = "newer"
    """The ledger knows what happened after the record was taken."""
    ESTIMATED = "estimated-end"
    """The ledger closed the run by an estimate, and the record has the end."""
    EDITED = "edited"
    """The record was changed after it was read: the ledger holds what it said before."""
    OUTRANKED = "outranked"
    """The ledger holds what the record says, and another source that counts more says otherwise."""
    LOST = "lost-event"
    """The record has what never reached the ledger."""
    UNKNOWN = "unknown-job"
    """The ledger has a run that the record does not list although it should."""
    UNREADABLE = "dead-letter"
    """The record itself cannot be read, so that nobody can say whether the ledger is right."""
    UNEXPLAINED = "unexplained"
    """None of these."""

    @property
    def is_explained(self) -> bool:
        """Whether the two sides show why, so that nothing is wrong with what reached the ledger."""
        return self not in {Class.LOST, Class.UNKNOWN, Class.UNREADABLE, Class.UNEXPLAINED}

    @property
    def is_mendable(self) -> bool:
        """Whether telling the ledger what the record says makes it right."""
        return self in {Class.ESTIMATED, Class.EDITED, Class.OUTRANKED, Class.LOST, Class.UNEXPLAINED}


class Piece(NamedTuple):
    """GPUs held without a change; ``to_s`` is None while they are held."""

    from_s: int
    to_s: int | None
    gpus_milli: int
    account: str


class RunKey(NamedTuple):
    """A run."""

    cluster: str
    workload: str
    run: str


@dataclass(frozen=True, slots=True)
class Difference:
    """A run that is not the same on both sides.

    Args:
        klass: How that came about.
        key: The run; its parts are empty where a record cannot be read.
        ledger_gpu_ms: GPU-time that it held as the ledger has it, up to when the record was taken.
        record_gpu_ms: GPU-time that it held as the record has it, up to then.
        message: What differs.
    """

    klass: Class
    key: RunKey
    ledger_gpu_ms: int
    record_gpu_ms: int
    message: str


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a record covers.

    Args:
        from_s: Runs that ended before are not listed.
        to_s: Runs that started after are not listed.
        taken_s: When it was taken.
        grace_s: What happened so shortly before that may still be on its way to the ledger.
    """

    from_s: int
    to_s: int
    taken_s: int
    grace_s: int = GRACE_S

    @property
    def settled_s(self) -> int:
        """What happened before this must have reached the ledger."""
        return self.taken_s - self.grace_s


class Amounts(NamedTuple):
    """GPU-time of a run on both sides, up to when the record was taken."""

    ledger_gpu_ms: int
    record_gpu_ms: int


def compare(
    cluster: str, workload: str, ledger: Sequence[Known], record: Sequence[Known], bounds: Bounds
) -> Iterator[tuple[RunKey, Amounts, Difference | None]]:
    """Yield every run of a workload that either side has within the bounds, with its difference if there is one."""
    ours, theirs = _pieces(ledger), _pieces(record)
    for run in sorted(ours.keys() | theirs.keys()):
        have, told = ours.get(run, ()), theirs.get(run, ())
        if not told and not _within(have, bounds):
            continue
        key = RunKey(cluster, workload, run)
        amounts = Amounts(_gpu_ms(have, bounds.taken_s), _gpu_ms(told, bounds.taken_s))
        if have == told or (_is_moved(ledger) and _as_it_ends(have) == _as_it_ends(told)):
            yield key, amounts, None
            continue
        klass = _class_of(have, told, _of_run(ledger, run), _of_run(record, run), bounds)
        message = f"the ledger has {_text(have)}; the record has {_text(told)}"
        if klass is Class.OUTRANKED:
            message += f"; the ledger believes {', '.join(_sources(_of_run(ledger, run)))}"
        yield key, amounts, Difference(klass, key, *amounts, message)


def _is_moved(facts: Sequence[Known]) -> bool:
    """Tell whether the ledger was told that somebody else pays from some moment on, of which records tell no moment."""
    return any(isinstance(fact.data, Updated) and (fact.data.account or fact.data.labels) for fact in facts)


def _as_it_ends(pieces: Sequence[Piece]) -> Sequence[Piece]:
    """Return the pieces of a run as if who pays for the last had paid for all."""
    found: list[Piece] = []
    for piece in (piece._replace(account=pieces[-1].account) for piece in pieces):
        if found and found[-1].to_s == piece.from_s and found[-1][2:] == piece[2:]:
            found[-1] = found[-1]._replace(to_s=piece.to_s)
        else:
            found.append(piece)
    return found


def _class_of(
    have: Sequence[Piece],
    told: Sequence[Piece],
    ledger: Sequence[Known],
    record: Sequence[Known],
    bounds: Bounds,
) -> Class:
    if not told:
        return Class.UNKNOWN
    if not have:
        return Class.LATE if told[0].from_s >= bounds.settled_s else _cause(ledger, record)
    ended_s, known_s = told[-1].to_s, have[-1].to_s
    if _is_estimated(ledger):
        return Class.ESTIMATED
    if known_s is None and ended_s is not None and ended_s >= bounds.settled_s:
        return Class.LATE
    if ended_s is None and known_s is not None and known_s >= bounds.settled_s:
        return Class.NEWER
    return _cause(ledger, record)


def _cause(ledger: Sequence[Known], record: Sequence[Known]) -> Class:
    """Return why the two differ, by which facts of the record the ledger holds."""
    held = {_said(fact) for fact in ledger}
    missing = [fact for fact in record if _said(fact) not in held]
    if not missing:
        return (
            Class.OUTRANKED
            if any(fact.source not in {r.source for r in record} for fact in ledger)
            else (Class.UNEXPLAINED)
        )
    before = {(fact.source, _kind(fact)) for fact in ledger}
    return Class.EDITED if all((fact.source, _kind(fact)) in before for fact in missing) else Class.LOST


def _pieces(facts: Sequence[Known]) -> Mapping[str, Sequence[Piece]]:
    """Return what each run held, in order; what follows each other without a difference is one piece."""
    runs: dict[str, list[Piece]] = {}
    for segment in derive(facts).segments:
        pieces = runs.setdefault(segment.run, [])
        piece = _piece(segment)
        if pieces and pieces[-1].to_s == piece.from_s and pieces[-1][2:] == piece[2:]:
            pieces[-1] = pieces[-1]._replace(to_s=piece.to_s)
        else:
            pieces.append(piece)
    return runs


def _piece(segment: Segment) -> Piece:
    return Piece(segment.from_s, segment.to_s, segment.gpus_milli, segment.account)


def _within(pieces: Sequence[Piece], bounds: Bounds) -> bool:
    """Tell whether a run should be in the record."""
    end_s = pieces[-1].to_s
    latest_s = min(bounds.to_s, bounds.settled_s)
    return pieces[0].from_s < latest_s and (end_s is None or end_s > bounds.from_s)


def _of_run(facts: Iterable[Known], run: str) -> Sequence[Known]:
    return [fact for fact in facts if getattr(fact.data, "run", None) in {run, None}]


def _is_estimated(facts: Sequence[Known]) -> bool:
    stop = winner([fact for fact in facts if isinstance(fact.data, STOPS) and fact.data.run is not None])
    return stop is not None and bool(getattr(stop.data, "estimated", False))


def _said(fact: Known) -> tuple[int, bytes]:
    """Return what a fact says, apart from who says it of whom: the journal holds tokens in place of users."""
    data = fact.data
    if getattr(data, "user", None) is not None:
        data = msgspec.structs.replace(data, user="-")
    return fact.at_s, msgspec.json.encode((name_of(type(data)), data))


def _kind(fact: Known) -> str:
    """Return what kind of fact it is; how a run stopped may be told anew in another word."""
    return "stopped" if isinstance(fact.data, STOPS) else name_of(type(fact.data))


def _sources(facts: Sequence[Known]) -> list[str]:
    counting = [winner([f for f in facts if isinstance(f.data, kind)]) for kind in ((Started,), STOPS)]
    return sorted({fact.source for fact in counting if fact is not None})


def _gpu_ms(pieces: Sequence[Piece], until_s: int) -> int:
    return sum(p.gpus_milli * max((until_s if p.to_s is None else p.to_s) - p.from_s, 0) for p in pieces)


def _text(pieces: Sequence[Piece]) -> str:
    return ", ".join(map(_piece_text, pieces)) or "nothing"


def _piece_text(piece: Piece) -> str:
    end = "now" if piece.to_s is None else iso(instant(piece.to_s))
    gpus, milli = divmod(piece.gpus_milli, 1000)
    count = f"{gpus}.{milli:03d}" if milli else str(gpus)
    return f"{count} GPUs {iso(instant(piece.from_s))} to {end} for {piece.account}"
