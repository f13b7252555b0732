"""Laws 3, 4, 5 and 11 on a real PostgreSQL: any facts, in any order, batches and repeats."""

import random
from collections.abc import Iterator, Sequence
from itertools import count
from typing import TYPE_CHECKING

import pytest
import sqlalchemy as sa
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.property.ledger import oracle
from tests.property.ledger.oracle import Fact, Net
from tests.property.ledger.workloads import event_of, worlds

from gpuledger.database.engine import Reader, Writer, make_engine, reading, writing
from gpuledger.events.envelope import Event, book_of
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.clock import EPOCH, FixedClock
from gpuledger.ledger.append import append
from gpuledger.ledger.audit import verify
from gpuledger.ledger.rebuild import check, rebuild

if TYPE_CHECKING:
    from gpuledger.database.embedded import EmbeddedPostgres

few = settings(max_examples=settings().max_examples // 3, deadline=None)
numbers = count(1)
order_and_repeats = st.randoms(use_true_random=False)

NET = """
    SELECT commodity, code, account, workload, run, day::text, period, sum(amount)::bigint FROM (
        SELECT commodity, code, credit_account AS account, workload, run, effective_on AS day, credit_period AS period,
               amount FROM ledger.postings WHERE book = %s AND credit_pot IN ('spent', 'unallocated')
        UNION ALL
        SELECT commodity, code, debit_account, workload, run, effective_on, debit_period, -amount
        FROM ledger.postings WHERE book = %s AND debit_pot IN ('spent', 'unallocated')) AS legs
    GROUP BY 1, 2, 3, 4, 5, 6, 7 HAVING sum(amount) <> 0
"""
RUNS = """
    SELECT workload, run, from_at, to_at, account, class, gpus_milli, gpu_model, hosts, estimated FROM ledger.segments
    WHERE book = %s AND until_seq IS NULL ORDER BY 1, 2, 3, 4
"""
WAITS = """
    SELECT workload, extract(epoch FROM from_at)::bigint, extract(epoch FROM to_at)::bigint FROM ledger.waits
    WHERE book = %s AND until_seq IS NULL ORDER BY 1, 2
"""


def _database(postgres: "EmbeddedPostgres", template: str, name: str) -> Iterator[sa.Engine]:
    server = sa.create_engine(postgres.url("postgres"), isolation_level="AUTOCOMMIT", poolclass=sa.NullPool)
    with server.connect() as connection:
        connection.exec_driver_sql(f"CREATE DATABASE {name} TEMPLATE {template}")
    engine = make_engine(postgres.url(name))
    yield engine
    engine.dispose()


@pytest.fixture(scope="module")
def engine(postgres: "EmbeddedPostgres", template_database: str) -> Iterator[sa.Engine]:
    """A database for all examples; each example has books of its own in it."""
    yield from _database(postgres, template_database, "laws_of_books")


@pytest.fixture(scope="module")
def empty(postgres: "EmbeddedPostgres", template_database: str) -> Iterator[sa.Engine]:
    """A database that each example leaves as it found it."""
    yield from _database(postgres, template_database, "laws_of_ledgers")


def book(engine: sa.Engine, events: Sequence[Event], randomness: random.Random, calendar: Calendar) -> None:
    """Append the events in random batches, at a clock that jumps about."""
    for batch in batches(events, randomness):
        with writing(engine) as writer:
            append_at_some_time(writer, batch, randomness, calendar)


def append_at_some_time(
    writer: Writer, batch: Sequence[Event], randomness: random.Random, calendar: Calendar
) -> None:
    clock = FixedClock(EPOCH.replace(year=randomness.randint(2000, 2030)))
    append(writer, book_of(batch[0].data), batch, clock=clock, calendar=calendar)


def batches(events: Sequence[Event], randomness: random.Random) -> Iterator[Sequence[Event]]:
    left = list(events)
    while left:
        size = randomness.choice([1, 2, 5, len(left)])
        yield left[:size]
        left = left[size:]


def told(facts: Sequence[Fact], randomness: random.Random, cluster: str) -> list[Event]:
    """Return the facts as events in any order, some of them again and again."""
    events = [event_of(number, fact, cluster) for number, fact in enumerate(facts)]
    events += [event for event in events for _ in range(randomness.choice([0, 0, 0, 1, 3]))]
    randomness.shuffle(events)
    return events


def lines(reader: Reader, query: str, cluster: str) -> list[tuple[object, ...]]:
    return [tuple(row) for row in reader.exec_driver_sql(query, (cluster,) * query.count("%s"))]


@few
@given(world=worlds(), randomness=order_and_repeats)
def test_net_amounts_and_waits_are_the_oracles_in_any_order_batches_and_repeats(
    engine: sa.Engine, world: tuple[str, list[Fact]], randomness: random.Random
) -> None:
    (zone, facts), cluster = world, f"oracle-{next(numbers)}"
    book(engine, told(facts, randomness, cluster), randomness, Calendar(zone))
    with reading(engine) as reader:
        net, waits = lines(reader, NET, cluster), lines(reader, WAITS, cluster)
    expected = oracle.net(facts, zone)
    for commodity, weight in (("gpu_ms", 1), ("gpu_ms_weighted", 1000)):
        found = {Net(code, account, w, run, day): amount for c, code, account, w, run, day, _, amount in net
                 if c == commodity}  # fmt: skip
        assert found == {key: gpu_ms * weight for key, gpu_ms in expected.items()}
    assert all(str(day).startswith(str(period)) for *_, day, period, _ in net)
    for workload in {fact.workload for fact in facts}:
        assert _joined(waits, workload) == oracle.waits(facts, workload)


def _joined(rows: Sequence[tuple[object, ...]], workload: str) -> list[tuple[object, object]]:
    found: list[tuple[object, object]] = []
    for name, from_s, to_s in rows:
        if name == workload and found and found[-1][1] == from_s:
            found[-1] = (found[-1][0], to_s)
        elif name == workload:
            found.append((from_s, to_s))
    return found


@few
@given(world=worlds(ties=True), randomness=order_and_repeats)
def test_two_books_told_the_same_in_different_ways_reach_the_same_state(
    engine: sa.Engine, world: tuple[str, list[Fact]], randomness: random.Random
) -> None:
    (zone, facts), number = world, next(numbers)
    states = []
    for cluster in (f"one-{number}", f"other-{number}"):
        book(engine, told(facts, randomness, cluster), randomness, Calendar(zone))
        with reading(engine) as reader:
            states.append([sorted(map(str, lines(reader, query, cluster))) for query in (NET, RUNS, WAITS)])
    assert states[0] == states[1]


@few
@given(world=worlds(ties=True), randomness=order_and_repeats)
def test_replaying_any_part_later_appends_nothing(
    engine: sa.Engine, world: tuple[str, list[Fact]], randomness: random.Random
) -> None:
    (zone, facts), cluster = world, f"replay-{next(numbers)}"
    events = told(facts, randomness, cluster)
    book(engine, events, randomness, Calendar(zone))
    with reading(engine) as reader:
        before = lines(reader, "SELECT last_seq, head FROM ledger.books WHERE book = %s", cluster)
    again = [event for event in events if randomness.random() < 0.5]
    book(engine, again, randomness, Calendar(zone))
    with reading(engine) as reader:
        assert lines(reader, "SELECT last_seq, head FROM ledger.books WHERE book = %s", cluster) == before


@few
@given(world=worlds(ties=True), randomness=order_and_repeats)
def test_after_any_history_the_chain_holds_debits_are_credits_and_a_rebuild_agrees(
    empty: sa.Engine, world: tuple[str, list[Fact]], randomness: random.Random
) -> None:
    facts, calendar = world[1], Calendar(world[0])
    with empty.connect() as connection, connection.begin() as transaction:
        reader, writer = Reader(connection), Writer(connection)
        for batch in batches(told(facts, randomness, "alpha"), randomness):
            append_at_some_time(writer, batch, randomness, calendar)
        sums = connection.exec_driver_sql(
            "SELECT commodity, sum(amount) FROM ledger.balances GROUP BY 1"
        ).all()
        audit, stands = verify(reader), check(reader, calendar)
        rebuild(writer, calendar)
        rebuilt = check(reader, calendar)
        transaction.rollback()
    assert [(commodity, total) for commodity, total in sums if total != 0] == []
    assert (audit.ok, sum(b.rows for b in audit.books)) == (True, len(facts))
    assert (stands.differences, rebuilt.differences) == ((), ())
    assert rebuilt.state_digest == stands.state_digest
