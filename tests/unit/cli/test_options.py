"""How times are written on the command line."""

import datetime as dt

import pytest

from gpuledger.cli.options import moment, one_cluster, recorded, recorded_window, window
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.clock import SystemClock
from gpuledger.kernel.errors import Refused

UTC, BERLIN = Calendar(), Calendar("Europe/Berlin")
OCTOBER_S = 1_506_816_000


@pytest.mark.parametrize(
    ("text", "calendar", "expected"),
    [
        (None, UTC, None),
        ("0", UTC, 0),
        ("2592000", UTC, 2_592_000),
        ("-3600", UTC, -3600),
        ("2017-10-01", UTC, OCTOBER_S),
        ("2017-10-01", BERLIN, OCTOBER_S - 7200),
        ("2017-10-01T00:00:00Z", BERLIN, OCTOBER_S),
        ("2017-10-01T02:00:00+02:00", UTC, OCTOBER_S),
        ("2017-10-01T00:00:00.9Z", UTC, OCTOBER_S),
    ],
)
def test_a_moment(text: str | None, calendar: Calendar, expected: int | None) -> None:
    assert moment(text, "--from", calendar) == expected


@pytest.mark.parametrize(
    "text", ["", "now", "2017-13-01", "2017-10-01T00:00:00", "9²", "--5", "1e3", "99999999999999", "1.5"]
)
def test_what_is_no_moment_is_refused_by_name(text: str) -> None:
    with pytest.raises(Refused, match=r"^--to: ") as refused:
        moment(text, "--to", UTC)
    assert refused.value.hint


def test_a_recorded_time() -> None:
    expected = dt.datetime(2026, 11, 29, 12, tzinfo=dt.UTC)
    assert recorded(None) is None
    assert recorded("2026-11-29T12:00:00Z") == expected
    found = recorded("2026-11-29T13:00:00+01:00")
    assert found == expected
    assert found.tzinfo is dt.UTC


@pytest.mark.parametrize("text", ["yesterday", "2026-11-29", "2026-11-29T12:00:00"])
def test_a_recorded_time_needs_its_zone(text: str) -> None:
    with pytest.raises(Refused, match="--as-of: "):
        recorded(text)


def test_a_recorded_time_that_is_still_to_come_is_the_present() -> None:
    before = SystemClock().now()
    found = recorded("2199-01-01T00:00:00Z", "--until")
    assert found is not None
    assert before <= found <= SystemClock().now()


@pytest.mark.parametrize(
    ("from_", "to", "expected"),
    [
        (None, None, (None, None)),
        ("5", None, (5, None)),
        (None, "5", (None, 5)),
        ("5", "5", (5, 5)),
        ("5", "9", (5, 9)),
    ],
)
def test_a_window(from_: str | None, to: str | None, expected: tuple[int | None, int | None]) -> None:
    assert window(from_, to, UTC) == expected
    recorded_at = tuple(None if s is None else dt.datetime.fromtimestamp(s, dt.UTC) for s in expected)
    assert recorded_window(from_, to, UTC) == recorded_at


def test_a_window_does_not_end_before_it_begins() -> None:
    with pytest.raises(Refused, match="--to: '4' lies before --from '5'"):
        window("5", "4", UTC)


def test_the_only_cluster_needs_no_name() -> None:
    assert one_cluster(None, ["alex"]) == "alex"
    assert one_cluster("philly", ["alex", "philly"]) == "philly"
    with pytest.raises(Refused, match="name one"):
        one_cluster(None, ["alex", "philly"])
