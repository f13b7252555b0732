"""Facts about a workload -> its segments and waits. Pure, total, and blind to order of arrival.

A segment is the longest interval of a run with constant GPUs, account, class and hosts. Both follow from the *set*
of facts: the start that counts, the stop that counts, and the changes between them.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec
from msgspec.structs import replace

from gpuledger.events import workload as events
from gpuledger.events.decision import DecisionMade
from gpuledger.events.incident import CreditGranted, CreditReversed, CreditWithdrawn
from gpuledger.ledger.credits import Credit, Occupancy, credit
from gpuledger.ledger.facts import STOPS, Known, winner
from gpuledger.ledger.holds import Hold, Span, admitted, holds
from gpuledger.ledger.mapping import AS_GIVEN, Foreign, Meaning, Rules, Understood
from gpuledger.ledger.requests import LATEST_S, Request, asked_at, requests
from gpuledger.ledger.waits import Wait, again, waits

UNMAPPED = "unmapped/unknown"
"""The visible account of runs that nothing says an owner of (law 7)."""

NOBODY = "-"
"""The user of runs whose source names none."""


# Structs, not dataclasses: a rebuild makes several for each row of the journal, and hashes them.
class Segment(msgspec.Struct, frozen=True, order=True, gc=False, cache_hash=True):
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


class History(msgspec.Struct, frozen=True, gc=False):
    """All that follows from the facts known of one workload."""

    segments: tuple[Segment, ...]
    waits: tuple[Wait, ...]
    holds: tuple[Hold, ...] = ()
    credits: tuple[Credit, ...] = ()
    is_admitted: bool = False
    """Whether some admission decided about it: only then it has, or had, holds."""

    @property
    def accounts(self) -> set[str]:
        """Everybody who pays, or would."""
        return {
            *(segment.account for segment in self.segments),
            *(wait.account for wait in self.waits),
            *(hold.account for hold in self.holds),
        }


class _Run(msgspec.Struct, frozen=True):
    """What counts of one run, and what follows from it."""

    name: str
    attempt: int
    started: Known
    stop: Known | None
    end_s: int | None
    """When it stopped, as far as an estimate is believed; None while it goes on."""
    segments: Sequence[Segment]
    claims: "_Claims"


class _Claims(msgspec.Struct, frozen=True):
    """All that is claimed of one run, contradictions included."""

    started: list[Known] = []
    stops: list[Known] = []
    changes: list[Known] = []
    checkpoints: list[Known] = []
    credits: list[Known] = []


_KIND_OF: Mapping[type, str] = {
    events.Started: "started",
    **dict.fromkeys(STOPS, "stops"),
    events.Resized: "changes",
    events.ClassChanged: "changes",
    events.Checkpointed: "checkpoints",
    **dict.fromkeys((CreditGranted, CreditWithdrawn, CreditReversed), "credits"),
}
"""Where a fact about a run is kept among its claims; others say nothing of it that is held or charged."""


def derive(facts: Iterable[Known], rules: Rules = AS_GIVEN) -> History:
    """Return the segments, waits, holds and credits that follow from all facts known of one workload.

    A run without a start has no segment yet; one that stopped before it started holds nothing and
    is charged nothing. The result depends on the set of facts and the mapping only.
    """
    unfolding = Unfolding(rules)
    for fact in facts:
        unfolding.add(fact)
    return unfolding.history()


class Unfolding:
    """What follows from the facts of one workload, while they become known one by one.

    A fact about one run leaves what followed from the others as it was: a long history is not derived
    from its beginning for each of its facts.

    Args:
        rules: What foreign names mean.
    """

    __slots__ = (
        "_asked", "_claims", "_decisions", "_over", "_requests", "_rules", "_runs", "_stale", "_submitted", "_updated",
    )  # fmt: skip

    def __init__(self, rules: Rules = AS_GIVEN) -> None:
        self._rules = rules
        self._asked: Understood | None = None
        self._requests: Sequence[Request] = ()
        self._submitted: list[Known] = []
        self._updated: list[Known] = []
        self._over: list[Known] = []
        self._decisions: dict[int, list[Known]] = {}
        self._claims: dict[str, _Claims] = {}
        self._runs: dict[str, _Run] = {}
        self._stale: set[str] = set()

    def add(self, fact: Known) -> None:
        """Take in a fact; one that speaks of nothing that is held or waited for changes nothing."""
        data = fact.data
        kind = _KIND_OF.get(type(data))
        run: str | None = getattr(data, "run", None) if kind is not None else None
        if kind is not None and run is not None:
            claims = self._claims.get(run)
            if claims is None:
                claims = self._claims[run] = _Claims()
            getattr(claims, kind).append(fact)
            self._stale.add(run)
        elif isinstance(data, events.Submitted):
            self._submitted.append(fact)
            self.remap(self._rules)
        elif isinstance(data, events.Updated):
            self._updated.append(fact)
            self.remap(self._rules)
        elif isinstance(data, events.Ended):
            self._over.append(fact)
        elif isinstance(data, DecisionMade):
            self._decisions.setdefault(data.attempt, []).append(fact)
            self._stale.update(self._claims)

    def remap(self, rules: Rules) -> None:
        """Read all that was said, and will be, by other rules."""
        self._rules = rules
        self._asked = rules.understood(self._submitted)
        self._requests = requests(self._asked, self._updated, rules) if self._updated else ()
        self._stale.update(self._claims)

    def history(self) -> History:
        """Return what follows from all facts so far."""
        for name in self._stale:
            if (run := self._run(name, self._claims[name])) is not None:
                self._runs[name] = run
        self._stale.clear()
        runs = list(self._runs.values())
        if len(runs) > 1:  # of runs that start together the one named last is the newest
            runs.sort(key=lambda run: (run.started.at_s, run.name))
            segments: Sequence[Segment] = [segment for run in runs for segment in run.segments]
        else:
            segments = runs[0].segments if runs else ()
        anew = again(self._submitted) if len(self._submitted) > 1 else ()
        over = winner(self._over) if self._over else None
        if over is not None and any(at_s >= over.at_s for at_s, _ in anew):
            over = None  # somebody submitted it anew since
        return History(
            tuple(segments),
            tuple(waits(over, self._asked, anew, runs, self._requests)) if self._asked else (),
            self._holds(runs, is_over=over is not None) if self._decisions else (),
            tuple([given for run in runs if run.claims.credits for given in _credits(run)]),
            bool(self._decisions),
        )

    def _run(self, name: str, claims: _Claims) -> _Run | None:
        started = winner(claims.started)
        if started is None:
            return None
        start = started.data
        assert isinstance(start, events.Started)  # noqa: S101 - narrows the type; the claims sorted it there
        decision = admitted(self._decisions.get(start.attempt, ()), started.at_s) if self._decisions else None
        stop = winner(claims.stops)
        limited = asked = self._asked
        if self._requests:
            limited = self._asked_at(stop.at_s if stop else LATEST_S)
            asked = self._asked_at(started.at_s)
        limit_s = limited.asked.time_limit_s if limited else None
        end_s = _end_s(started, stop, limit_s)
        capped_s = started.at_s + limit_s if limit_s and end_s is None else None
        meaning = self._meaning(start, started.at_s, asked)
        whole = _whole(started, stop, (end_s, capped_s), asked, decision, meaning)
        segments: Sequence[Segment] = (
            _cut(whole, _in_order(claims.changes)) if claims.changes else [whole] if _holds(whole) else ()
        )
        if self._requests:
            segments = _paid(segments, list(self._payers(start, started.at_s)))
        return _Run(name, start.attempt, started, stop, end_s, segments, claims)

    def _asked_at(self, at_s: int) -> Understood | None:
        return asked_at(self._requests, at_s) if self._requests else self._asked

    def _payers(self, start: events.Started, started_s: int) -> Iterator[tuple[int, str]]:
        """Yield from when on which account pays for a run, as was told after its start.

        The account that a start names goes before that of its workload until somebody names another.
        """
        for request in self._requests[1:]:
            if request.from_s > started_s:
                understood = request.understood
                if start.account and (request.account_s is None or request.account_s <= started_s):
                    foreign = understood.foreign.under(start.account)
                    yield request.from_s, self._rules.meaning(foreign, understood.at_s).account
                else:
                    yield request.from_s, understood.meaning.account

    def _meaning(self, start: events.Started, started_s: int, asked: Understood | None) -> Meaning:
        """Return what a run means: a start that names an account of its own is mapped with that."""
        if not start.account:
            return asked.meaning if asked else Meaning(UNMAPPED)
        if asked is None:
            return self._rules.meaning(Foreign(start.account), started_s)
        return self._rules.meaning(asked.foreign.under(start.account), asked.at_s)

    def _holds(self, runs: Sequence[_Run], *, is_over: bool) -> tuple[Hold, ...]:
        spans: dict[int, list[Span]] = {}
        for run in runs:
            spans.setdefault(run.attempt, []).append(Span(run.name, run.started.at_s, run.end_s))
        return holds(self._decisions, spans, is_over=is_over)


def _credits(run: _Run) -> list[Credit]:
    if run.stop is None or run.end_s is None:
        return []
    assert isinstance(run.stop.data, events.Stopped)  # noqa: S101 - narrows the type; the claims sorted it there
    charged = [(s.from_s, s.to_s) for s in run.segments if s.klass == "allocated" and s.to_s is not None]
    stopped = Occupancy(run.started.at_s, run.end_s, charged, run.stop.data.reason)
    return credit(run.claims.credits, run.claims.checkpoints, stopped)


def _in_order(changes: Sequence[Known]) -> Sequence[Known]:
    by_instant: dict[tuple[int, type], list[Known]] = {}
    for fact in changes:
        by_instant.setdefault((fact.at_s, type(fact.data)), []).append(fact)
    counting = [w for candidates in by_instant.values() if (w := winner(candidates)) is not None]
    return sorted(counting, key=lambda f: (f.at_s, type(f.data).__name__))


def _end_s(started: Known, stop: Known | None, limit_s: int | None) -> int | None:
    """Return when a run stopped; its limit, which may be told after an estimate, bounds the estimate."""
    if stop is None:
        return None
    is_estimated = bool(getattr(stop.data, "estimated", False))
    return min(stop.at_s, started.at_s + limit_s) if is_estimated and limit_s else stop.at_s


def _whole(
    started: Known,
    stop: Known | None,
    until: tuple[int | None, int | None],
    submitted: Understood | None,
    decision: DecisionMade | None,
    meaning: Meaning,
) -> Segment:
    """Return the run as it would be had nothing changed in it; ``until`` is its end, or where it is capped."""
    start, asked = started.data, submitted.asked if submitted else None
    assert isinstance(start, events.Started)  # noqa: S101 - narrows the type; _run chose it
    return Segment(
        workload=start.workload,
        run=start.run,
        from_s=started.at_s,
        to_s=until[0],
        account=meaning.account,
        klass=decision.klass if decision else start.klass or _mapped_class(asked, meaning),
        user=start.user or (asked.user if asked else NOBODY),
        gpus_milli=start.gpus_milli,
        gpu_model=start.gpu_model or (asked.gpu_model if asked else None),
        hosts=tuple(sorted(start.hosts)),
        estimated=bool(stop and getattr(stop.data, "estimated", False)),
        capped_s=until[1],
    )


def _cut(current: Segment, changes: Sequence[Known]) -> list[Segment]:
    """Return the segments of a run: cut where it changed."""
    end_s = current.to_s
    pieces: list[Segment] = []
    for change in changes:
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
    return [piece for piece in pieces if _holds(piece)]


def _paid(segments: Sequence[Segment], payers: Sequence[tuple[int, str]]) -> Sequence[Segment]:
    """Return the segments of a run cut where another account pays; nobody pays beyond the limit."""
    found: list[Segment] = []
    for segment in segments:
        current = segment
        until_s = current.capped_s if current.to_s is None else current.to_s
        for at_s, account in payers:
            if until_s is not None and at_s >= until_s:
                break
            if account == current.account:
                continue
            if at_s > current.from_s:
                found.append(replace(current, to_s=at_s, capped_s=None))
                current = replace(current, from_s=at_s)
            current = replace(current, account=account)
        found.append(current)
    return found


def _holds(segment: Segment) -> bool:
    return segment.gpus_milli > 0 and (segment.to_s is None or segment.to_s > segment.from_s)


def _changed(segment: Segment, change: Known) -> Segment:
    if isinstance(change.data, events.Resized):
        hosts = tuple(sorted(change.data.hosts))
        return replace(segment, gpus_milli=change.data.gpus_milli, hosts=hosts)
    assert isinstance(change.data, events.ClassChanged)  # noqa: S101 - the only other kind of change
    return replace(segment, klass=change.data.klass)


def _mapped_class(asked: events.Submitted | None, meaning: Meaning) -> str:
    """Minimum runtime 0 is how a user, or a rule, asks to run unallocated; the built-in rule says allocated."""
    minimum_s = meaning.minimum_s(asked.minimum_runtime_s if asked else None)
    return "allocated" if minimum_s else "unallocated"
