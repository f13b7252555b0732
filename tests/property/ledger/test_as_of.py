"""Law 6: what a report said at a recorded time, it says for ever when it is asked as of that time."""

import datetime as dt
import random
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
import sqlalchemy as sa
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.property.ledger import test_holds
from tests.property.ledger.holds_oracle import World
from tests.property.ledger.test_laws import _database, batches

from gpuledger.database.engine import Reader, Writer
from gpuledger.events.budget import AccountCreated, Granted
from gpuledger.events.closing import LedgerTicked
from gpuledger.events.envelope import make
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.clock import FixedClock, seconds
from gpuledger.ledger.append import append
from gpuledger.ledger.balances import Balance, BalanceQuery, balances
from gpuledger.ledger.closing import close_period
from gpuledger.ledger.periods import PeriodStatus, periods
from gpuledger.ledger.rebuild import rebuild
from gpuledger.ledger.usage import By, UsageQuery, UsageReport, usage

if TYPE_CHECKING:
    from gpuledger.database.embedded import EmbeddedPostgres

few = settings(max_examples=settings().max_examples // 3, deadline=None)
STEP = dt.timedelta(minutes=90)
"""From one batch to the next: the runs' ten hours are lived through in a few."""


@pytest.fixture(scope="module")
def empty(postgres: "EmbeddedPostgres", template_database: str) -> Iterator[sa.Engine]:
    """A database that each example leaves as it found it."""
    yield from _database(postgres, template_database, "as_of_ledgers")


Said = tuple[list[Balance], list[Balance], UsageReport, list[PeriodStatus]]


def said(reader: Reader | Writer, now: dt.datetime, as_of: dt.datetime | None = None) -> Said:
    """What the reports say: balances as sealed and as known, use, and where periods stand."""
    now_s, calendar = seconds(now), Calendar()
    sealed, known = (
        balances(reader, BalanceQuery("alpha", as_of=as_of, as_known=known), now_s, calendar)
        for known in (False, True)
    )
    report = usage(reader, UsageQuery(by=By.ACCOUNT, as_of=as_of), now_s, calendar)  # type: ignore[arg-type]
    return sealed, known, report, periods(reader, "alpha", as_of)  # type: ignore[arg-type]


def without_empty(found: Said) -> object:
    """Leave out balances that say nothing: whether a line of zeros stands there is no statement."""
    sealed, known, report, stood = found
    kept = [
        [b for b in of if any(v for v in b.as_json().values() if isinstance(v, int))]
        for of in (sealed, known)
    ]
    return kept, report.rows, report.total_gpu_ms, report.provisional_gpu_ms, stood


@few
@given(world=test_holds.worlds(), randomness=st.randoms(use_true_random=False), closes=st.booleans())
def test_what_was_said_then_is_said_for_ever(
    empty: sa.Engine, world: World, randomness: random.Random, *, closes: bool
) -> None:
    calendar = Calendar()
    told = test_holds.events(world, "alpha")
    randomness.shuffle(told)
    with empty.connect() as connection, connection.begin() as transaction:
        reader, writer = Reader(connection), Writer(connection)
        now = test_holds.EVE
        account = AccountCreated(account="org/a")
        append(
            writer,
            "~org",
            [make(id="a", source="t", at_s=0, data=account)[0]],
            clock=FixedClock(now),
            calendar=calendar,
        )
        lot = Granted(
            account="org/a",
            cluster="alpha",
            period="2026-11",
            gpu_ms=50 * 3_600_000,
            rollover="all",
            reason="t",
            by="t",
        )
        append(
            writer,
            "alpha",
            [make(id="g", source="t", at_s=0, data=lot)[0]],
            clock=FixedClock(now),
            calendar=calendar,
        )
        remembered: list[tuple[dt.datetime, object]] = []
        for batch in batches(told, randomness):
            now += STEP
            append(writer, "alpha", batch, clock=FixedClock(now), calendar=calendar)
            if randomness.random() < 0.3:
                tick = make(id=f"t{now}", source="t", at_s=seconds(now), data=LedgerTicked(cluster="alpha"))[
                    0
                ]
                append(writer, "alpha", [tick], clock=FixedClock(now), calendar=calendar)
            if closes and now.month == 12:
                close_period(writer, "alpha", "2026-11", "ada", clock=FixedClock(now), calendar=calendar)
                closes = False
            later = now + dt.timedelta(seconds=30)
            remembered.append((later, without_empty(said(reader, later))))
        now += dt.timedelta(days=3)
        if randomness.random() < 0.5:
            rebuild(writer, calendar)
        asked = [without_empty(said(reader, now, as_of)) for as_of, _ in remembered]
        transaction.rollback()
    assert asked == [then for _, then in remembered]
