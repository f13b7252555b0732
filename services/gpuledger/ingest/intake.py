"""Events of any book -> the ledger and the telemetry store, one transaction per book."""

import logging
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Protocol, TypeVar

import sqlalchemy as sa

from gpuledger.database.engine import Reader, Writer, reading
from gpuledger.database.meanwhile import Work
from gpuledger.events import budget
from gpuledger.events.envelope import ORG_BOOK, Event, book_of, facts_by_kind, make
from gpuledger.events.host import HealthObserved, HostFact
from gpuledger.events.registry import Fact
from gpuledger.events.telemetry import Sampled
from gpuledger.events.workload import WorkloadFact
from gpuledger.ingest import telemetry
from gpuledger.kernel.accounts import lineage
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.clock import Clock
from gpuledger.ledger import org_orders, queries, remapping, store, ticking
from gpuledger.ledger.append import Appended, append
from gpuledger.ledger.attempts import booked
from gpuledger.ledger.health_states import state_changes
from gpuledger.ledger.identity import keys_of, people_of
from gpuledger.ledger.mapping import Rules
from gpuledger.ledger.periods import open_periods
from gpuledger.ledger.ticking import Ticked

_LOG = logging.getLogger(__name__)

ACCOUNT_SOURCE = "gpuledger/accounts"

ZONE_SOURCE = "gpuledger/settings"


@cache
def _fields_of_accounts(kind: type[Fact]) -> Sequence[str]:
    """Return the fields of a class of facts that name accounts which must exist before."""
    if issubclass(kind, budget.AccountCreated):
        return ()
    return [field for field in ("account", "to") if field in kind.__struct_fields__]


STANDSTILL_S = 20
"""A worker that does nothing for so long within a transaction is taken for paused. Others wait up to a minute."""

_OF_HOSTS = (HostFact, HealthObserved)
"""Facts from which the health of a host is concluded."""

Result = TypeVar("Result")


class Guard(Protocol):
    """Called inside each transaction, to check a claim and to move positions with the last one.

    A transaction that is made again calls it again; what the first call wrote was undone.
    """

    def __call__(self, writer: Writer, *, last: bool) -> None:
        """Check; and when this is the batch's last transaction, write what belongs to the whole batch."""
        ...


@dataclass(slots=True)
class Taken:
    """What a batch changed: (source, id) of new events, and how many were known already."""

    accepted: set[tuple[str, str]] = field(default_factory=set)
    repeated: int = 0


def _in_turn(events: Sequence[Event]) -> Sequence[tuple[str, bool, Sequence[Event]]]:
    """Return (book, whether they are samples, events): one batch for each, two of ``~org`` where a zone comes late."""
    batches: dict[tuple[str, bool, bool], list[Event]] = {}
    facts_came = zone_came_late = False
    for event in events:
        book = book_of(event.data)
        if book != ORG_BOOK:
            facts_came = True
        elif facts_came and isinstance(event.data, budget.PolicyChanged) and event.data.timezone:
            zone_came_late = True
        is_late = book == ORG_BOOK and zone_came_late
        batches.setdefault((book, isinstance(event.data, Sampled), is_late), []).append(event)
    return [(book, is_telemetry, batch) for (book, is_telemetry, _), batch in batches.items()]


class Intake:
    """Books events; remembers which accounts exist so that it need not ask for each batch.

    Args:
        engine: The database.
        clock: Stamps recorded times.
        default_calendar: Cuts days until the organisation has set its zone.
    """

    def __init__(self, engine: sa.Engine, clock: Clock, default_calendar: Calendar) -> None:
        self.engine, self.clock, self._default_calendar = engine, clock, default_calendar
        with reading(engine) as reader:
            self._accounts = set(queries.account_paths(reader))
            booked = queries.booked_accounts(reader) if remapping.versions(reader) else set()
            self._is_zone_told = queries.is_zone_set(reader) or default_calendar == Calendar()
            is_begun = bool(queries.clusters(reader))
        self._people: set[str] = set()
        if is_begun:
            self._ensure_zone(None)
        # Whoever booked what a mapping led to may have ended before the account was created.
        self.ensure_accounts(booked)

    def take(
        self, events: Sequence[Event], guard: Guard | None = None, meanwhile: Work | None = None
    ) -> Taken:
        """Book the events; ``guard`` runs in every transaction and moves positions in the last.

        What the organisation orders about its zone and the facts of clusters are booked in turn: in one batch as in
        many, the zone counts for the facts that follow it, and is refused after facts that are cut by another.

        A crash between two transactions is harmless: positions stand still, and the events that are
        read again are known by their identity.

        Args:
            events: The events, of whatever books.
            guard: Checks the right to book them.
            meanwhile: Done while the database is busy with them.

        Raises:
            Fenced: When the guard finds that this worker's time is over.
            Unavailable: When the database cannot be reached.
        """
        taken = Taken()
        work, led_to = _in_turn(events), set[str]()
        # Samples are the large stream, and name neither an account nor a person.
        told = [event for _, is_telemetry, batch in work if not is_telemetry for event in batch]
        self._ensure_accounts(told, guard)
        self._ensure_people(told, guard)
        for number, (book, is_telemetry, batch) in enumerate(work, 1):
            if book != ORG_BOOK:
                self._ensure_zone(guard)
            book_batch = partial(self._count if is_telemetry else self._append, book=book, batch=batch)
            appended = self._booked(book, book_batch, guard, last=number == len(work), meanwhile=meanwhile)
            taken.accepted.update(appended.accepted)
            taken.repeated += appended.repeated
            led_to |= appended.accounts
        self.ensure_accounts(led_to)
        if not work and guard is not None:
            self._booked(ORG_BOOK, lambda _: None, guard, last=True)
        return taken

    def _booked(
        self,
        book: str,
        work: Callable[[Writer], Result],
        guard: Guard | None,
        *,
        last: bool = False,
        meanwhile: Work | None = None,
    ) -> Result:
        """Do work in a transaction of its own, the guard's in it."""

        def guarded(writer: Writer) -> Result:
            result = work(writer)
            if guard is not None:
                guard(writer, last=last)
            return result

        return booked(
            self.engine, book, guarded, standstill_s=STANDSTILL_S, clock=self.clock, meanwhile=meanwhile
        )

    def _append(self, writer: Writer, book: str, batch: Sequence[Event]) -> Appended:
        appended = append(writer, book, batch, clock=self.clock, calendar=self._calendar(writer))
        self._conclude(writer, book, batch)
        return appended

    def _count(self, writer: Writer, book: str, batch: Sequence[Event]) -> Appended:
        fresh = telemetry.count(writer, book, batch)
        return Appended(accepted=list(fresh), repeated=len(batch) - len(fresh))

    def open_periods(self, clusters: Sequence[str], guard: Guard | None = None) -> dict[str, list[str]]:
        """Open the periods that have movements and were not opened; return them by cluster.

        Raises:
            Fenced: When the guard finds that this worker's time is over.
        """
        opened = {}
        for cluster in sorted(set(clusters) - {ORG_BOOK}):
            periods = self._booked(cluster, partial(self._open_periods, cluster=cluster), guard)
            if periods:
                opened[cluster] = periods
        return opened

    def tick(
        self, clusters: Collection[str], at_s: int, guard: Guard | None = None, *, running: bool = True
    ) -> set[str]:
        """Move the clocks of the clusters, and of every cluster whose clock runs already; return those that moved.

        Args:
            clusters: Clusters whose clock is to run from now on.
            at_s: A full hour that has been, in seconds since the epoch.
            guard: Runs in every transaction, one a cluster.
            running: Whether to move the clocks that run already too.

        Raises:
            Fenced: When the guard finds that this worker's time is over.
        """
        due = set(clusters)
        if running:
            with reading(self.engine) as reader:
                due.update(queries.ticks(reader))
        moved = set()
        for cluster in sorted(due - {ORG_BOOK}):
            done = self._booked(cluster, partial(self._tick, cluster=cluster, at_s=at_s), guard)
            if not done.repeated:
                moved.add(cluster)
        return moved

    def _open_periods(self, writer: Writer, cluster: str) -> list[str]:
        return open_periods(writer, cluster, clock=self.clock, calendar=self._calendar(writer))

    def _tick(self, writer: Writer, cluster: str, at_s: int) -> Ticked:
        return ticking.tick(writer, cluster, at_s, clock=self.clock, calendar=self._calendar(writer))

    def _conclude(self, writer: Writer, book: str, batch: Sequence[Event]) -> None:
        """Journal what a batch means for the health of the hosts that it speaks of."""
        told = [facts for kind, facts in facts_by_kind(batch).items() if issubclass(kind, _OF_HOSTS)]
        hosts = {fact.host for facts in told for fact in facts}
        if hosts and (concluded := state_changes(writer, book, hosts)):
            append(writer, book, concluded, clock=self.clock, calendar=self._calendar(writer))

    def _calendar(self, connection: Reader | Writer) -> Calendar:
        # Asked in every transaction: the organisation's zone may have been set since, by another process too.
        return queries.calendar(connection, self._default_calendar)

    def _ensure_zone(self, guard: Guard | None) -> None:
        """Write a zone down where this process's settings say another than UTC, for others may be started without them.

        Before the first fact it is that of the settings; what is booked without a zone was cut by UTC, and goes on so.
        """
        if self._is_zone_told:
            return

        def tell(writer: Writer) -> None:
            store.lock_book(writer, ORG_BOOK)
            if queries.is_zone_set(writer):
                return
            if not queries.clusters(writer):
                org_orders.wait_for_beginners(writer)  # processes with other settings, which find no zone
            calendar = Calendar() if queries.clusters(writer) else self._default_calendar
            fact = budget.PolicyChanged(
                policy="organisation",
                timezone=calendar.timezone,
                period=budget.PERIODS[0],
                by=budget.Part.INGEST,
            )
            event, _ = make(id=f"zone/{calendar.timezone}", source=ZONE_SOURCE, at_s=0, data=fact)
            append(writer, ORG_BOOK, [event], clock=self.clock, calendar=calendar)

        self._booked(ORG_BOOK, tell, guard)
        self._is_zone_told = True
        with reading(self.engine) as reader:
            zone = self._calendar(reader).timezone
        if zone != self._default_calendar.timezone:
            _LOG.warning(
                "GPULEDGER_TIMEZONE is %s and does not count: days of this ledger are cut by %s",
                self._default_calendar.timezone,
                zone,
            )

    def _ensure_people(self, events: Sequence[Event], guard: Guard | None) -> None:
        """Give people a key on first sight, before books that meet the same new person could wait for each other."""
        fresh = people_of(events) - self._people
        if fresh:
            self._booked(ORG_BOOK, partial(keys_of, people=fresh), guard)
            self._people |= fresh

    def _ensure_accounts(self, events: Sequence[Event], guard: Guard | None) -> None:
        """Create accounts on first sight, before anything is booked to them.

        Of workloads whose names are mapped it is known only then to whom they lead.
        """
        named = {
            (account, fact.cluster if issubclass(kind, WorkloadFact) else None)
            for kind, facts in facts_by_kind(events).items()
            for field in _fields_of_accounts(kind)
            for fact in facts
            if (account := getattr(fact, field)) is not None
        }
        fresh = {(account, cluster) for account, cluster in named if account not in self._accounts}
        if any(cluster is not None for _, cluster in fresh):
            with reading(self.engine) as reader:
                versions = remapping.versions(reader)
            mapped = {cluster for _, cluster in fresh if cluster is not None and Rules(versions, cluster)}
            fresh = {(account, cluster) for account, cluster in fresh if cluster not in mapped}
        self.ensure_accounts({account for account, _ in fresh}, guard)

    def ensure_accounts(self, accounts: Collection[str], guard: Guard | None = None) -> None:
        """Create the accounts that do not exist, and those above them, in the ``~org`` book.

        Raises:
            Fenced: When the guard finds that this worker's time is over.
        """
        fresh = sorted({node for account in accounts for node in lineage(account)} - self._accounts)
        if not fresh:
            return
        created = [
            make(
                id=f"account/{account}",
                source=ACCOUNT_SOURCE,
                at_s=0,
                data=budget.AccountCreated(
                    account=account, by=budget.Part.INGEST, reason=budget.Word.FIRST_SIGHT
                ),
            )[0]
            for account in fresh
        ]
        self._booked(ORG_BOOK, partial(self._append, book=ORG_BOOK, batch=created), guard)
        self._accounts.update(fresh)
