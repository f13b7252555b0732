"""The thin room around the policy: read the state in one snapshot, decide, record."""

import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import sqlalchemy as sa

from gpuledger.database.engine import Reader, Writer, detached, reading_on
from gpuledger.events.budget import AllocationAmended
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.clock import Clock, seconds
from gpuledger.kernel.collecting import without_collecting
from gpuledger.ledger import cycles, policy_status, queries
from gpuledger.ledger.admission import SLICE_S
from gpuledger.ledger.attempts import booked
from gpuledger.ledger.cycle_decisions import KEPT_S
from gpuledger.ledger.knobs import read_config
from gpuledger.ledger.landing import land
from gpuledger.policy.amending import Amended, Base, amend
from gpuledger.policy.incremental import prepare
from gpuledger.policy.reading import read_state
from gpuledger.policy.recorded import whole
from gpuledger.policy.recording import Decided, record, record_amendment
from gpuledger.policy.status import note

STANDSTILL_S = 20
"""A transaction in which nothing happens for so long is taken for that of a paused process, and ended."""


class Issued(NamedTuple):
    """A cycle that was asked for: the one that was recorded for the instant, if there was one.

    Args:
        cycle: Its id.
        sequences: Vector book -> sequence that its state was read under.
        read: Makes ``published``.
        base: What submissions that follow are answered from; None where another recorded it.
    """

    cycle: str
    sequences: Mapping[str, int]
    read: Callable[[], dict[str, Any]]
    base: Base | None = None

    @property
    def published(self) -> dict[str, Any]:
        """The cycle under its published keys, made anew at each reading."""
        return self.read()


def issue_cycle(
    engine: sa.Engine, cluster: str, *, at_s: int, clock: Clock, calendar: Calendar, dry_run: bool = False
) -> dict[str, Any]:
    """Run the policy once for a cluster and, unless it is a dry run, record and queue the outcome.

    Before it, runs of hard accounts whose hold has run out get their next slice or become unallocated.

    Returns:
        The cycle under its published keys; the one that was recorded for the instant, if there was one already.

    Raises:
        NotFound: When the cluster has no book.
        Refused: When it has no healthy GPUs.
        Unavailable: When the database cannot be reached, or gave each attempt up.
    """
    with detached(engine) as connection:
        if dry_run:
            return _decide(connection, cluster, at_s)[0].published
        return Issuing(connection, clock, calendar).issue(cluster, at_s).published


class Issuing:
    """Runs cycles on one connection: whoever holds a lock on it writes under that lock, or not at all.

    Args:
        connection: A connection of its own, outside any transaction.
        clock: Stamps what is written.
        calendar: Cuts days until the organisation has set its zone.
        kept_s: How long decisions are kept.
        every_s: The interval of cycles, of who runs them at one.
        guard: Called in every transaction that writes; raises when it must not.
    """

    def __init__(
        self,
        connection: sa.Connection,
        clock: Clock,
        calendar: Calendar,
        *,
        kept_s: int = KEPT_S,
        every_s: int | None = None,
        guard: Callable[[Writer, str], None] = lambda _, __: None,
    ) -> None:
        self._connection, self._clock, self._calendar = connection, clock, calendar
        self._kept_s, self._every_s, self._guard = kept_s, every_s, guard

    def issue(self, cluster: str, at_s: int) -> Issued:
        """Land, read, decide and record; see ``issue_cycle``."""
        with without_collecting():
            return self._issue(cluster, at_s)

    def _issue(self, cluster: str, at_s: int) -> Issued:
        began = time.monotonic()
        if abs(seconds(self._clock.now()) - at_s) < SLICE_S:  # a cycle of another time moves nobody now
            booked(self._connection, cluster, partial(self._land, cluster), standstill_s=STANDSTILL_S)
        decided, base = _decide(self._connection, cluster, at_s, self._every_s)
        keep = partial(self._keep, decided, began)
        if booked(self._connection, cluster, keep, standstill_s=STANDSTILL_S):
            return Issued(decided.issued.cycle, decided.issued.sequences, lambda: decided.published, base)
        with reading_on(self._connection) as reader:
            found = cycles.of_instant(reader, cluster, at_s)
            assert found is not None  # noqa: S101 - it was there, and nothing takes it away
            published = whole(reader, cluster, found)
        return Issued(found.issued.cycle, found.issued.sequences, lambda: published)

    def amend(self, base: Base, at_s: int) -> Amended | None:
        """Decide about what was submitted after a cycle, and record that; None when it calls for a full cycle.

        Args:
            base: What was decided before.
            at_s: The instant, after that of the newest of it.
        """
        with without_collecting(), reading_on(self._connection) as reader:
            found = amend(reader, base, at_s)
        if found is None or found.fact is None:
            return found
        cluster = base.issued.cluster
        keep = partial(self._keep_amendment, base, found, found.fact)
        return found if booked(self._connection, cluster, keep, standstill_s=STANDSTILL_S) else None

    def _keep_amendment(self, base: Base, found: Amended, fact: AllocationAmended, writer: Writer) -> bool:
        """Record an amendment, unless another has recorded something since; return whether it was recorded."""
        self._guard(writer, fact.cluster)
        calendar = queries.calendar(writer, self._calendar)
        is_recorded = record_amendment(
            writer, fact, found.notices, base.cycles, at_s=found.at_s, clock=self._clock, calendar=calendar
        )
        if is_recorded:
            policy_status.count_amendment(writer, fact.cluster)
        return is_recorded

    def _land(self, cluster: str, writer: Writer) -> None:
        self._guard(writer, cluster)
        calendar = queries.calendar(writer, self._calendar)
        land(writer, cluster, clock=self._clock, calendar=calendar)

    def _keep(self, decided: Decided, began: float, writer: Writer) -> bool:
        """Record the cycle, unless there is one of its instant; return whether it was recorded."""
        self._guard(writer, decided.issued.cluster)
        calendar = queries.calendar(writer, self._calendar)
        before = record(writer, decided, clock=self._clock, calendar=calendar, kept_s=self._kept_s)
        if before is None:
            note(writer, decided, took_ms=round(1000 * (time.monotonic() - began)), now=self._clock.now())
        return before is None


def _decide(
    connection: sa.Connection, cluster: str, at_s: int, every_s: int | None = None
) -> tuple[Decided, Base]:
    """Read configuration, state and sequences in one snapshot, and decide; beside it, what events are answered from."""
    with reading_on(connection) as reader:
        config = read_config(reader, cluster, at_s)
        state = read_state(reader, cluster, at_s, config)
        sequences = queries.sequences(reader)
        every_s = every_s or _led_every_s(reader, cluster, at_s)
    prepared = prepare(state, config)
    decided = Decided.of(state, config, sequences, prepared.cycle, every_s=every_s)
    return decided, Base.of(decided.issued, state, prepared, digest=decided.issued.input_digest)


def _led_every_s(reader: Reader, cluster: str, at_s: int) -> int | None:
    """Return the interval of a leader whose next cycle is still to come: one by hand in between changes none."""
    newest = cycles.named(reader, cluster, at_s)
    if newest is None or newest.every_s is None or at_s - newest.at_s > newest.every_s:
        return None
    return newest.every_s
