"""When a notice is tried again, and when nobody wants one."""

import datetime as dt

import pytest

from gpuledger.notify.patience import DELAYS_S, Quiet, next_attempt

NOW = dt.datetime(2026, 12, 1, 12, tzinfo=dt.UTC)


def test_it_is_tried_later_each_time_and_given_up_after_some_three_days() -> None:
    waits = [next_attempt(n, NOW) for n in range(1, len(DELAYS_S) + 1)]
    assert waits == sorted(waits)  # type: ignore[type-var]
    assert waits[0] == NOW + dt.timedelta(minutes=1)
    assert next_attempt(len(DELAYS_S) + 1, NOW) is None
    assert dt.timedelta(days=3) < dt.timedelta(seconds=sum(DELAYS_S)) < dt.timedelta(days=4)


@pytest.mark.parametrize(
    ("clock", "is_quiet"),
    [("19:59", False), ("20:00", True), ("23:59", True), ("00:00", True), ("06:59", True), ("07:00", False)],
)
def test_quiet_hours_go_over_midnight(clock: str, is_quiet: bool) -> None:  # noqa: FBT001
    quiet = Quiet(dt.time(20), dt.time(7))
    at = dt.datetime.combine(NOW.date(), dt.time.fromisoformat(clock), dt.UTC)
    assert quiet.holds(at, "UTC") is is_quiet


def test_they_are_of_the_organisations_clock() -> None:
    quiet = Quiet(dt.time(12), dt.time(14))
    assert quiet.holds(NOW, "UTC")
    assert quiet.holds(NOW, "Europe/Berlin")  # 13:00
    assert not quiet.holds(NOW, "Asia/Taipei")  # 20:00


def test_hours_that_begin_where_they_end_are_none() -> None:
    assert not Quiet(dt.time(9), dt.time(9)).holds(NOW, "UTC")
