"""The thin room around the policy: read the state in one snapshot, decide, record."""

import time
from collections.abc import Callable
from typing import Any, TypeVar

import sqlalchemy as sa
import stamina

from gpuledger.database.engine import Writer, detached, reading_on, writing_on
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.clock import Clock, seconds
from gpuledger.kernel.errors import Collided
from gpuledger.ledger import cycles, queries
from gpuledger.ledger.admission import SLICE_S
from gpuledger.ledger.cycle_decisions import KEPT_S
from gpuledger.ledger.landing import land
from gpuledger.policy.configured import read_config
from gpuledger.policy.cycle import run_cycle
from gpuledger.policy.reading import read_state
from gpuledger.policy.recorded import whole
from gpuledger.policy.recording import Decided, record
from gpuledger.policy.status import note

STANDSTILL_S = 20
"""A transaction in which nothing happens for so long is taken for that of a paused process, and ended."""

ATTEMPTS = 5
"""How often a transaction is made in all that the database gives up for the sake of others."""

PATIENCE_S = 150
"""After so long none is made again."""

# Wherever structlog happens to be installed stamina would tell of each attempt on stdout, which belongs to the answer.
stamina.instrumentation.set_on_retry_hooks(())

Result = TypeVar("Result")


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
            return _decide(connection, cluster, at_s).published
        return Issuing(connection, clock, calendar).issue(cluster, at_s)


class Issuing:
    """Runs cycles on one connection: whoever holds a lock on it writes under that lock, or not at all.

    Args:
        connection: A connection of its own, outside any transaction.
        clock: Stamps what is written.
        calendar: Cuts days until the organisation has set its zone.
        kept_s: How long decisions are kept.
    """

    def __init__(
        self, connection: sa.Connection, clock: Clock, calendar: Calendar, *, kept_s: int = KEPT_S
    ) -> None:
        self._connection, self._clock, self._calendar, self._kept_s = connection, clock, calendar, kept_s

    def issue(self, cluster: str, at_s: int) -> dict[str, Any]:
        """Land, read, decide and record; see ``issue_cycle``."""
        began = time.monotonic()
        if abs(seconds(self._clock.now()) - at_s) < SLICE_S:  # a cycle of another time moves nobody now
            self._booked(
                lambda writer: land(
                    writer, cluster, clock=self._clock, calendar=queries.calendar(writer, self._calendar)
                )
            )
        decided = _decide(self._connection, cluster, at_s)

        def keep(writer: Writer) -> bool:
            calendar = queries.calendar(writer, self._calendar)
            before = record(writer, decided, clock=self._clock, calendar=calendar, kept_s=self._kept_s)
            if before is None:
                note(writer, decided, took_ms=round(1000 * (time.monotonic() - began)), now=self._clock.now())
            return before is None

        if self._booked(keep):
            return decided.published
        return self._recorded(cluster, at_s)

    def _recorded(self, cluster: str, at_s: int) -> dict[str, Any]:
        with reading_on(self._connection) as reader:
            found = cycles.of_instant(reader, cluster, at_s)
            assert found is not None  # noqa: S101 - it was there, and nothing takes it away
            return whole(reader, cluster, found)

    def _booked(self, work: Callable[[Writer], Result]) -> Result:
        for attempt in stamina.retry_context(
            on=Collided,
            attempts=ATTEMPTS,
            timeout=PATIENCE_S,
            wait_initial=0.05,
            wait_max=2.0,
            wait_jitter=0.5,
        ):
            with attempt, writing_on(self._connection) as writer:
                writer.exec_driver_sql(f"SET LOCAL idle_in_transaction_session_timeout = '{STANDSTILL_S}s'")
                return work(writer)
        raise AssertionError("retry_context returns or raises")  # pragma: no cover


def _decide(connection: sa.Connection, cluster: str, at_s: int) -> Decided:
    """Read configuration, state and sequences in one snapshot, and decide."""
    with reading_on(connection) as reader:
        config = read_config(reader, cluster, at_s)
        state = read_state(reader, cluster, at_s, config)
        sequences = queries.sequences(reader)
    return Decided.of(state, config, sequences, run_cycle(state, config))
