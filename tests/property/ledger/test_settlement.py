"""Law 8 on a real ledger: when a period is closed, and what comes late, moves no sum and no figure as known."""

import datetime as dt
import random
from collections.abc import Iterator, Sequence
from itertools import count
from typing import TYPE_CHECKING, NamedTuple

import pytest
import sqlalchemy as sa
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.property.ledger.test_laws import _database

from gpuledger.database.engine import Reader, Writer
from gpuledger.events import budget, workload
from gpuledger.events.closing import LedgerTicked
from gpuledger.events.envelope import Event, make
from gpuledger.events.registry import Fact
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.clock import FixedClock
from gpuledger.ledger.append import append
from gpuledger.ledger.audit import verify
from gpuledger.ledger.balances import BalanceQuery, balances
from gpuledger.ledger.closing import close_period, reopen_period
from gpuledger.ledger.rebuild import check, rebuild

if TYPE_CHECKING:
    from gpuledger.database.embedded import EmbeddedPostgres

NOW = dt.datetime(2027, 1, 15, tzinfo=dt.UTC)
NOW_S = int(NOW.timestamp())
PERIODS = ("2026-10", "2026-11", "2026-12")
DAYS = 92
"""From the first of October to the last of December."""

GPU_HOUR = 3_600_000
few = settings(max_examples=settings().max_examples // 3, deadline=None)
numbers = count(1)


class World(NamedTuple):
    """What is granted and used, and how far the periods are closed in the end."""

    zone: str
    lots: tuple[tuple[str, str, int, int | None, int | None, str | None], ...]
    uses: tuple[tuple[str, int, int], ...]
    closed: int


accounts = st.sampled_from(["org/a", "org/b"])
rules = st.sampled_from([None, "none", "all", "max 10", "min 5", "min 5 max 10"])
lots = st.tuples(
    accounts,
    st.sampled_from(PERIODS),
    st.integers(1, 60),
    st.none() | st.integers(0, 3),
    st.none() | st.integers(1, DAYS + 20),
    rules,
)
uses = st.tuples(accounts, st.integers(0, DAYS * 24 - 30), st.integers(1, 30))
worlds = st.builds(
    World,
    st.sampled_from(["UTC", "Europe/Berlin"]),
    st.lists(lots, max_size=5).map(tuple),
    st.lists(uses, max_size=5).map(tuple),
    st.integers(0, 3),
)


def facts(world: World, cluster: str) -> list[Event]:
    """Everything that is told; every order of it is possible."""
    calendar = Calendar(world.zone)
    first_s = calendar.day_start_s(dt.date(2026, 10, 1))
    found: list[Event] = []

    def tell(at_s: int, fact: Fact) -> None:
        found.append(make(id=f"e{len(found)}", source="test", at_s=at_s, data=fact)[0])

    for account, period, gpu_hours, priority, after_days, rollover in world.lots:
        lapses = None
        if after_days is not None:
            day = dt.date(2026, 10, 1) + dt.timedelta(days=after_days)
            lapses = dt.datetime.fromtimestamp(calendar.day_start_s(day), dt.UTC)
        tell(first_s, budget.Granted(
            account=account, cluster=cluster, period=period, gpu_ms=gpu_hours * GPU_HOUR, priority=priority,
            expires_at=lapses, rollover=rollover, reason="test", by="test",
        ))  # fmt: skip
    for number, (account, from_h, hours) in enumerate(world.uses):
        named = {"cluster": cluster, "workload": f"w{number}", "run": "r"}
        started = workload.Started(**named, attempt=1, gpus_milli=1000, hosts=["h1"], account=account)  # type: ignore[arg-type]
        tell(first_s + from_h * 3600, started)
        tell(first_s + (from_h + hours) * 3600, workload.Ended(**named, reason="done"))  # type: ignore[arg-type]
    return found


def live(
    writer: Writer, world: World, told: Sequence[Event], cluster: str, randomness: random.Random
) -> None:
    """Tell the facts in some order, and close, reopen and tick in between; all ends as the world says."""
    calendar, clock = Calendar(world.zone), FixedClock(NOW)
    closed = 0
    asked = workload.Submitted(cluster=cluster, workload="first", account="org/a", user="ada", gpus_milli=0)
    append(
        writer,
        cluster,
        [make(id="first", source="test", at_s=0, data=asked)[0]],
        clock=clock,
        calendar=calendar,
    )
    left = list(told)
    randomness.shuffle(left)
    # Grants are commands: their order is that of the book, and lots are consumed by it (law 3).
    grants = iter([event for event in told if event.name == "budget.granted"])
    left = [next(grants) if event.name == "budget.granted" else event for event in left]
    ticks = sorted(randomness.sample(range(DAYS), 2))
    while left or closed < world.closed:
        turn = randomness.random()
        if left and turn < 0.6:
            size = randomness.choice([1, 2, len(left)])
            append(writer, cluster, left[:size], clock=clock, calendar=calendar)
            left = left[size:]
        elif closed < world.closed and turn < 0.85:
            close_period(writer, cluster, PERIODS[closed], "ada", clock=clock, calendar=calendar)
            closed += 1
        elif closed and turn < 0.9:
            closed -= 1
            reopen_period(writer, cluster, PERIODS[closed], "ada", "again", clock=clock, calendar=calendar)
        elif ticks:
            at_s = calendar.day_start_s(dt.date(2026, 10, 1) + dt.timedelta(days=ticks.pop(0)))
            tick = make(id=f"t{at_s}", source="ticks", at_s=at_s, data=LedgerTicked(cluster=cluster))[0]
            append(writer, cluster, [tick], clock=clock, calendar=calendar)
    last = make(id="last", source="ticks", at_s=NOW_S - NOW_S % 86_400, data=LedgerTicked(cluster=cluster))[0]
    append(writer, cluster, [last], clock=clock, calendar=calendar)


Figures = dict[tuple[str, str], tuple[int, ...]]


def stands(reader: Reader | Writer, cluster: str, *, as_known: bool) -> Figures:
    """Return (account, period) -> granted, charged, expired, available; of those with any."""
    found = balances(reader, BalanceQuery(cluster, as_known=as_known), NOW_S)
    figures = {
        (b.account, b.period): (b.granted_gpu_ms, b.charged_gpu_ms, b.expired_gpu_ms, b.available_gpu_ms)
        for b in found
    }
    return {place: amounts for place, amounts in figures.items() if any(amounts)}


def by_account(figures: Figures) -> dict[str, tuple[int, ...]]:
    sums: dict[str, tuple[int, ...]] = {}
    for (account, _), (_, charged, _, available) in figures.items():
        before = sums.get(account, (0, 0))
        sums[account] = (before[0] + charged, before[1] + available)
    return {account: amounts for account, amounts in sums.items() if any(amounts)}


@pytest.fixture(scope="module")
def empty(postgres: "EmbeddedPostgres", template_database: str) -> Iterator[sa.Engine]:
    """A database that each example leaves as it found it."""
    yield from _database(postgres, template_database, "settlements_of_ledgers")


# A lot that lapses beyond an open period, of an account whose first period is closed.
@few
@example(World("UTC", (("org/a", "2026-12", 5, None, 33, None),), (("org/a", 2, 1),), 1), random.Random(1))
@given(worlds, st.randoms(use_true_random=False))
def test_whenever_periods_are_closed_the_figures_as_known_and_all_sums_are_the_same(
    empty: sa.Engine, world: World, randomness: random.Random
) -> None:
    known, sealed = [], []
    with empty.connect() as connection, connection.begin() as transaction:
        reader, writer = Reader(connection), Writer(connection)
        for cluster in ("one", "other"):
            live(writer, world, facts(world, cluster), cluster, randomness)
            known.append(stands(reader, cluster, as_known=True))
            sealed.append(stands(reader, cluster, as_known=False))
        audit, stood = verify(reader), check(reader, Calendar(world.zone))
        rebuild(writer, Calendar(world.zone))
        rebuilt = check(reader, Calendar(world.zone))
        transaction.rollback()
    assert known[0] == known[1]
    assert by_account(sealed[0]) == by_account(sealed[1]) == by_account(known[0])
    closed = PERIODS[: world.closed]
    assert not any(available for (_, period), (*_, available) in known[0].items() if period in closed)
    assert audit.ok
    assert (stood.differences, rebuilt.differences) == ((), ())
