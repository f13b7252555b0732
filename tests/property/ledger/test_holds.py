"""Holds and charges against the oracle, and in any order on a real ledger (laws 3, 4 and 11)."""

import datetime as dt
import random
from collections.abc import Iterator
from itertools import count
from typing import TYPE_CHECKING

import pytest
import sqlalchemy as sa
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.property.ledger import holds_oracle
from tests.property.ledger.holds_oracle import Decision, Run, World
from tests.property.ledger.test_laws import _database, batches

from gpuledger.database.engine import Reader, Writer
from gpuledger.events import workload
from gpuledger.events.closing import LedgerTicked
from gpuledger.events.decision import DecisionMade
from gpuledger.events.envelope import Event, make
from gpuledger.events.registry import Fact
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.clock import FixedClock
from gpuledger.ledger.append import append
from gpuledger.ledger.audit import verify
from gpuledger.ledger.charges import WEIGHTED, desired
from gpuledger.ledger.facts import Known
from gpuledger.ledger.rebuild import check, rebuild
from gpuledger.ledger.segments import derive

if TYPE_CHECKING:
    from gpuledger.database.embedded import EmbeddedPostgres

EVE = dt.datetime(2026, 11, 30, 20, tzinfo=dt.UTC)
"""Four hours before a period's edge."""

many = settings(max_examples=3 * settings().max_examples, deadline=None)
few = settings(max_examples=settings().max_examples // 3, deadline=None)
numbers = count(1)

minutes = st.integers(0, 500)
gpus = st.sampled_from([1, 3, 8])
classes = st.sampled_from(["allocated", "unallocated"])


@st.composite
def runs(draw: st.DrawFn, attempt: int) -> Run:
    start = draw(minutes)
    changes = draw(
        st.lists(
            st.one_of(
                st.tuples(minutes, st.just("gpus"), gpus), st.tuples(minutes, st.just("class"), classes)
            ),
            max_size=3,
            unique_by=lambda change: change[:2],
        )
    )
    stop = draw(st.none() | st.integers(start, 560))
    return Run(attempt, start, stop, draw(gpus), draw(st.none() | classes), tuple(changes))


@st.composite
def decisions(draw: st.DrawFn) -> Decision:
    klass, at = draw(classes), draw(minutes)
    expires = draw(st.none() | st.integers(1, 200).map(lambda after: at + after))
    extends = draw(st.none() | st.none() | minutes)
    held = 0 if klass == "unallocated" else draw(st.integers(0, 90))
    return Decision(draw(st.integers(1, 3)), at, klass, draw(gpus), held, expires, extends)


@st.composite
def worlds(draw: st.DrawFn) -> World:
    attempts = draw(st.lists(st.integers(1, 3), max_size=2, unique=True))
    decided = draw(st.lists(decisions(), max_size=5, unique_by=lambda d: (d.attempt, d.at)))
    # Slices of the oracle never overlap unless they are of one run, and it has no order among equals.
    return World(
        tuple(draw(runs(attempt)) for attempt in attempts),
        tuple(decided),
        draw(st.none() | st.none() | st.just(600)),
        draw(st.none() | minutes),
    )


def facts(world: World, cluster: str) -> list[tuple[int, Fact]]:
    """Return (minute, fact) of everything but ticks."""
    named = {"cluster": cluster, "workload": "w"}
    found: list[tuple[int, Fact]] = [
        (0, workload.Submitted(**named, account="org/a", user="ada", gpus_milli=1000))
    ]
    for run in world.runs:
        name, given_gpus = f"r{run.attempt}", run.gpus * 1000
        start = workload.Started(
            **named,
            run=name,
            attempt=run.attempt,
            gpus_milli=given_gpus,
            hosts=["h1"],
            klass=run.klass,  # type: ignore[arg-type]
        )
        found.append((run.start, start))
        for at, what, value in run.changes:
            if what == "gpus":
                changed: Fact = workload.Resized(
                    **named, run=name, gpus_milli=int(value) * 1000, hosts=["h1"]
                )
            else:
                changed = workload.ClassChanged(**named, run=name, klass=value, reason="x")  # type: ignore[arg-type]
            found.append((at, changed))
        if run.stop is not None:
            found.append((run.stop, workload.Preempted(**named, run=name, reason="x")))
    found += [(d.at, _decided(d, cluster)) for d in world.decisions]
    if world.over is not None:
        found.append((world.over, workload.Ended(**named, reason="cancelled")))
    return found


def _decided(d: Decision, cluster: str) -> DecisionMade:
    return DecisionMade(
        cluster=cluster, workload="w", attempt=d.attempt, klass=d.klass, account="org/a", gpus_milli=d.gpus * 1000,  # type: ignore[arg-type]
        hold_gpu_ms=d.gpus * 1000 * 60 * d.minutes, reason="x",
        expires_at=None if d.expires is None else _at(d.expires),
        extends_from=None if d.extends is None else _at(d.extends),
    )  # fmt: skip


def _at(minute: int) -> dt.datetime:
    return EVE + dt.timedelta(minutes=minute)


def told(number: int, minute: int, fact: Fact) -> Event:
    return make(id=f"e{number}", source="test", at_s=int(_at(minute).timestamp()), data=fact)[0]


def events(world: World, cluster: str) -> list[Event]:
    found = [told(number, minute, fact) for number, (minute, fact) in enumerate(facts(world, cluster))]
    if world.tick is not None:
        found.append(told(len(found), world.tick, LedgerTicked(cluster=cluster)))
    return found


@many
@given(worlds(), st.randoms(use_true_random=False))
def test_what_is_held_and_charged_is_the_oracles_whatever_the_order(
    world: World, randomness: random.Random
) -> None:
    known = [
        Known(event.data, event.at_s, event.source, event.digest)
        for event in events(world._replace(tick=None), "c")
    ]
    randomness.shuffle(known)
    ticked_s = None if world.tick is None else int(_at(world.tick).timestamp())
    found: dict[str, int] = {}
    for key, amount in desired(derive(known), Calendar(), ticked_s=ticked_s).items():
        if key.commodity == WEIGHTED:
            name = "hold" if key.code == "hold" else key.pot
            assert amount % 60_000_000 == 0
            found[name] = found.get(name, 0) + amount // 60_000_000
    assert {name: amount for name, amount in found.items() if amount} == holds_oracle.amounts(world)


@pytest.fixture(scope="module")
def empty(postgres: "EmbeddedPostgres", template_database: str) -> Iterator[sa.Engine]:
    """A database that each example leaves as it found it."""
    yield from _database(postgres, template_database, "holds_of_ledgers")


HELD = """
    SELECT pot, code, sum(amount)::bigint / 60000000 FROM (
        SELECT credit_pot AS pot, CASE code WHEN 'release' THEN 'hold' ELSE code END AS code, amount
        FROM ledger.postings WHERE commodity = 'gpu_ms_weighted'
        UNION ALL
        SELECT debit_pot, CASE code WHEN 'release' THEN 'hold' ELSE code END, -amount
        FROM ledger.postings WHERE commodity = 'gpu_ms_weighted') AS legs
    WHERE pot IN ('held', 'spent', 'unallocated') GROUP BY 1, 2 HAVING sum(amount) <> 0
"""


@few
@given(worlds(), st.randoms(use_true_random=False))
def test_any_order_of_facts_decisions_and_ticks_leaves_the_same_on_a_ledger(
    empty: sa.Engine, world: World, randomness: random.Random
) -> None:
    told_ = events(world, "alpha")
    told_ += [event for event in told_ if randomness.random() < 0.2]
    randomness.shuffle(told_)
    with empty.connect() as connection, connection.begin() as transaction:
        reader, writer = Reader(connection), Writer(connection)
        for batch in batches(told_, randomness):
            append(writer, "alpha", batch, clock=FixedClock(EVE), calendar=Calendar())
        rows = connection.exec_driver_sql(HELD).all()
        audit, stands = verify(reader), check(reader, Calendar())
        rebuild(writer, Calendar())
        rebuilt = check(reader, Calendar())
        transaction.rollback()
    want = holds_oracle.amounts(world)
    spent = want.get("held", 0) + want.get("budget", 0)
    expected = {
        ("held", "hold"): want.get("hold", 0),
        ("held", "charge"): -want.get("held", 0),
        ("spent", "charge"): spent,
        ("unallocated", "unallocated"): want.get("free", 0),
    }
    assert {(pot, code): amount for pot, code, amount in rows} == {k: v for k, v in expected.items() if v}
    assert audit.ok
    assert (stands.differences, rebuilt.differences) == ((), ())
    assert stands.state_digest == rebuilt.state_digest
