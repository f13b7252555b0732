"""The policy as a service: who leads a cluster runs its cycles, by interval and by event.

A leader holds its clusters' advisory locks on the one connection that it reads and writes on. Whoever has lost the
connection has lost the locks, and can write nothing any more: a paused process that wakes up finds it closed, because
the database ends a session that says nothing (docs/decisions/0035).
"""

import math
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum, auto
from typing import NoReturn

import sqlalchemy as sa

from gpuledger.database.engine import Writer, detached, reading_on
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.clock import Clock, instant, iso, seconds
from gpuledger.kernel.errors import Collided, Conflict, Fenced, GpuledgerError, Refused, Unavailable
from gpuledger.ledger import cycles, policy_status, queries
from gpuledger.ledger.cycle_decisions import KEPT_S
from gpuledger.policy.amending import Base
from gpuledger.policy.service import Issued, Issuing

POLL_S = 0.5
"""How often a leader looks for what wakes it, and a standby for a cluster without a leader."""

GAP_S = 1.0
"""The least time from the end of a cycle to one that an event asks for: what came in between is decided at once."""

REST = 4
"""An event waits for so many times the duration of the cycle before: cycles by event take a fifth of a core at most.
What submissions alone are answered with waits only for so many times the duration of the amendment before."""

SILENCE_S = 60
"""A session that says nothing for so long is ended by the database: that of a process that is paused, or gone, or that
computes a cycle for longer. For such a cycle the next session gets twice what it took."""

BACKOFF_S = (1, 2, 5, 10, 20, 30)
"""How long to wait for a database that is away, attempt by attempt."""


class _Asks(Enum):
    """What asks for a decision: the interval, or something that came in between."""

    INTERVAL = auto()
    EVENT = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What a process leads, and how.

    Args:
        clusters: Which clusters; every one that there is, later ones too, for none.
        every_s: The interval of cycles.
        kept_s: How long decisions are kept.
        silence_s: After so long without a word the database ends the session.
    """

    clusters: Sequence[str] = ()
    every_s: int = 60
    kept_s: int = KEPT_S
    silence_s: int = SILENCE_S


@dataclass(slots=True)
class _Led:
    """A cluster that this process leads.

    Args:
        decided_s: The instant of the newest cycle; None before the first.
        seq: The row of its book that it was read up to.
        due_s: When the interval asks for the next one.
        rested: When an event may ask for one, by the monotonic clock.
        base: What submissions are answered from; None when only a full cycle can answer them.
        answered: When they may be answered again, by the monotonic clock.
        complaint: What was said last of why there is no cycle.
    """

    decided_s: int | None = None
    seq: int = 0
    due_s: int = 0
    rested: float = 0.0
    base: Base | None = None
    answered: float = 0.0
    complaint: str = ""


class Leading:
    """Leads clusters, or stands by until it may.

    Args:
        engine: The database.
        clock: The present.
        calendar: Cuts days until the organisation has set its zone.
        terms: What it leads, and how.
        publish: Publishes what waits in the outbox.
        notify: Told what an operator may want to know.
    """

    def __init__(
        self,
        engine: sa.Engine,
        clock: Clock,
        calendar: Calendar,
        terms: Terms,
        *,
        publish: Callable[[], object] = lambda: None,
        notify: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._engine, self._clock, self._calendar = engine, clock, calendar
        self._terms, self._publish, self._notify = terms, publish, notify
        self._led: dict[str, _Led] = {}
        self._said: set[str] = set()
        self._silence_s = terms.silence_s
        self._news = threading.Event()

    def once(self, told: Callable[[str], object] = lambda _: None) -> None:
        """Run one cycle for each cluster that it may lead, and publish them.

        Args:
            told: Given the id of each, once they are recorded.

        Raises:
            Conflict: When another process leads one of them; the others have their cycle.
            Refused: When a cluster is not known, or has no healthy GPUs; likewise.
            Unavailable: When the database or broker cannot be reached.
        """
        without = list[GpuledgerError]()
        with self._session() as connection:
            issuing = self._issuing(connection)
            for cluster in self._wanted(connection):
                try:
                    told(self._lead_once(connection, issuing, cluster))
                except (Conflict, Refused) as error:
                    self._complain(cluster, error)
                    without.append(error)
        self._publish()
        if without:
            raise without[0]

    def _lead_once(self, connection: sa.Connection, issuing: Issuing, cluster: str) -> str:
        if not self._take(connection, cluster):
            raise Conflict(f"another process leads {cluster!r}", hint="gpuledger policy status says which")
        return self._issue(issuing, cluster, self._now_s()).cycle

    def run(self) -> NoReturn:
        """Lead, or stand by, for ever: whatever is away is waited for."""
        threading.Thread(target=self._publishing, name="publishing", daemon=True).start()
        failed = 0
        while True:
            try:
                with self._session() as connection:
                    while True:
                        self.turn(connection)
                        failed = 0
                        time.sleep(POLL_S)
            except (Unavailable, Fenced) as error:
                wait_s = BACKOFF_S[min(failed, len(BACKOFF_S) - 1)]
                failed += 1
                self._notify(f"{error.message}: leads nothing any more, tries again in {wait_s} s")
                time.sleep(wait_s)
            finally:
                self._led.clear()
                self._said.clear()

    def turn(self, connection: sa.Connection) -> None:
        """Take what has no leader, and run the cycles that are due."""
        issuing = self._issuing(connection, every_s=self._terms.every_s)
        wanted = self._wanted(connection)
        if not wanted:
            self._say_once("", "there is no cluster yet: waits for the first")
        for cluster in wanted:
            if cluster not in self._led and not self._take(connection, cluster):
                self._stand_by(connection, cluster)
                continue
            led = self._led[cluster]
            match self._asked(connection, cluster, led):
                case _Asks.INTERVAL:
                    self._cycle(issuing, cluster, led)
                case _Asks.EVENT:
                    self._answer(issuing, cluster, led)
                case None:
                    pass

    def _wanted(self, connection: sa.Connection) -> Sequence[str]:
        if self._terms.clusters:
            return self._terms.clusters
        with reading_on(connection) as reader:
            return queries.clusters(reader)

    def _take(self, connection: sa.Connection, cluster: str) -> bool:
        with reading_on(connection) as reader:
            if not policy_status.lead(reader, cluster):
                return False
        with reading_on(connection) as reader:  # what the leader before recorded last is seen only now
            word = cycles.newest_word(reader, cluster, at_s=self._now_s())
        led = self._led[cluster] = _Led()
        if word is not None:
            led.decided_s = word.newest.at_s
            led.seq = word.issued.issued.sequences.get(cluster, 0)
            led.due_s = self._next_s(word.issued.at_s)
        self._said.discard(cluster)
        self._notify(f"leads {cluster}")
        return True

    def _stand_by(self, connection: sa.Connection, cluster: str) -> None:
        if cluster in self._said:
            return
        with reading_on(connection) as reader:
            found = (status.leader for status in policy_status.read(reader) if status.cluster == cluster)
            leader = next(found, None) or "another process"
        self._say_once(cluster, f"stands by for {cluster}: {leader} leads it")

    def _complain(self, cluster: str, error: GpuledgerError) -> None:
        hint = f"; {error.hint}" if error.hint else ""
        self._notify(f"no cycle for {cluster}: {error.message}{hint}")

    def _say_once(self, about: str, text: str) -> None:
        if about not in self._said:
            self._said.add(about)
            self._notify(text)

    def _asked(self, connection: sa.Connection, cluster: str, led: _Led) -> _Asks | None:
        # Asked at each look, whatever follows from it: the database ends a session that says nothing.
        with reading_on(connection) as reader:
            is_woken = cycles.is_woken(reader, cluster, led.seq)
        now_s = self._now_s()
        if led.decided_s is not None and now_s <= led.decided_s:
            return None  # of one instant there is one cycle, and clocks may go back
        if now_s >= led.due_s:
            return _Asks.INTERVAL  # however many were missed: there is one for now
        return _Asks.EVENT if is_woken and not led.complaint else None

    def _answer(self, issuing: Issuing, cluster: str, led: _Led) -> None:
        """Decide about what was submitted, if that is all that happened; else there is a full cycle once one may be."""
        began = time.monotonic()
        if led.base is not None and began >= led.answered:
            at_s = self._now_s()
            try:
                amended = issuing.amend(led.base, at_s)
            except Refused:
                # A state that contradicts itself: the full cycle says what is wrong, if it still is.
                amended = None
            led.base = None if amended is None else amended.base
            if amended is not None:
                led.seq = amended.base.seq
                if amended.fact is not None:
                    led.decided_s = at_s
                    self._news.set()
                    amended.base.prepared.settled()
                led.answered = time.monotonic() + REST * (time.monotonic() - began)
        if led.base is None and time.monotonic() >= led.rested:
            self._cycle(issuing, cluster, led)

    def _cycle(self, issuing: Issuing, cluster: str, led: _Led) -> None:
        at_s, began = self._now_s(), time.monotonic()
        led.due_s = self._next_s(at_s)
        led.base = None
        try:
            issued = self._issue(issuing, cluster, at_s)
        except Refused as error:
            complaint = error.message.replace(iso(instant(at_s)), "")  # the same at each interval
            if complaint != led.complaint:
                self._complain(cluster, error)
            led.complaint = complaint
            return
        led.complaint = ""
        led.decided_s, led.seq = at_s, issued.sequences.get(cluster, 0)
        ended = time.monotonic()
        led.rested = ended + max(GAP_S, REST * (ended - began))
        self._news.set()
        led.base, led.answered = issued.base, 0.0
        if led.base is not None:
            led.base.prepared.settled()  # before anybody waits for it

    def _issue(self, issuing: Issuing, cluster: str, at_s: int) -> Issued:
        """Issue a cycle; where it took longer than the session may be silent, say so and grant the next one more."""
        began, allowed_s = time.monotonic(), self._silence_s
        try:
            return issuing.issue(cluster, at_s)
        except Unavailable as error:
            took_s = math.ceil(time.monotonic() - began)
            if isinstance(error, Collided) or took_s <= allowed_s:
                raise
            self._silence_s = 2 * took_s
            raise Unavailable(
                f"the cycle of {cluster} took {took_s} s, and the database ended its session after {allowed_s} s"
                f" without a word; the next session may be silent for {self._silence_s} s",
                hint=f"gpuledger policy run --silence {self._silence_s}",
            ) from error

    def _publishing(self) -> None:
        """Publish after each cycle; a broker that is away keeps nobody from deciding."""
        complaint = ""
        while True:
            self._news.wait(BACKOFF_S[-1])
            self._news.clear()
            try:
                self._publish()
                complaint = ""
            except GpuledgerError as error:
                if error.message != complaint:
                    self._notify(f"not published yet: {error.message}")
                complaint = error.message

    def _issuing(self, connection: sa.Connection, *, every_s: int | None = None) -> Issuing:
        return Issuing(
            connection,
            self._clock,
            self._calendar,
            kept_s=self._terms.kept_s,
            every_s=every_s,
            guard=_still_leads,
        )

    @contextmanager
    def _session(self) -> Iterator[sa.Connection]:
        with detached(self._engine) as connection:
            where = f"{policy_status.APPLICATION} {socket.gethostname()[:30]} {os.getpid()}"
            for name, value in (
                ("application_name", where),
                ("idle_session_timeout", f"{self._silence_s}s"),
                ("idle_in_transaction_session_timeout", f"{self._silence_s}s"),
                # A machine that is gone says nothing, not even goodbye.
                ("tcp_keepalives_idle", "10"), ("tcp_keepalives_interval", "5"), ("tcp_keepalives_count", "3"),
            ):  # fmt: skip
                connection.execute(
                    sa.text("SELECT set_config(:name, :value, false)"), {"name": name, "value": value}
                )
            connection.commit()
            yield connection

    def _next_s(self, at_s: int) -> int:
        return (at_s // self._terms.every_s + 1) * self._terms.every_s

    def _now_s(self) -> int:
        return seconds(self._clock.now())


def _still_leads(writer: Writer, cluster: str) -> None:
    if not policy_status.leads(writer, cluster):
        raise Fenced(
            f"this process leads {cluster!r} no more", hint="nothing was written; it stands by to lead again"
        )
