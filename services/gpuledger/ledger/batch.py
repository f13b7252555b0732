"""Seal the new events of a batch as rows of one book, and bring up to date what follows from them.

Each event becomes a gapless chained row with the postings that follow from it (derive-and-diff for workloads);
balances and projections follow once the rows are written.
"""

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import NamedTuple

from gpuledger.database.engine import Writer
from gpuledger.database.meanwhile import Ahead
from gpuledger.events import budget, closing, workload
from gpuledger.events.envelope import Event, journal_json, make
from gpuledger.events.heartbeat import Heartbeat
from gpuledger.events.registry import Fact
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.clock import instant, seconds
from gpuledger.ledger import (
    charges,
    days,
    handles,
    orders,
    overtaken,
    projections,
    remapping,
    settlement,
    store,
    watermarks,
)
from gpuledger.ledger.accrual import Span, accrue
from gpuledger.ledger.applied import Applied, card, rules
from gpuledger.ledger.chain import JournalRow, microseconds, seal
from gpuledger.ledger.charges import Booking, Moved, Posted, Posting
from gpuledger.ledger.facts import CLOSERS, Known
from gpuledger.ledger.identity import store_texts
from gpuledger.ledger.mapping import MAPPING, Rules
from gpuledger.ledger.segments import History, derive
from gpuledger.ledger.store import BookHead

New = tuple[Event, Fact, bytes]
"""An event that the book does not know, its fact as the journal keeps it, and the digest of what was said."""

_TICK = dt.timedelta(microseconds=1)

_ASKING = frozenset({budget.PolicyApplied, closing.LedgerTicked, closing.LedgerRestated})
"""Facts that restate workloads of which nothing was told, so that the database is asked for them."""

POLICY_SOURCE = "gpuledger/policies"
"""Says which versions of policy data a cluster's book has taken over."""

RESTATED_AT_ONCE = 2_000
"""How many workloads a row restates at most when policy data is taken over: neither who writes it nor who reads it
need hold more of them in memory."""

SEALED_AT_ONCE = 32
"""Rows that are sealed between two looks at whether the server has answered: a fraction of a millisecond."""

SETTLEMENT_SOURCE = "gpuledger/settlement"
"""Carries expiry and rollover."""


class Left(NamedTuple):
    """Workloads that policy data restates in further rows.

    Args:
        policy_seq: The row that took it over, from which on the book says what follows from it.
        names: The workloads.
        part: The number of the next row.
    """

    policy_seq: int
    names: Sequence[str]
    part: int


@dataclass(slots=True)
class _Workload:
    facts: list[Known] = field(default_factory=list)
    posted: dict[charges.Key, Posted] = field(default_factory=dict)
    known_before: bool = False
    last_seq: int = 0
    closes: bool = False
    """Whether some fact can close a segment; before that nothing can be charged."""
    history: History | None = None
    """What follows from the facts, while no fact was added since."""

    def add(self, fact: Known) -> None:
        self.facts.append(fact)
        self.closes = self.closes or type(fact.data) in CLOSERS
        self.history = None

    def derived(self, rules: Rules) -> History:
        if self.history is None:
            self.history = derive(self.facts, rules)
        return self.history


class Batch:
    """The state of one batch while its rows are sealed, in order."""

    def __init__(
        self, writer: Writer, book: str, head: BookHead, calendar: Calendar, applied: Sequence[Applied]
    ) -> None:
        self.writer, self.book, self.head, self.calendar = writer, book, head, calendar
        self.booking = Booking(calendar, store.shut_periods(writer, book))
        self.ticked_before_s = head.ticked_s
        self.applied = list(applied)
        self.card, self.rules = card(applied), rules(applied, book)
        self.postings: list[tuple[JournalRow, Sequence[Posting]]] = []
        self.moved: Moved = {}
        self.workloads: dict[str, _Workload] = {}
        self.others: list[projections.Journalled] = []
        self.carried: Sequence[Posting] = ()
        self.left: Left | None = None
        self.accounts: set[str] = set()

    def run(self, events: Sequence[New], now: dt.datetime) -> BookHead:
        """Seal the events and write everything; return the new head."""
        first_at = max(now, self.head.last_recorded_at + _TICK)
        store.make_partitions(self.writer, self.head, first_at, first_at + _TICK * (len(events) - 1))
        last = {f.workload: n for n, (_, f, _) in enumerate(events) if isinstance(f, workload.WorkloadFact)}
        self._load_workloads(last.keys())
        refs = [store_texts(self.writer, event) for event, _, _ in events]
        # The database writes rows while later ones are sealed, except where sealing asks it something.
        first = self.head.last_seq + 1
        identities = [
            store.Identity(e.id, e.source, digest, n) for n, (e, _, digest) in enumerate(events, first)
        ]
        rows = self._sealed(events, refs, last, first_at)
        kinds = {type(fact) for _, fact, _ in events}
        asks = not kinds.isdisjoint(_ASKING)
        sealed = Ahead(list(rows) if asks else rows, SEALED_AT_ONCE)
        store.write_rows(self.writer, self.book, identities, sealed, self.postings)
        self.moved = charges.together(posting for _, of in self.postings for posting in of)
        store.add_to_balances(self.writer, self.book, self.moved)
        days.add(self.writer, self.book, self.moved)
        self._write_histories(
            [(s.last_seq, s.known_before, name) for name, s in self.workloads.items() if s.last_seq]
        )
        if not kinds.isdisjoint(handles.TELL):
            told = ((self.book, e.source, fact) for e, fact, _ in events if type(fact) in handles.TELL)
            handles.write(self.writer, handles.rows(told))
        projections.write_hosts(self.writer, self.book, self.others)
        orders.write_orders(self.writer, self.book, self.others, self.calendar)
        if Heartbeat in kinds:
            beats = [(e.source, instant(e.at_s)) for e, fact, _ in events if isinstance(fact, Heartbeat)]
            watermarks.advance(self.writer, self.book, beats)
        store.write_head(self.writer, self.head)
        return self.head

    def overtaken(self) -> list[Posting]:
        """Return what is posted back of adjustments that the batch has overtaken, once it is written."""
        return overtaken.due(self.writer, self.book, self.booking, self.moved)

    def settlement(self, back: Sequence[Posting] = ()) -> list[Posting]:
        """Return the expiry and rollover that follow anew from the batch and what was posted back, all written."""
        ticks = self.ticked_before_s, self.head.ticked_s
        moved = (self.moved, charges.together(back))
        return settlement.due(self.writer, self.book, self.booking, ticks, self.others, moved)

    def carry(self, due: Sequence[Posting], now: dt.datetime) -> BookHead:
        """Seal a row of the book's own that carries a settlement."""
        self.carried = due
        fact = closing.LedgerSettled(cluster=self.book, after_seq=self.head.last_seq)
        at_s = seconds(self.head.last_recorded_at)
        event, _ = make(id=f"settled/{fact.after_seq}", source=SETTLEMENT_SOURCE, at_s=at_s, data=fact)
        return self.run([(event, fact, event.digest)], now)

    def restate(self, left: Left, now: dt.datetime) -> BookHead:
        """Seal a row of the book's own that carries what further workloads cost under policy data."""
        self.left = left
        fact = closing.LedgerRestated(cluster=self.book, policy_seq=left.policy_seq, part=left.part)
        at_s = seconds(self.head.last_recorded_at)
        id_ = f"restated/{fact.policy_seq}/{fact.part}"
        event, _ = make(id=id_, source=POLICY_SOURCE, at_s=at_s, data=fact)
        return self.run([(event, fact, event.digest)], now)

    def _load_workloads(self, names: AbstractSet[str]) -> None:
        self.workloads |= {name: _Workload() for name in names}
        for name, known in store.facts_of(self.writer, self.book, sorted(names)):
            state = self.workloads[name]
            state.add(known)
            state.known_before = True
        before = sorted(name for name in names if self.workloads[name].known_before)
        for name, key, posted in store.posted_of(self.writer, self.book, before):
            self.workloads[name].posted[key] = posted

    def _sealed(
        self,
        events: Sequence[New],
        refs: Sequence[bytes | None],
        last: Mapping[str, int],
        recorded_at: dt.datetime,
    ) -> Iterator[tuple[JournalRow, bytes]]:
        """Yield the rows of the events with their seals, then move the head on; collect what they post."""
        _, seq, sealed, *_ = self.head
        recorded_us = microseconds(recorded_at)
        for number, (event, fact, digest) in enumerate(events):
            seq += 1
            name = getattr(fact, "workload", None)
            row = JournalRow(
                self.book,
                seq,
                recorded_at,
                instant(event.at_s),
                event.name,
                event.source,
                event.id,
                digest,
                name,
                getattr(fact, "run", None),
                journal_json(fact).decode(),
                refs[number],
            )
            # The last row that a batch tells of a workload carries what follows: a start whose end is known too
            # is never charged up to the tick and taken back.
            is_last = name is None or last.get(name, number) == number
            postings = self._postings(seq, event, fact, digest, is_last=is_last)
            sealed = seal(sealed, row, recorded_us + number, 1_000_000 * event.at_s, postings)
            if postings:
                self.postings.append((row, postings))
            yield row, sealed
            recorded_at += _TICK
        self.head = BookHead(self.book, seq, sealed, recorded_at - _TICK, self.head.ticked_s)

    def _postings(
        self, seq: int, event: Event, fact: Fact, digest: bytes, *, is_last: bool
    ) -> Sequence[Posting]:
        if isinstance(fact, workload.WorkloadFact):
            state = self.workloads[fact.workload]
            state.add(Known(fact, event.at_s, event.source, digest))
            state.last_seq = seq
            if not is_last or not self._is_charged(state):
                return ()
            return self._restate(seq, fact.workload, state, event.name)
        self.others.append(projections.Journalled(seq, event.at_s, fact))
        match fact:
            case budget.PolicyApplied():
                self.applied.append(Applied(seq, event.at_s, fact))
                restate = self._remap if fact.policy == MAPPING else self._reprice
                return restate(seq, event.at_s, event.name)
            case closing.LedgerTicked():
                return self._tick(seq, event.at_s, event.name)
            case closing.LedgerRestated():
                return self._restate_next(seq, event.name)
            case closing.LedgerSettled():
                return self.carried
            case closing.PeriodClosing():
                self.booking = self.booking._replace(shut=self.booking.shut | {fact.period})
            case closing.PeriodReopened():
                self.booking = self.booking._replace(shut=self.booking.shut - {fact.period})
        return postings_of(fact, event.at_s, self.booking)

    def _is_charged(self, state: _Workload) -> bool:
        """Tell whether anything can be posted for a workload; once the book ticks, every start is charged."""
        return state.closes or self.head.ticked_s is not None

    def _tick(self, seq: int, at_s: int, reason: str) -> Sequence[Posting]:
        """Charge open runs up to the tick, and take back what was set aside and has expired; never go back."""
        before_s = self.head.ticked_s
        if before_s is not None and at_s <= before_s:
            return ()
        self.head = self.head._replace(ticked_s=at_s)
        before = None if before_s is None else instant(before_s)
        lapsed = store.workloads_lapsed(self.writer, self.book, before, instant(at_s))
        restated = self._restate_all(seq, lapsed, reason)
        span = Span(before_s, at_s)
        return [
            *restated,
            *accrue(self.writer, self.book, span, self.booking, self.card, besides=self.workloads.keys()),
        ]

    def _reprice(self, seq: int, from_s: int, reason: str) -> Sequence[Posting]:
        """Restate every charge for time at or after the moment from which a rate card holds."""
        self.card = card(self.applied)
        names = store.workloads_after(self.writer, self.book, instant(from_s))
        self.left = Left(seq, sorted(names), 1)
        return self._restate_next(seq, reason)

    def _remap(self, seq: int, _from_s: int, reason: str) -> Sequence[Posting]:
        """Restate every workload that means something else now."""
        before, self.rules = self.rules, rules(self.applied, self.book)
        self.left = Left(seq, remapping.read_otherwise(self.writer, self.book, before, self.rules), 1)
        return self._restate_next(seq, reason)

    def _restate_next(self, seq: int, reason: str) -> Sequence[Posting]:
        """Restate as many of the workloads that are left as a row carries; the batch holds nothing besides."""
        if self.left is None:
            return ()
        policy_seq, names, part = self.left
        some, rest = names[:RESTATED_AT_ONCE], names[RESTATED_AT_ONCE:]
        postings = self._restate_all(seq, some, reason)
        self._write_histories([(policy_seq, True, name) for name in some])
        self.workloads.clear()
        self.left = Left(policy_seq, rest, part + (seq != policy_seq)) if rest else None
        return postings

    def _restate_all(self, seq: int, names: Sequence[str], reason: str) -> Sequence[Posting]:
        """Restate the workloads named, and those of this batch, which the database does not show yet."""
        self._load_workloads(set(names) - self.workloads.keys())
        return [
            posting
            for name, state in sorted(self.workloads.items())
            if self._is_charged(state)
            for posting in self._restate(seq, name, state, reason)
        ]

    def _restate(self, seq: int, workload_: str, state: _Workload, reason: str) -> Sequence[Posting]:
        """Post the difference between what follows from the facts and what stands."""
        want = charges.desired(state.derived(self.rules), self.calendar, self.card, self.head.ticked_s)
        postings = charges.difference(
            want, state.posted, workload=workload_, reason=reason, booking=self.booking
        )
        for key in want.keys() | state.posted.keys() if state.posted else want:
            amount = want.get(key, 0)
            if key not in state.posted or state.posted[key].amount != amount:
                state.posted[key] = Posted(amount, seq)
        return postings

    def _write_histories(self, told: Sequence[tuple[int, bool, str]]) -> None:
        """Bring up to date what follows for workloads: (newest sequence, were there rows before, name)."""
        histories = [
            (seq, known, name, self.workloads[name].derived(self.rules)) for seq, known, name in told
        ]
        projections.write_histories(self.writer, self.book, histories)
        if self.rules:
            self.accounts.update(account for *_, history in histories for account in history.accounts)


def postings_of(fact: Fact, at_s: int, booking: Booking) -> Sequence[Posting]:
    """Return the postings of a fact that is a command: grants, transfers, adjustments; a limit moves nothing."""
    grants: Mapping[str, int]
    if isinstance(fact, budget.Transferred | budget.AdjustmentPosted):
        day = orders.day_of(fact.period, at_s, booking.calendar)
        if isinstance(fact, budget.Transferred):
            return [charges.transfer(fact.account, fact.to, fact.gpu_ms, day, booking)]
        if fact.limit:
            return ()
        return charges.adjustments(fact.code, fact.account, fact.gpu_ms, day, booking, fact.corrects_seq)
    if isinstance(fact, budget.Granted):
        grants = {} if fact.limit else {fact.account: fact.gpu_ms}
    elif isinstance(fact, budget.PeriodOpened):
        grants = {grant.account: grant.gpu_ms for grant in fact.grants}
    else:
        return ()
    day, _ = booking.calendar.days_of(fact.period)
    return [
        charges.grant(account, gpu_ms, day, booking) for account, gpu_ms in sorted(grants.items()) if gpu_ms
    ]
