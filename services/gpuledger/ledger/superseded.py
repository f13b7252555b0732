"""Facts of a workload that lost against another: what each said, who said so, what counts in its place, and why.

Law 3: of contradictory facts the higher ranked counts, whichever came first; the loser is kept, and shown. Pure.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from gpuledger.events import workload as events
from gpuledger.events.decision import DecisionMade
from gpuledger.events.registry import Fact, name_of
from gpuledger.kernel.clock import instant, iso
from gpuledger.ledger.facts import STOPS, Known, rank, winner
from gpuledger.ledger.holds import admission_of
from gpuledger.ledger.requests import said_otherwise
from gpuledger.ledger.segments import derive

_FURTHEST = "the furthest version of a record counts"
_BECAUSE = (
    "a time that was measured counts before one that was estimated",
    "a reconciliation is believed before any other source",
    _FURTHEST,
    "of sources that are believed alike the later time counts",
    "of facts that are ranked alike their content decides, alike on every ledger",
    "of facts that are ranked alike their content decides, alike on every ledger",
)
"""A sentence for each part of a rank."""

_OF_SUBMISSIONS = ("a submission that was told by itself counts before one that a record repeats", _FURTHEST)
"""The third and the fourth part, of a submission that a record of some version repeats."""

_ANEW = "a submission says anew all that is asked for"
_OVER = "a run that is over does not change any more"
_DONE = "what is over does not change any more"
_ADMITTED = "of the class of a run the recorded decision counts"
_UNSAID = frozenset({"cluster", "workload", "run", "version", "basis"})
"""What a fact says of itself rather than of what happened."""
_CHANGES = (events.Resized, events.ClassChanged)


@dataclass(frozen=True, slots=True)
class Superseded:
    """A fact that does not count.

    Args:
        fact: What was said.
        by: The fact that counts.
        because: What of their ranks decided.
        of: The one thing of it that does not count, where all else does.
    """

    fact: Known
    by: Known
    because: str
    of: str | None = None

    @property
    def run(self) -> str | None:
        """The run that it is about."""
        return getattr(self.fact.data, "run", None)

    def line(self) -> str:
        """Return one sentence."""
        lost = "does not count" if self.of is None else f"its {self.of} does not count"
        return (
            f"{_said(self.fact, self.by, self.of)}, says {self.fact.source}; {lost}:"
            f" {_said(self.by, self.fact, self.of)}, says {self.by.source}, and {self.because}."
        )

    def as_json(self) -> dict[str, Any]:
        """Return it under its published keys."""
        return {
            **_document(self.fact, self.by, self.of),
            "run": self.run,
            "by": _document(self.by, self.fact, self.of),
            "because": self.because,
        }


def superseded(known: Iterable[Known]) -> tuple[Superseded, ...]:
    """Return the facts that lost, in order of the time that they told; those that say what counts lost nothing.

    Nothing follows from them: without them the same segments, waits and holds do; where one thing of a fact lost,
    without that. Decisions and conclusions, of which each takes the place of the one before, do not contradict.

    Args:
        known: All facts of one workload.
    """
    every = tuple(known)
    found = [one for rivals in _rivals(every) for one in _losers(rivals)]
    lost = [one.fact for one in found]
    found += [
        one
        for one in (*_too_late(every), *_overruled(every), *_updates(every), *_after_the_end(every))
        if one.fact not in lost
    ]
    return tuple(sorted(found, key=lambda one: (one.fact.at_s, rank(one.fact))))


def _rivals(known: Iterable[Known]) -> Iterator[Sequence[Known]]:
    """Yield facts of which one alone can count."""
    groups: dict[tuple[object, ...], list[Known]] = {}
    submitted: list[Known] = []
    for fact in known:
        data = fact.data
        run = getattr(data, "run", None)
        if isinstance(data, events.Submitted):
            submitted.append(fact)
        elif isinstance(data, STOPS):  # of a run, or of a workload that is over before it started
            groups.setdefault(("stop", run), []).append(fact)
        elif isinstance(data, events.Started):
            groups.setdefault(("start", run), []).append(fact)
        elif isinstance(data, _CHANGES):  # a run may change often, and at one moment once
            groups.setdefault((type(data), run, fact.at_s), []).append(fact)
    yield from groups.values()
    yield (once := _once(submitted))
    again: dict[int, list[Known]] = {}
    for fact in submitted:
        if fact not in once:
            again.setdefault(fact.at_s, []).append(fact)
    yield from again.values()


def _too_late(known: Sequence[Known]) -> Iterator[Superseded]:
    """Yield changes of runs that the stop which counts says were over by then."""
    stops: dict[str, list[Known]] = {}
    for fact in known:
        if isinstance(fact.data, STOPS) and fact.data.run is not None:
            stops.setdefault(fact.data.run, []).append(fact)
    ends = {run: counts for run, of in stops.items() if (counts := winner(of)) is not None}
    for fact in known:
        if isinstance(fact.data, _CHANGES):
            over = ends.get(fact.data.run)
            if over is not None and fact.at_s > over.at_s:
                yield Superseded(fact, over, _OVER)


def _overruled(known: Sequence[Known]) -> Iterator[Superseded]:
    """Yield the starts that name another class than the admission of their attempt, which counts."""
    starts: dict[str, list[Known]] = {}
    decisions: dict[int, list[Known]] = {}
    for fact in known:
        if isinstance(fact.data, events.Started):
            starts.setdefault(fact.data.run, []).append(fact)
        elif isinstance(fact.data, DecisionMade):
            decisions.setdefault(fact.data.attempt, []).append(fact)
    for of in starts.values():
        if (start := winner(of)) is not None and isinstance(start.data, events.Started):
            decided = admission_of(decisions.get(start.data.attempt, ()), start.at_s)
            if start.data.klass and decided is not None and _class(decided) != _class(start):
                yield Superseded(start, decided, _ADMITTED, "class")


def _updates(known: Sequence[Known]) -> Iterator[Superseded]:
    """Yield updates that are dated before the submission, and what others of the same moment say otherwise."""
    submitted = winner([fact for fact in known if isinstance(fact.data, events.Submitted)])
    moments: dict[int, list[Known]] = {}
    for fact in known:
        if isinstance(fact.data, events.Updated):
            if submitted is not None and fact.at_s < submitted.at_s:
                yield Superseded(fact, submitted, _ANEW)
            else:
                moments.setdefault(fact.at_s, []).append(fact)
    for of in moments.values():
        counting = said_otherwise(of)
        for fact in of:
            yield from _outranked(fact, counting)


def _after_the_end(known: Sequence[Known]) -> Iterator[Superseded]:
    """Yield updates of a workload that was over by then, and was not begun again."""
    updates = [fact for fact in known if isinstance(fact.data, events.Updated)]
    stops: dict[str | None, list[Known]] = {}
    for fact in known:
        if isinstance(fact.data, STOPS):
            stops.setdefault(fact.data.run, []).append(fact)
    counting = [counts for of in stops.values() if (counts := winner(of)) is not None]
    ends = [fact for fact in counting if isinstance(fact.data, events.Ended)]
    if not updates or not ends:
        return
    history = derive(known)
    until = [*(held.to_s for held in history.segments), *(wait.to_s for wait in history.waits)]
    last = max(ends, key=lambda fact: (fact.at_s, rank(fact)))
    for fact in updates:
        if fact.at_s > last.at_s and all(to_s is not None and to_s < fact.at_s for to_s in until):
            yield Superseded(fact, last, _DONE)


def _outranked(fact: Known, counting: Mapping[str, Known]) -> Iterator[Superseded]:
    """Yield the update as a whole where nothing that it says counts; else each thing of it that does not."""
    said = {key: counts for key, counts in counting.items() if getattr(fact.data, key) is not None}
    lost = {
        key: counts for key, counts in said.items() if getattr(counts.data, key) != getattr(fact.data, key)
    }
    for key, counts in lost.items():
        if len(lost) < len(said):
            yield Superseded(fact, counts, _because(fact, counts), key)
        else:
            yield Superseded(fact, counts, _because(fact, counts))
            return


def _class(fact: Known) -> str | None:
    return _fields(fact.data).get("class")


def _once(submitted: Sequence[Known]) -> Sequence[Known]:
    """Leave out records that tell of the workload as submitted anew, which its first submission does not contradict."""
    counts = winner(submitted)
    return [
        fact
        for fact in submitted
        if counts is None or getattr(fact.data, "version", None) is None or fact.at_s <= counts.at_s
    ]


def _losers(rivals: Sequence[Known]) -> Iterator[Superseded]:
    counts = winner(rivals)
    for fact in rivals:
        if counts is not None and fact is not counts and _claim(fact) != _claim(counts):
            yield Superseded(fact, counts, _because(fact, counts))


def _claim(fact: Known) -> tuple[object, ...]:
    return (type(fact.data), fact.at_s, *_fields(fact.data).items())


def _fields(data: Fact) -> dict[str, str]:
    found: dict[str, str] = msgspec.to_builtins(data)
    return {name: str(value) for name, value in found.items() if name not in _UNSAID}


def _because(fact: Known, counts: Known) -> str:
    pairs = zip(rank(fact), rank(counts), strict=True)
    place = next((n for n, (lost, won) in enumerate(pairs) if lost != won), len(_BECAUSE) - 1)
    if isinstance(fact.data, events.Submitted) and fact.data.version is not None and place in {2, 3}:
        return _OF_SUBMISSIONS[place - 2]
    return _BECAUSE[place]


def _said(fact: Known, other: Known, of: str | None = None) -> str:
    what = _what(fact).replace(".", " ").replace("_", " ")
    told = ", ".join(f"{name} {value}" for name, value in _differing(fact, other, of).items())
    return f"{what} at {iso(instant(fact.at_s))}" + (f" with {told}" if told else "")


def _differing(fact: Known, other: Known, of: str | None = None) -> dict[str, str]:
    """Return what a fact says otherwise than another, of one thing or of all; of people only that it is another."""
    theirs = _fields(other.data)
    found = {
        name: value
        for name, value in _fields(fact.data).items()
        if theirs.get(name) != value and of in (None, name)
    }
    return {name: "of another person" if name == "user" else value for name, value in found.items()}


def _document(fact: Known, other: Known, of: str | None = None) -> dict[str, Any]:
    return {
        "at": iso(instant(fact.at_s)),
        "what": _what(fact),
        "source": fact.source,
        "said": _differing(fact, other, of),
    }


def _what(fact: Known) -> str:
    return name_of(type(fact.data)).removeprefix("workload.")
