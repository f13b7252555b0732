"""Instants and whole seconds."""

import datetime as dt

import pytest

from gpuledger.kernel.clock import EPOCH, FixedClock, SystemClock, instant, seconds


@pytest.mark.parametrize(
    ("at", "expected_s"),
    [
        ("1970-01-01T00:00:00+00:00", 0),
        ("2017-10-31T22:30:00.999999+00:00", 1_509_489_000),
        ("2017-10-31T23:30:00+01:00", 1_509_489_000),
        ("1969-12-31T23:59:59.5+00:00", -1),
    ],
)
def test_seconds_are_floored_whatever_the_zone(at: str, expected_s: int) -> None:
    assert seconds(dt.datetime.fromisoformat(at)) == expected_s


def test_an_instant_and_its_seconds_are_two_names_of_one_thing() -> None:
    for at_s in (-1, 0, 1, 951_782_400, 4_133_980_799):
        assert seconds(instant(at_s)) == at_s
        assert instant(at_s).tzinfo is dt.UTC


def test_the_system_clock_is_aware_and_in_utc() -> None:
    assert SystemClock().now().utcoffset() == dt.timedelta(0)
    assert SystemClock().now() > EPOCH


def test_a_fixed_clock_stands_still_until_it_is_set() -> None:
    clock = FixedClock(EPOCH)
    assert clock.now() == clock.now() == EPOCH
    clock.at = instant(5)
    assert clock.now() == instant(5)
