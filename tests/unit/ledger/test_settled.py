"""Which periods an account's arithmetic reaches."""

import datetime as dt

import pytest

from gpuledger.kernel.calendar import Calendar
from gpuledger.ledger.lots import Lot
from gpuledger.ledger.settled import DEBT, Settled, carried_rows, is_carried


@pytest.mark.parametrize(
    ("closed", "lapse", "start", "reached"),
    [
        ([], None, "2026-11", ["2026-11"]),
        (["2026-11"], None, "2026-11", ["2026-11", "2026-12"]),
        (["2026-11", "2026-12"], None, "2026-11", ["2026-11", "2026-12", "2027-01"]),
        (["2026-10"], None, "2026-11", ["2026-11"]),
        (["2026-10"], "2026-12", "2026-10", ["2026-10", "2026-11", "2026-12"]),
        ([], "2026-10", "2026-11", ["2026-11"]),
    ],
)
def test_arithmetic_goes_on_to_the_last_period_that_anything_settles(
    closed: list[str], lapse: str | None, start: str, reached: list[str]
) -> None:
    last_lapse = {} if lapse is None else {"org/a": lapse}
    book = Settled("alpha", frozenset(closed), dt.date.min, Calendar(), frozenset(), last_lapse)
    assert book.through("org/a", start) == reached


def test_what_was_carried_over_is_told_by_its_name() -> None:
    lots = [Lot(name, None, None, 1, 5, None) for name in ("grant/1", "rolled/grant/1", DEBT)]
    assert [is_carried(lot) for lot in lots] == [False, True, True]
    assert [row[3] for row in carried_rows("alpha", {("org/a", "2026-12"): lots})] == [
        lot.name for lot in lots
    ]
