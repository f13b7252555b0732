"""A balance never waits for a tick: read at any instant it says what it says right after a tick of that instant.

And what it said then it says for ever, asked as of then: lots that have lapsed, and those carried over by closes.
"""

import datetime as dt
import random
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import pytest
import sqlalchemy as sa
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.property.ledger.test_laws import _database
from tests.property.ledger.test_settlement import PERIODS, rules

from gpuledger.database.engine import Reader, Writer
from gpuledger.events import budget, workload
from gpuledger.events.closing import LedgerTicked
from gpuledger.events.decision import DecisionMade
from gpuledger.events.envelope import make
from gpuledger.events.registry import Fact
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.clock import FixedClock, instant
from gpuledger.kernel.errors import Refused
from gpuledger.ledger.append import append
from gpuledger.ledger.balances import BalanceQuery, balances
from gpuledger.ledger.closing import close_period, reopen_period

if TYPE_CHECKING:
    from gpuledger.database.embedded import EmbeddedPostgres

CLUSTER = "alpha"
GPU_HOUR, HOUR, DAY = 3_600_000, 3600, 86_400
few = settings(max_examples=settings().max_examples // 3, deadline=None)


class Lot(NamedTuple):
    """A grant: hours, on which day from the first of October on it is gone, and what goes on."""

    account: str
    period: str
    gpu_hours: int
    priority: int | None
    gone_on: int | None
    rollover: str | None


class Run(NamedTuple):
    """One GPU from an hour on; without hours it goes on for ever. What is set aside for it, and whether it came."""

    account: str
    from_h: int
    hours: int | None
    held_h: int
    comes: bool


class Back(NamedTuple):
    """GPU-hours that somebody gives back to an account at an hour, or takes when below zero, under a code.

    Nobody asks whether as much was ever charged, or will be.
    """

    account: str
    at_h: int
    gpu_hours: int
    code: str = "charge"


class World(NamedTuple):
    """What happens, and at which hours somebody looks: at some of them the book ticks, or closes what is over."""

    zone: str
    lots: tuple[Lot, ...]
    runs: tuple[Run, ...]
    looks: tuple[tuple[int, str], ...]
    backs: tuple[Back, ...] = ()


HOURS = 24 * 80
accounts = st.sampled_from(["org/a", "org/b"])
worlds = st.builds(
    World,
    st.sampled_from(["UTC", "Europe/Berlin"]),
    st.lists(
        st.builds(
            Lot,
            accounts,
            st.sampled_from(PERIODS),
            st.integers(1, 90),
            st.none() | st.integers(0, 3),
            st.none() | st.integers(1, 90),
            rules,
        ),
        min_size=1,
        max_size=5,
    ).map(tuple),
    st.lists(
        st.builds(
            Run,
            accounts,
            st.integers(0, HOURS),
            st.none() | st.integers(1, 60),
            st.sampled_from([0, 0, 1, 30]),
            st.booleans(),
        ),
        max_size=4,
    ).map(tuple),
    st.lists(
        st.tuples(st.integers(1, HOURS), st.sampled_from(["look", "look", "tick", "close", "reopen"])),
        min_size=2,
        max_size=8,
        unique_by=lambda look: look[0],
    ).map(lambda looks: tuple(sorted(looks))),
    st.lists(
        st.builds(
            Back,
            accounts,
            st.integers(1, HOURS),
            st.integers(-20, 60).filter(bool),
            st.sampled_from(["charge", "charge", "credit", "unallocated"]),
        ),
        max_size=2,
    ).map(tuple),
)


@pytest.fixture(scope="module")
def empty(postgres: "EmbeddedPostgres", template_database: str) -> Iterator[sa.Engine]:
    """A database that each example leaves as it found it."""
    yield from _database(postgres, template_database, "lapses_of_ledgers")


class Book:
    """A book in which a world happens."""

    def __init__(self, connection: sa.Connection, world: World) -> None:
        self.connection, self.writer, self.reader = connection, Writer(connection), Reader(connection)
        self.calendar = Calendar(world.zone)
        self.first_s = self.calendar.day_start_s(dt.date(2026, 10, 1))
        self.closed = 0
        self.told = 0
        grants = [(self.first_s, self._grant(lot)) for lot in world.lots]
        self._tell(self.first_s, [*grants, (self.first_s, self._asked("first", "org/a"))])
        # What happens at the hour of a look is told a little before it, or a look later: then it is late.
        of_runs = [fact for n, run in enumerate(world.runs) for fact in self._of_run(n, run)]
        self.facts = sorted([*of_runs, *map(self._given_back, world.backs)], key=lambda fact: fact[0])

    def _given_back(self, back: Back) -> tuple[int, Fact]:
        at_s = self.first_s + back.at_h * HOUR
        period = self.calendar.period_of(self.calendar.day_of(at_s))
        return at_s, budget.AdjustmentPosted(
            account=back.account, cluster=CLUSTER, period=period, code=back.code, reason="test", by="test",
            gpu_ms=(back.gpu_hours if back.code == "credit" else -back.gpu_hours) * GPU_HOUR,
        )  # fmt: skip

    def _grant(self, lot: Lot) -> Fact:
        gone_at = None
        if lot.gone_on is not None:
            day = dt.date(2026, 10, 1) + dt.timedelta(days=lot.gone_on)
            gone_at = instant(self.calendar.day_start_s(day))
        return budget.Granted(
            account=lot.account, cluster=CLUSTER, period=lot.period, gpu_ms=lot.gpu_hours * GPU_HOUR,
            priority=lot.priority, expires_at=gone_at, rollover=lot.rollover, reason="test", by="test",
        )  # fmt: skip

    def _asked(self, name: str, account: str) -> Fact:
        return workload.Submitted(
            cluster=CLUSTER, workload=name, account=account, user="ada", gpus_milli=1000
        )

    def _of_run(self, number: int, run: Run) -> Iterator[tuple[int, Fact]]:
        name, at_s = f"w{number}", self.first_s + run.from_h * HOUR
        yield at_s, self._asked(name, run.account)
        if run.held_h:
            yield (
                at_s,
                DecisionMade(
                    cluster=CLUSTER, workload=name, attempt=1, klass="allocated", account=run.account,
                    gpus_milli=1000, hold_gpu_ms=run.held_h * GPU_HOUR, reason="test",
                    expires_at=instant(at_s + 6 * HOUR),
                ),
            )  # fmt: skip
        if run.comes:
            start = workload.Started(
                cluster=CLUSTER, workload=name, run="r", attempt=1, gpus_milli=1000, hosts=["h1"]
            )
            yield at_s, start
            if run.hours is not None:
                end = workload.Ended(cluster=CLUSTER, workload=name, run="r", reason="done")
                yield at_s + run.hours * HOUR, end

    def _tell(self, now_s: int, facts: list[tuple[int, Fact]]) -> None:
        events = []
        for at_s, fact in facts:
            self.told += 1
            events.append(make(id=f"e{self.told}", source="test", at_s=at_s, data=fact)[0])
        append(self.writer, CLUSTER, events, clock=FixedClock(instant(now_s)), calendar=self.calendar)

    def live_until(self, now_s: int, randomness: random.Random) -> None:
        """Tell what has happened by now, but for some of it, which is told later."""
        known = [fact for fact in self.facts if fact[0] <= now_s and randomness.random() < 0.8]
        self.facts = [fact for fact in self.facts if fact not in known]
        if known:
            self._tell(now_s, known)

    def do(self, what: str, now_s: int) -> None:
        """Tick, close the next period where it is over, or open the last again."""
        clock = FixedClock(instant(now_s))
        if what == "tick":
            self.tick(now_s)
        elif what == "close" and self.closed < len(PERIODS):
            try:
                close_period(
                    self.writer, CLUSTER, PERIODS[self.closed], "a", clock=clock, calendar=self.calendar
                )
            except Refused:  # it is not over
                return
            self.closed += 1
        elif what == "reopen" and self.closed:
            self.closed -= 1
            reopen_period(
                self.writer, CLUSTER, PERIODS[self.closed], "a", "again", clock=clock, calendar=self.calendar
            )

    def tick(self, now_s: int) -> None:
        """Move the book's clock, to the very second."""
        self._tell(now_s, [(now_s, LedgerTicked(cluster=CLUSTER))])

    def said(self, now_s: int, as_of: dt.datetime | None = None) -> object:
        """Return every balance, as sealed and as known, but those that say nothing."""
        found = []
        for as_known in (False, True):
            query = BalanceQuery(CLUSTER, as_of=as_of, as_known=as_known)
            found.append(
                [
                    b
                    for b in balances(self.reader, query, now_s, self.calendar)
                    if any(value for value in b.as_json().values() if isinstance(value, int))
                ]
            )
        return found


# A lot that lapses between two looks, one that was carried over before, and a hold that lapses in a closed period.
@few
@example(
    World("UTC", (Lot("org/a", "2026-10", 10, None, 2, None),), (), ((24, "tick"), (49, "look"))),
    random.Random(1),
)
@example(
    World(
        "UTC",
        (Lot("org/a", "2026-10", 10, None, 40, None),),
        (Run("org/a", 5, 3, 0, comes=True),),
        ((745, "close"), (24 * 40 + 1, "look")),
    ),
    random.Random(1),
)
@example(
    World(
        "UTC",
        (Lot("org/a", "2026-10", 50, None, None, "all"),),
        (Run("org/a", 740, 3, 30, comes=False),),
        ((745, "close"), (747, "look")),
    ),
    random.Random(1),
)
# What was given back today makes up for days on which a lot that is gone was used: the run takes it from there.
@example(
    World(
        "UTC",
        (Lot("org/a", "2026-10", 50, None, 2, None), Lot("org/a", "2026-10", 50, None, None, None)),
        (Run("org/a", 0, 30, 0, comes=True), Run("org/a", 73, None, 0, comes=True)),
        ((72, "tick"), (76, "tick"), (80, "look")),
        (Back("org/a", 74, 10),),
    ),
    random.Random(1),
)
# More was given back than was charged: what runs on takes that up first, under each of the codes.
@example(
    World(
        "UTC",
        (Lot("org/a", "2026-10", 50, None, 2, "all"),),
        (Run("org/a", 0, None, 0, comes=True),),
        ((10, "look"), (40, "tick"), (50, "look"), (60, "tick"), (75, "look")),
        (Back("org/a", 5, 60), Back("org/a", 6, 30, "credit")),
    ),
    random.Random(1),
)
@given(worlds, st.randoms(use_true_random=False))
def test_a_balance_says_what_it_says_after_a_tick_and_says_it_for_ever(
    empty: sa.Engine, world: World, randomness: random.Random
) -> None:
    with empty.connect() as connection, connection.begin() as transaction:
        book = Book(connection, world)
        remembered: list[tuple[int, object]] = []
        for hour, what in world.looks:
            now_s = book.first_s + hour * HOUR + randomness.choice([0, 0, 1, 1234])
            book.live_until(now_s, randomness)
            book.do(what, now_s)
            said = book.said(now_s)
            savepoint = connection.begin_nested()
            book.tick(now_s)
            ticked = book.said(now_s)
            savepoint.rollback()
            assert said == ticked
            remembered.append((now_s + 1, book.said(now_s + 1)))
        last_s = book.first_s + (HOURS + 24 * 30) * HOUR
        asked = [book.said(last_s, instant(then_s)) for then_s, _ in remembered]
        transaction.rollback()
    assert asked == [said for _, said in remembered]
