"""Laws 1 and 2 on a real PostgreSQL: whatever workers do to a stream, and whatever is tried on what they booked."""

import random
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING

import pytest
import sqlalchemy as sa
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sqlalchemy.exc import DBAPIError
from tests.property.ledger.oracle import Fact
from tests.property.ledger.test_laws import NET, RUNS, WAITS, _database, book, lines, told
from tests.property.ledger.workloads import worlds

from gpuledger.database.engine import WRITER_ROLE, Writer, reading, writing
from gpuledger.events.envelope import Event
from gpuledger.ingest import offsets
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.clock import EPOCH, FixedClock
from gpuledger.kernel.errors import Fenced
from gpuledger.ledger.append import append

if TYPE_CHECKING:
    from gpuledger.database.embedded import EmbeddedPostgres

few = settings(max_examples=settings().max_examples // 6, deadline=None)
numbers = count(1)
CLOCK = FixedClock(EPOCH.replace(year=2026))


@pytest.fixture(scope="module")
def engine(postgres: "EmbeddedPostgres", template_database: str) -> Iterator[sa.Engine]:
    """A database for all examples; each example has a book and a stream of its own in it."""
    yield from _database(postgres, template_database, "exactly_once")


class KilledError(Exception):
    """Stands for whatever ends a worker between its last statement and the commit."""


@dataclass
class Worker:
    """One reader of the stream: what it claimed, and where it believes that it stands."""

    claim: offsets.Claim
    position: int


class Stream:
    """A partition of events, and all who ever read it."""

    def __init__(self, engine: sa.Engine, cluster: str, events: Sequence[Event], calendar: Calendar) -> None:
        self.engine, self.cluster, self.events, self.calendar = engine, cluster, events, calendar
        self.workers: list[Worker] = []

    def join(self) -> Worker:
        """Let another worker take the partition over."""
        with writing(self.engine) as writer:
            (claim,) = offsets.claim(writer, "ledger", self.cluster, [0])
        self.workers.append(Worker(claim, claim.position))
        return self.workers[-1]

    def poll(self, worker: Worker, size: int, *, killed: bool) -> None:
        """Let a worker book what it reads next, as of when it looked last."""
        read = self.events[worker.position : worker.position + size]
        with writing(self.engine) as writer:
            if read:
                append(writer, self.cluster, read, clock=CLOCK, calendar=self.calendar)
            offsets.advance(writer, worker.claim, worker.position + len(read))
            if killed:
                raise KilledError
        worker.position += len(read)

    def stands(self) -> tuple[int, int]:
        """Return the position, and how many rows the book has."""
        with reading(self.engine) as reader:
            (rows,) = lines(reader, "SELECT count(*) FROM ledger.journal WHERE book = %s", self.cluster)[0]
            position = offsets.positions(reader, "ledger", self.cluster).get(0, 0)
        assert isinstance(rows, int)
        return position, rows


@few
@given(world=worlds(ties=True), randomness=st.randoms(use_true_random=False))
def test_whoever_is_killed_sleeps_or_is_taken_over_each_event_is_booked_once(
    engine: sa.Engine, world: tuple[str, list[Fact]], randomness: random.Random
) -> None:
    (zone, facts), number = world, next(numbers)
    calendar, cluster = Calendar(zone), f"attacked-{number}"
    events = told(facts, randomness, cluster)
    stream = Stream(engine, cluster, events, calendar)
    stream.join()
    for _ in range(12):
        if randomness.random() < 0.25:
            stream.join()
            continue
        worker, before = randomness.choice(stream.workers), stream.stands()
        size, killed = randomness.choice([0, 1, 2, 5]), randomness.random() < 0.3
        if worker is stream.workers[-1] and not killed:
            stream.poll(worker, size, killed=False)
            assert stream.stands() == (worker.position, len({e.id for e in events[: worker.position]}))
            continue
        with pytest.raises(KilledError if worker is stream.workers[-1] else Fenced):
            stream.poll(worker, size, killed=killed)
        assert stream.stands() == before, "position and rows commit together or not at all"
    last = stream.join()
    while last.position < len(events):
        stream.poll(last, 3, killed=False)
    assert stream.stands() == (len(events), len(facts))

    peaceful = f"peaceful-{number}"
    book(engine, told(facts, randomness, peaceful), randomness, calendar)
    with reading(engine) as reader:
        for query in (NET, RUNS, WAITS):
            found, expected = (sorted(map(str, lines(reader, query, name))) for name in (cluster, peaceful))
            assert found == expected


SESSIONS = {
    "superuser": (),
    "replica": ("SET LOCAL session_replication_role = replica",),
    "owner": ("SET LOCAL ROLE gpuledger_owner",),
    "writer": (f"SET LOCAL ROLE {WRITER_ROLE}",),
    "reader": ("SET LOCAL ROLE gpuledger_reader",),
}
WHOLE = "SELECT (SELECT md5(string_agg(t::text, ',' ORDER BY t::text)) FROM {table} AS t)"


@few
@given(
    world=worlds(ties=True, max_workloads=2),
    randomness=st.randoms(use_true_random=False),
    session=st.sampled_from(sorted(SESSIONS)),
    table=st.sampled_from(["journal", "postings", "identities", "journal_2026_01", "postings_2026_01"]),
)
def test_no_history_is_changed_by_any_statement_of_any_role(
    engine: sa.Engine, world: tuple[str, list[Fact]], randomness: random.Random, session: str, table: str
) -> None:
    (zone, facts), cluster = world, f"kept-{next(numbers)}"
    assume(facts)
    with engine.connect() as connection, connection.begin() as transaction:
        append(
            Writer(connection),
            cluster,
            told(facts, randomness, cluster),
            clock=CLOCK,
            calendar=Calendar(zone),
        )
        whole = WHOLE.format(table=f"ledger.{table}")
        before = connection.exec_driver_sql(whole).scalar()
        columns = connection.exec_driver_sql(
            "SELECT column_name FROM information_schema.columns WHERE table_schema = 'ledger' AND table_name = %s"
            " ORDER BY 1",
            (table,),
        ).scalars()
        column = randomness.choice(list(columns))
        which = f"book = '{cluster}' AND seq >= {randomness.randrange(len(facts) + 1)}"
        statement = randomness.choice(
            [
                f"UPDATE ledger.{table} SET {column} = {column} WHERE {which}",
                f"UPDATE ledger.{table} SET {column} = DEFAULT WHERE {which}",
                f"DELETE FROM ledger.{table} WHERE {which}",
                f"TRUNCATE ledger.{table} CASCADE",
            ]
        )
        rows = connection.exec_driver_sql(f"SELECT count(*) FROM ledger.{table} WHERE {which}").scalar()
        refused = False
        with suppress(DBAPIError), connection.begin_nested():
            refused = True
            for setting in SESSIONS[session]:
                connection.exec_driver_sql(setting)
            connection.exec_driver_sql(statement)
            refused = False
        connection.exec_driver_sql("RESET ROLE")
        assert connection.exec_driver_sql(whole).scalar() == before
        assert refused or (rows == 0 and session in ("superuser", "replica", "owner")), statement
        transaction.rollback()
