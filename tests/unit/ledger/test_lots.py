"""Lots: consumed in order, lapsed and carried over by their rules."""

import datetime as dt
from collections.abc import Mapping
from typing import Any

import pytest

from gpuledger.kernel.amounts import GPU_MS_PER_GPU_HOUR, WEIGHT_ONE
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.errors import Refused
from gpuledger.kernel.rollover import Rollover
from gpuledger.ledger.lots import Lot, Settlement, expiry_day, net_uses, settle

HOUR = GPU_MS_PER_GPU_HOUR
H = HOUR * WEIGHT_ONE
"""One GPU-hour of a model that weighs one."""

BERLIN = Calendar("Europe/Berlin")


def day(number: int) -> dt.date:
    """Return a day of March 2026; 32 is the first of April."""
    return dt.date(2026, 3, 1) + dt.timedelta(days=number - 1)


def lot(name: str, hours: int, **keys: Any) -> Lot:  # noqa: ANN401
    given = {"priority": None, "expires_on": None, "created": 1, "rollover": None}
    return Lot(name=name, amount=hours * H, **{**given, **keys})


def march(
    *lots: Lot, uses: Mapping[int, int] | None = None, today: int = 32, closed: bool = True
) -> Settlement:
    """Settle March 2026; uses are GPU-hours by number of the day."""
    return settle(
        lots,
        {day(number): hours * H for number, hours in (uses or {}).items()},
        first_day=day(1),
        last_day=day(31),
        today=day(today),
        closed=closed,
    )


def hours(amounts: Mapping[dt.date, int]) -> dict[int, int]:
    return {(on - day(0)).days: amount // H for on, amount in amounts.items()}


ORDER = (
    lot("first", 10, priority=-1, created=9, rollover=Rollover()),
    lot("second", 10, priority=0, expires_on=day(40), created=8),
    lot("third", 10, priority=0, expires_on=day(50), created=1),
    lot("fourth", 10, priority=0, created=1, rollover=Rollover()),
    lot("fifth", 10, expires_on=day(40), created=1),
    lot("sixth", 10, created=2, rollover=Rollover()),
    lot("a", 10, created=3, rollover=Rollover()),
    lot("b", 10, created=3, rollover=Rollover()),
)
"""By priority, then expiry, then creation, then name; whatever is left of each is carried over."""


@pytest.mark.parametrize("consumed", range(len(ORDER)))
def test_lots_are_consumed_by_priority_then_expiry_then_creation_then_name(consumed: int) -> None:
    done = march(*reversed(ORDER), uses={1: 10 * consumed, 30: 4})
    expected = {one.name: 10 for one in ORDER[consumed:]} | {ORDER[consumed].name: 6}
    assert {one.name.removeprefix("rolled/"): one.amount // H for one in done.rolled} == expected


def test_a_grant_covers_use_of_days_before_it() -> None:
    done = march(lot("late", 10, created=99), uses={5: 8})
    assert (hours(done.expired), done.overrun) == ({31: 2}, 0)


def test_a_lot_covers_no_use_of_a_day_on_which_it_is_gone() -> None:
    done = march(lot("a", 10, expires_on=day(20)), uses={19: 4, 20: 3})
    assert hours(done.expired) == {19: 6, 31: -3}
    assert (done.overrun, done.carried) == (3 * H, -3 * H)


def test_a_lot_lapses_on_its_day_and_not_before() -> None:
    given = lot("a", 10, expires_on=day(20))
    assert march(given, uses={3: 4}, today=19, closed=False).expired == {}
    assert hours(march(given, uses={3: 4}, today=20, closed=False).expired) == {19: 6}


@pytest.mark.parametrize("gone", [-400, 0, 1])
def test_a_lot_that_was_gone_before_the_period_expires_whole_on_the_first_day(gone: int) -> None:
    done = march(lot("a", 10, expires_on=day(gone)), uses={1: 4}, today=2, closed=False)
    assert (hours(done.expired), done.overrun) == ({1: 10}, 4 * H)


def test_an_open_period_carries_nothing() -> None:
    done = march(lot("a", 10, rollover=Rollover(HOUR)), uses={1: 12}, today=40, closed=False)
    assert done == Settlement({}, (), 0, 0, 2 * H)


def test_the_rest_expires_on_the_last_day() -> None:
    assert march(lot("a", 10), uses={1: 4}) == Settlement({day(31): 6 * H}, (), 0, 0, 0)


@pytest.mark.parametrize(
    ("rule", "rest", "carried", "topped_up"),
    [
        ("none", 6, 0, 0),
        ("all", 6, 6, 0),
        ("max 4", 6, 4, 0),
        ("max 8", 6, 6, 0),
        ("max 0", 6, 0, 0),
        ("min 4", 6, 6, 0),
        ("min 8", 6, 6, 2),
        ("min 8", 0, 0, 8),
        ("min 2 max 4", 6, 4, 0),
        ("min 7 max 7", 6, 6, 1),
        ("min 2 max 4", 3, 3, 0),
    ],
)
def test_what_the_next_period_gets_lies_between_minimum_and_maximum(
    rule: str, rest: int, carried: int, topped_up: int
) -> None:
    done = march(lot("a", 10, priority=2, created=7, rollover=Rollover.parse(rule)), uses={2: 10 - rest})
    assert (hours(done.expired).get(31, 0), done.carried // H, done.topped_up // H) == (
        rest,
        carried,
        topped_up,
    )
    if carried + topped_up:
        amount = (carried + topped_up) * H
        assert done.rolled == (Lot("rolled/a", 2, None, 7, amount, Rollover.parse(rule)),)
    else:
        assert done.rolled == ()


def test_a_lot_that_outlives_the_period_is_carried_whole_whatever_its_rollover() -> None:
    given = lot("a", 10, expires_on=day(33), rollover=Rollover(0, HOUR))
    done = march(given, uses={2: 4})
    assert done.rolled == (given._replace(name="rolled/a", amount=6 * H),)
    assert (hours(done.expired), done.carried, done.topped_up) == ({31: 6}, 6 * H, 0)


def test_a_lot_that_is_gone_with_the_period_does_not_outlive_it() -> None:
    assert march(lot("a", 10, expires_on=day(32))).rolled == ()
    (rolled,) = march(lot("a", 10, expires_on=day(32), rollover=Rollover())).rolled
    assert (rolled.amount, rolled.expires_on) == (10 * H, None)


def test_a_lot_that_was_used_up_is_not_carried() -> None:
    assert (
        march(lot("a", 10, expires_on=day(60)), lot("b", 1, rollover=Rollover()), uses={1: 11}).rolled == ()
    )


def test_a_lapsed_lot_has_no_rollover() -> None:
    done = march(lot("a", 10, expires_on=day(20), rollover=Rollover(HOUR)))
    assert done == Settlement({day(19): 10 * H}, (), 0, 0, 0)


def test_an_overrun_is_a_debt_of_the_next_period() -> None:
    done = march(lot("a", 10, rollover=Rollover(2 * HOUR)), uses={1: 13})
    assert hours(done.expired) == {31: -3}
    assert (done.carried, done.topped_up, done.overrun) == (-3 * H, 2 * H, 3 * H)
    assert [(one.name, one.amount) for one in done.rolled] == [("rolled/a", 2 * H)]


def test_a_lot_is_carried_again_and_again() -> None:
    first = march(lot("grant/12", 10, rollover=Rollover()))
    again = march(*first.rolled)
    assert [one.name for one in again.rolled] == ["rolled/rolled/grant/12"]


def test_nothing_comes_of_nothing() -> None:
    assert march() == Settlement({}, (), 0, 0, 0)


@pytest.mark.parametrize(
    ("uses", "left"),
    [
        ({1: 5, 2: 5, 3: -3}, {1: 5, 2: 2}),
        ({1: 5, 2: 5, 3: -7}, {1: 3}),
        ({1: 5, 2: -7, 3: 1, 4: 4}, {4: 3}),
        ({1: -7, 2: 3, 3: 9}, {3: 5}),
        ({1: 5, 2: -9, 3: 2}, {}),
        ({1: 5, 2: -1, 3: -1, 4: 2, 5: -3}, {1: 2}),
        ({1: 0, 2: 3}, {2: 3}),
    ],
)
def test_a_refund_takes_from_the_nearest_day_before_it_then_from_those_after(
    uses: dict[int, int], left: dict[int, int]
) -> None:
    assert net_uses({day(n): amount for n, amount in uses.items()}) == {
        day(n): use for n, use in left.items()
    }


def test_a_refund_of_more_than_all_use_is_not_seen() -> None:
    assert march(lot("a", 10), uses={3: 2, 4: -9}) == march(lot("a", 10))


@pytest.mark.parametrize(
    ("lots", "keys", "said"),
    [
        ([], {"uses": {0: 1}}, "use on 2026-02-28 lies outside"),
        ([], {"uses": {32: 1}}, "use on 2026-04-01 lies outside"),
        ([lot("a", 0)], {}, "lot a has no amount"),
        ([lot("a", 1), lot("a", 2)], {}, "the same name"),
        ([lot("a", 1, rollover=Rollover(2, 1))], {}, "the rollover of lot a is no range"),
        ([lot("a", 1, rollover=Rollover(-1))], {}, "the rollover of lot a is no range"),
        ([], {"today": 31}, "cannot close on 2026-03-31"),
    ],
)
def test_what_no_caller_may_say_is_an_error(lots: list[Lot], keys: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        march(*lots, **keys)


@pytest.mark.parametrize(
    ("text", "calendar", "expected"),
    [
        ("2026-04-30T22:00:00Z", BERLIN, dt.date(2026, 5, 1)),
        ("2026-05-01T00:00:00+02:00", BERLIN, dt.date(2026, 5, 1)),
        ("2026-03-29T01:00:00+02:00", Calendar("Africa/Cairo"), None),
        ("2026-04-24T01:00:00+03:00", Calendar("Africa/Cairo"), dt.date(2026, 4, 24)),  # has no hour 0
        ("2026-05-01T00:00:00Z", Calendar(), dt.date(2026, 5, 1)),
        ("2026-05-01T00:00:00Z", BERLIN, None),
        ("2026-05-01T00:00:00.000001Z", Calendar(), None),
        ("2026-05-01T00:00:01Z", Calendar(), None),
    ],
)
def test_a_lot_expires_where_a_day_of_the_organisation_begins(
    text: str, calendar: Calendar, expected: dt.date | None
) -> None:
    at = dt.datetime.fromisoformat(text)
    if expected is None:
        with pytest.raises(Refused, match="is not the beginning of a day in"):
            expiry_day(at, calendar)
    else:
        assert expiry_day(at, calendar) == expected


def test_the_two_nearest_midnights_are_named() -> None:
    with pytest.raises(Refused) as refused:
        expiry_day(dt.datetime(2026, 3, 29, 12, tzinfo=dt.UTC), BERLIN)
    assert (
        refused.value.message
        == "expires: 2026-03-29T12:00:00Z is not the beginning of a day in Europe/Berlin"
    )
    assert (
        refused.value.hint == "write 2026-03-28T23:00:00Z (2026-03-29) or 2026-03-29T22:00:00Z (2026-03-30)"
    )


@pytest.mark.parametrize("text", ["1969-12-31T00:00:00Z", "2101-01-01T00:00:00Z", "9999-12-31T00:00:00Z"])
def test_an_expiry_out_of_all_bounds_is_refused(text: str) -> None:
    with pytest.raises(Refused, match="out of all bounds"):
        expiry_day(dt.datetime.fromisoformat(text), BERLIN)
