"""What orders leave beside the journal: lots, and where accounts, shares and periods stand."""

import datetime as dt
from typing import Any

import pytest

from gpuledger.events.budget import (
    AccountCreated,
    AdjustmentPosted,
    Granted,
    OverdraftSet,
    PeriodGrant,
    PeriodOpened,
    PolicyChanged,
    ShareSet,
    Transferred,
)
from gpuledger.events.closing import PeriodClosed, PeriodClosing, PeriodReopened
from gpuledger.events.envelope import ORG_BOOK
from gpuledger.events.registry import Fact
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.clock import instant
from gpuledger.ledger.orders import Given, first_day_after, lots_of, rows
from gpuledger.ledger.projections import Journalled

BERLIN = Calendar("Europe/Berlin")
WHERE: dict[str, Any] = {"cluster": "alpha", "period": "2026-12"}
ORDER: dict[str, Any] = {"reason": "r", "by": "ada"}
GRANT = Granted(account="org/a", **WHERE, gpu_ms=5, **ORDER)


def adjusted(code: Any, gpu_ms: int) -> AdjustmentPosted:  # noqa: ANN401
    return AdjustmentPosted(account="org/a", **WHERE, code=code, gpu_ms=gpu_ms, **ORDER)


def opened(*grants: PeriodGrant) -> PeriodOpened:
    return PeriodOpened(**WHERE, installed_gpu_ms=9, grants=list(grants), org_seq=1)


def at(text: str) -> int:
    return int(dt.datetime.fromisoformat(text).timestamp())


LOTS: list[tuple[Fact, list[tuple[str, str, int]]]] = [
    (GRANT, [("org/a", "grant/7", 5000)]),
    (Granted(account="org", **WHERE, gpu_ms=5, **ORDER, limit=True), []),
    (Granted(account="org/a", **WHERE, gpu_ms=0, **ORDER), []),
    (Transferred(account="org/a", to="org/b", **WHERE, gpu_ms=2, **ORDER), [("org/b", "transfer/7", 2000)]),
    (
        opened(PeriodGrant(account="org/a", gpu_ms=3), PeriodGrant(account="org/b", gpu_ms=0)),
        [("org/a", "opening/7", 3000)],
    ),
    (adjusted("grant", 4), [("org/a", "adjustment/7", 4000)]),
    (adjusted("grant", -4), []),
    (adjusted("charge", 4), []),
    (ShareSet(account="org/a", share=1, **ORDER), []),
]


@pytest.mark.parametrize(("fact", "expected"), LOTS)
def test_what_comes_in_is_a_lot(fact: Fact, expected: list[tuple[str, str, int]]) -> None:
    found = list(lots_of(fact, 7, BERLIN))
    assert [(lot.account, lot.name, lot.amount) for lot in found] == expected
    assert {(lot.period, lot.created_seq) for lot in found} <= {("2026-12", 7)}


def test_a_grant_says_when_its_lot_goes_and_what_becomes_of_it() -> None:
    fact = Granted(
        account="org/a", **WHERE, gpu_ms=5, **ORDER, priority=2, rollover="max 1",
        expires_at=dt.datetime(2026, 12, 9, 23, tzinfo=dt.UTC),
    )  # fmt: skip
    assert list(lots_of(fact, 7, BERLIN)) == [
        Given("org/a", "2026-12", "grant/7", 2, dt.date(2026, 12, 10), 7, 5000, "max 1")
    ]


@pytest.mark.parametrize(
    ("instant_", "day"),
    [
        ("2026-12-09T23:00:00+00:00", dt.date(2026, 12, 10)),  # Berlin's midnight
        ("2026-12-09T23:00:01+00:00", dt.date(2026, 12, 11)),
        ("2026-12-09T22:59:59+00:00", dt.date(2026, 12, 10)),
        ("2026-03-28T23:00:00+00:00", dt.date(2026, 3, 29)),  # the day that has 23 hours
        ("2026-03-29T22:00:00+00:00", dt.date(2026, 3, 30)),
    ],
)
def test_a_lot_that_goes_within_a_day_is_there_until_it_ends(instant_: str, day: dt.date) -> None:
    assert first_day_after(at(instant_), BERLIN) == day


def told(*facts: Fact, book: str = "alpha") -> list[tuple[str, tuple[object, ...]]]:
    journal = [Journalled(seq, 3600, fact) for seq, fact in enumerate(facts, 1)]
    return [(kind, row) for kind, row in rows(book, journal, BERLIN) if kind != "lot"]


def test_the_organisation_is_what_was_ordered_last_and_an_account_what_was_first() -> None:
    at_one = instant(3600)
    facts = [
        AccountCreated(account="org"),
        AccountCreated(account="org", by="ada"),
        ShareSet(account="org", share=3, **ORDER),
        OverdraftSet(account="org", overdraft="hard", **ORDER),
        PolicyChanged(policy="organisation", timezone="UTC", period="month"),
        PolicyChanged(policy="rate_card", weights={"h100": 1}),
    ]
    assert told(*facts, book=ORG_BOOK) == [
        ("share", ("org", at_one, 3, 3)),
        ("overdraft", ("org", at_one, "hard", 4)),
        ("organisation", (5, "UTC", "month")),
        ("account", ("org", "org", 1)),
    ]
    assert told(AccountCreated(account="org")) == [], "accounts are made in the organisation's book"


CLOSING = PeriodClosing(**WHERE, version=1, by="ada")
CLOSED = PeriodClosed(**WHERE, version=1, closing_seq=2)
REOPENED = PeriodReopened(**WHERE, version=1, **ORDER)
AGAIN = PeriodClosing(**WHERE, version=2, by="ada")

LIVES: list[tuple[list[Fact], list[tuple[object, ...]]]] = [
    ([GRANT], []),
    ([opened()], [(1, 9, "open", 0, None, None)]),
    ([opened(), opened()], [(1, 9, "open", 0, None, None)]),
    ([opened(), CLOSING], [(1, 9, "closing", 1, 2, None)]),
    ([opened(), CLOSING, CLOSED], [(1, 9, "closed", 1, 2, 3)]),
    ([opened(), CLOSING, CLOSED, REOPENED], [(1, 9, "open", 1, 2, None)]),
    ([opened(), CLOSING, CLOSED, REOPENED, AGAIN], [(1, 9, "closing", 2, 5, None)]),
    ([CLOSING, opened()], [(2, 9, "closing", 1, 1, None)]),
]


@pytest.mark.parametrize(("facts", "expected"), LIVES)
def test_a_period_stands_where_its_orders_left_it(
    facts: list[Fact], expected: list[tuple[object, ...]]
) -> None:
    assert told(*facts) == [("period", ("alpha", "2026-12", *row)) for row in expected]
