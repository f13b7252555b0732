"""What notices follow from, as the warehouse and the books have it."""

import datetime as dt
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa
from tests.integration.close.closing import NOVEMBER, Books, fill
from tests.integration.ledger.books import CLUSTER, Ledger, told
from tests.integration.notify.spending import foresee, roll_up

from gpuledger.close import steps
from gpuledger.database.engine import make_engine, reading, writing
from gpuledger.events import proposal
from gpuledger.events.budget import AccountCreated
from gpuledger.kernel.calendar import Calendar
from gpuledger.ledger.proposing import take
from gpuledger.notify.following import State
from gpuledger.notify.state import read_state
from gpuledger.notify.thresholds import Spent

NOW = dt.datetime(2026, 12, 3, 12, tzinfo=dt.UTC)


@pytest.fixture
def engine(database_url: str) -> Iterator[sa.Engine]:
    found = make_engine(database_url)
    yield found
    found.dispose()


def state(engine: sa.Engine, now: dt.datetime = NOW) -> State:
    with reading(engine) as reader:
        return read_state(reader, Calendar(), now)


def test_spent_is_net_of_credits_and_given_is_what_was_given_whatever_expires(engine: sa.Engine) -> None:
    roll_up(engine, "org/a", 70, credited=20, transferred=-30, expired=40, held=5, unallocated=9)
    assert state(engine).budgets == [Spent("alpha", "2026-12", "org/a", 50, 70)]


def test_periods_that_go_on_or_ended_within_a_week_are_looked_at(engine: sa.Engine) -> None:
    for period in ("2026-10", "2026-11", "2026-12", "2027-01"):
        roll_up(engine, "org/a", 1, period=period)
    assert [each.period for each in state(engine).budgets] == ["2026-11", "2026-12"]
    assert [each.period for each in state(engine, NOW + dt.timedelta(days=5)).budgets] == ["2026-12"]


def test_an_overrun_is_told_of_where_the_middle_future_does_not_fit(engine: sa.Engine) -> None:
    for account, forecast in (("org/a", 101), ("org/b", 100), ("org/c", 96)):
        roll_up(engine, account, 10)
        foresee(engine, account, forecast)
    (found,) = state(engine).overruns
    assert (found.account, found.funds_gpu_ms, found.forecast_gpu_ms, found.low_gpu_ms, found.high_gpu_ms) == (
        "org/a", 100, 101, 96, 106,
    )  # fmt: skip


def test_what_an_inner_account_owns_itself_is_named_so(engine: sa.Engine) -> None:
    for account in ("org", "org/a"):
        roll_up(engine, account, 10)
        foresee(engine, account, 200)
    assert [each.account for each in state(engine).overruns] == ["org/~own", "org/a"]


def test_nothing_is_foreseen_of_a_period_that_is_over(engine: sa.Engine) -> None:
    roll_up(engine, "org/a", 10, period="2026-11")
    foresee(engine, "org/a", 200, period="2026-11")
    assert state(engine).overruns == []


def test_closes_are_as_the_books_have_them(database_url: str, tmp_path: Path) -> None:
    ledger = Ledger(database_url)
    fill(ledger)
    books = Books(ledger, tmp_path / "closes")
    outcome = books.close()
    (found,) = state(ledger.engine).closes
    assert (found.cluster, found.period, found.version, found.digest) == (
        CLUSTER,
        NOVEMBER,
        1,
        outcome.digest,
    )
    assert (found.sealed_at is None, found.reopened_at) == (False, None)
    steps.reopen(books.closer(), "a mistake")
    (found,) = state(ledger.engine).closes
    assert found.reopened_at is not None
    assert found.sealed_at is not None
    assert found.reopened_at > found.sealed_at
    ledger.engine.dispose()


def test_proposals_are_as_their_books_have_them_without_names_and_words(database_url: str) -> None:
    ledger = Ledger(database_url)
    ledger.append(*(told(0, AccountCreated(account=name)) for name in ("org", "org/vision", "org/speech")))
    due = dt.datetime(2026, 12, 24, tzinfo=dt.UTC)
    shares = [
        proposal.NewShare(account="org/vision", share=3),
        proposal.NewShare(account="org/speech", share=1),
    ]
    made = proposal.Proposed(proposal="p-1", shares=shares, decide_by=due, by="ada", reason="hunter2")
    steps = [made, proposal.Rejected(proposal="p-1", by="bob", reason="hunter2")]
    found = []
    for number, step in enumerate(steps):
        with writing(ledger.engine) as writer:
            take(
                writer, step, key=f"k{number}", clock=ledger.clock, calendar=ledger.calendar, by_another=True
            )
        found += state(ledger.engine).proposals
    ledger.engine.dispose()
    pending, rejected = found
    assert (pending.state, pending.decided_at, pending.decide_by) == ("pending", None, due)
    assert rejected.state == "rejected"
    assert rejected.decided_at is not None
    assert pending.data.accounts == ["org/speech", "org/vision"]
    assert [(each.account, each.share) for each in pending.data.shares] == [
        ("org/vision", 3),
        ("org/speech", 1),
    ]
    assert pending.data.decide_by == "2026-12-24T00:00:00Z"
    assert not any(word in str(rejected) for word in ("ada", "bob", "hunter2"))
