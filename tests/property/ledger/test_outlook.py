"""What a hard account may still promise or give away, against closes that are played with tokens.

Shares no code with the product. Whoever asks for GPU-time, or gives some away, is heard exactly when no period would be
left with more use that no token pays for: every period is played to its end, one after the other.
"""

import datetime as dt
from collections.abc import Iterator, Sequence
from itertools import count
from typing import TYPE_CHECKING, NamedTuple
from zoneinfo import ZoneInfo

import pytest
import sqlalchemy as sa
from hypothesis import event, given, settings
from hypothesis import strategies as st
from tests.property.ledger.lots_oracle import Coins, Outcome, play
from tests.property.ledger.test_laws import _database

from gpuledger.database.engine import Reader, Writer
from gpuledger.events import budget, workload
from gpuledger.events.envelope import ORG_BOOK, make
from gpuledger.events.registry import Fact
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.clock import FixedClock
from gpuledger.kernel.errors import Refused
from gpuledger.ledger.admission import admit
from gpuledger.ledger.append import append
from gpuledger.ledger.balances import BalanceQuery, balances
from gpuledger.ledger.closing import close_period
from gpuledger.ledger.commands import execute
from gpuledger.ledger.rebuild import check

if TYPE_CHECKING:
    from gpuledger.database.embedded import EmbeddedPostgres

CLUSTER, HARD, OTHER = "alpha", "org/a", "org/b"
FIRST = dt.date(2026, 10, 1)
PERIODS = {"2026-10": (0, 30), "2026-11": (31, 60), "2026-12": (61, 91)}
"""First and last day of each, counted from the first of October."""

EDGE = 61 * 24
"""The hour at which December begins."""

GPU_HOUR = 3_600_000
numbers = count(1)
few = settings(max_examples=settings().max_examples // 10, deadline=None)


class Given(NamedTuple):
    """A grant: its period, GPU-hours, priority, first day without it, and rule."""

    period: str
    gpu_hours: int
    priority: int | None
    gone: int | None
    rollover: str | None


class Step(NamedTuple):
    """After some hours somebody asks for GPUs for some hours, or gives GPU-hours of a period away."""

    wait: int
    gpus: int
    hours: int
    gives: str | None


class World(NamedTuple):
    """What is granted and was used before the steps begin, hours before December does."""

    zone: str
    lots: tuple[Given, ...]
    used: tuple[tuple[int, int], ...]
    is_october_closed: bool
    begin: int
    steps: tuple[Step, ...]


rules = st.sampled_from(["all", "all", "max 3", "max 10", "min 5", "min 5 max 10", "none", None])
lots = st.builds(
    Given,
    st.sampled_from(["2026-10", *["2026-11"] * 3, "2026-12"]),
    st.integers(1, 40),
    st.none() | st.integers(0, 2),
    st.sampled_from([None, None, None, 60, 61, 62, 70]),
    rules,
)
steps = st.builds(
    Step,
    st.integers(0, 6),
    st.integers(1, 3),
    st.integers(3, 8),
    st.sampled_from([None, None, "2026-11", "2026-11", "2026-12"]),
)
worlds = st.builds(
    World,
    st.sampled_from(["UTC", "Europe/Berlin"]),
    st.lists(lots, min_size=1, max_size=4).map(tuple),
    st.lists(st.tuples(st.integers(0, EDGE - 80), st.integers(1, 20)), max_size=3).map(tuple),
    st.booleans(),
    st.integers(-12, 6),
    st.lists(steps, min_size=3, max_size=6).map(tuple),
)


class Book:
    """The world played with tokens: one is a GPU-hour, and a day is a number."""

    def __init__(self, world: World) -> None:
        self.lots, self.october = world.lots, world.is_october_closed
        self.movements = [
            (hour // 24, 1) for begin, hours in world.used for hour in range(begin, begin + hours)
        ]

    def closes(self, more: Sequence[tuple[int, int]] = ()) -> list[Outcome]:
        """Return the outcome of each period when all close one after the other."""
        found: list[Outcome] = []
        for period in PERIODS:
            found.append(self._played(period, [*self.movements, *more], found[-1:], 10_000, over=True))
        return found

    def left(self, period: str, today: int) -> int:
        """Return what an open period shows as available, before the ones in front of it are closed."""
        before = self.closes()[:1] if self.october and period == "2026-11" else []
        outcome = self._played(period, self.movements, before, today, over=False)
        return self._given - self._taken - sum(outcome.lost.values())

    def _played(
        self,
        period: str,
        movements: Sequence[tuple[int, int]],
        before: list[Outcome],
        today: int,
        *,
        over: bool,
    ) -> Outcome:
        first, last = PERIODS[period]
        coins = [self._coins(n) for n, lot in enumerate(self.lots) if lot.period == period]
        taken = [(day, n) for day, n in movements if first <= day <= last]
        for outcome in before:
            for name, gone, n in outcome.next_period:
                lot = self._coins(int(name))
                lot.gone, lot.count = gone, n
                coins.append(lot)
            taken.append((first, outcome.debt))
        self._given, self._taken = sum(lot.count for lot in coins), sum(n for _, n in taken)
        return play(coins, taken, first, last, today, over=over)

    def _coins(self, number: int) -> Coins:
        lot = self.lots[number]
        words = (lot.rollover or "none").split()
        bounds = dict(zip(words[::2], map(int, words[1::2]), strict=False)) if len(words) > 1 else {}
        limits = None if words == ["none"] else (bounds.get("min", 0), bounds.get("max"))
        return Coins(str(number), lot.priority, lot.gone, number, lot.gpu_hours, limits)


class Played:
    """The same world on a ledger."""

    def __init__(self, connection: sa.Connection, world: World) -> None:
        self.reader, self.writer = Reader(connection), Writer(connection)
        self.calendar = Calendar(world.zone)
        self.midnight = dt.datetime(2026, 10, 1, tzinfo=ZoneInfo(world.zone))
        self.clock = FixedClock(self.at(EDGE + world.begin))
        names = [budget.AccountCreated(account=name) for name in ("org", HARD, OTHER)]
        hard = budget.OverdraftSet(account=HARD, overdraft="hard", reason="t", by="t")
        self.tell(ORG_BOOK, *((0, fact) for fact in (*names, hard)))
        facts: list[tuple[int, Fact]] = [(0, self.granted(n, lot)) for n, lot in enumerate(world.lots)]
        for n, (begin, hours) in enumerate(world.used):
            facts += self.run(f"u{n}", begin, hours, 1)
        facts += [(hour, self.submitted(name, step)) for name, hour, step in timed(world)]
        self.tell(CLUSTER, *facts)
        if world.is_october_closed:
            self.close("2026-10")

    def granted(self, number: int, lot: Given) -> budget.Granted:
        return budget.Granted(
            account=HARD, cluster=CLUSTER, period=lot.period, gpu_ms=lot.gpu_hours * GPU_HOUR, priority=lot.priority,
            expires_at=None if lot.gone is None else self.day(lot.gone), rollover=lot.rollover, reason=f"{number}",
            by="t",
        )  # fmt: skip

    def at(self, hour: int) -> dt.datetime:
        """Return an hour since the first of October, on the wall."""
        return self.day(hour // 24) + dt.timedelta(hours=hour % 24)

    def day(self, number: int) -> dt.datetime:
        return (self.midnight + dt.timedelta(days=number)).astimezone(dt.UTC)

    def tell(self, book: str, *facts: tuple[int, Fact]) -> None:
        told = [
            make(id=f"{next(numbers)}", source="t", at_s=int(self.at(hour).timestamp()), data=fact)[0]
            for hour, fact in facts
        ]
        append(self.writer, book, told, clock=self.clock, calendar=self.calendar)

    def submitted(self, name: str, step: Step) -> workload.Submitted:
        return workload.Submitted(
            cluster=CLUSTER, workload=name, account=HARD, user="ada", gpus_milli=step.gpus * 1000,
            minimum_runtime_s=step.hours * 3600,
        )  # fmt: skip

    def run(self, name: str, hour: int, hours: int, gpus: int) -> list[tuple[int, Fact]]:
        started = workload.Started(
            cluster=CLUSTER,
            workload=name,
            run="r",
            attempt=1,
            gpus_milli=gpus * 1000,
            hosts=["h1"],
            account=HARD,
        )
        ended = workload.Ended(cluster=CLUSTER, workload=name, run="r", reason="done")
        return [(hour, started), (hour + hours, ended)]

    def ask(self, name: str, hour: int, step: Step) -> bool:
        """Ask for GPUs, and run them for just as long as they are held."""
        found = admit(self.writer, CLUSTER, name, clock=self.clock, calendar=self.calendar).decision
        self.tell(CLUSTER, *self.run(name, hour, step.hours, step.gpus))
        return found.klass == "allocated"

    def give(self, key: str, step: Step) -> bool:
        order = budget.Transferred(
            account=HARD, to=OTHER, cluster=CLUSTER, period=step.gives or "", gpu_ms=step.hours * GPU_HOUR, reason=key,
            by="t",
        )  # fmt: skip
        try:
            execute(self.writer, order, key=key, clock=self.clock, calendar=self.calendar)
        except Refused:
            return False
        return True

    def close(self, period: str) -> None:
        close_period(self.writer, CLUSTER, period, "t", clock=self.clock, calendar=self.calendar)

    def in_january(self) -> int:
        """Return what is left in January when all before it is closed, in GPU-hours."""
        self.clock = FixedClock(self.day(100))
        for period in ("2026-10", "2026-11", "2026-12"):
            self.close(period)
        found = balances(
            self.reader, BalanceQuery(CLUSTER, "2027-01"), int(self.clock.now().timestamp()), self.calendar
        )
        return sum(b.own_available_gpu_ms for b in found if b.account == HARD) // GPU_HOUR


@pytest.fixture(scope="module")
def empty(postgres: "EmbeddedPostgres", template_database: str) -> Iterator[sa.Engine]:
    """A database that each example leaves as it found it."""
    yield from _database(postgres, template_database, "outlooks_of_ledgers")


def timed(world: World) -> Iterator[tuple[str, int, Step]]:
    """Yield the name of each step and the hour at which it comes."""
    hour = EDGE + world.begin
    for number, step in enumerate(world.steps):
        hour += step.wait
        yield f"w{number}", hour, step


def wanted(step: Step, hour: int) -> list[tuple[int, int]]:
    """Return the day of each token that a step takes."""
    if step.gives is None:
        return [(at // 24, step.gpus) for at in range(hour, hour + step.hours)]
    first, last = PERIODS[step.gives]
    return [(min(max(hour // 24, first), last), step.hours)]


@few
@given(worlds)
def test_who_asks_or_gives_is_heard_exactly_when_the_closes_leave_nothing_unpaid(
    empty: sa.Engine, world: World
) -> None:
    book, heard = Book(world), []
    with empty.connect() as connection, connection.begin() as transaction:
        played = Played(connection, world)
        at_first = [outcome.debt for outcome in book.closes()]
        for name, hour, step in timed(world):
            played.clock = FixedClock(played.at(hour))
            takes = wanted(step, hour)
            fits = not any(
                after.debt > before.debt
                for before, after in zip(book.closes(), book.closes(takes), strict=True)
            )
            if step.gives is None:
                heard.append(played.ask(name, hour, step))
            else:
                fits = fits and book.left(step.gives, hour // 24) >= step.hours
                heard.append(played.give(name, step))
            assert heard[-1] == fits, step
            if fits:
                book.movements += takes
        last = book.closes()[-1]
        left, sound = played.in_january(), check(played.reader, played.calendar).differences
        transaction.rollback()
    assert [outcome.debt for outcome in book.closes()] == at_first
    assert left == sum(n for *_, n in last.next_period) - last.debt
    assert not sound
    event(f"{sum(heard)} of {len(heard)} heard")
