"""Instants in queries: a day of the organisation's zone, or an instant with zone; nothing else."""

import datetime as dt

import pytest

from gpuledger.api.parameters import instant_of, seconds_of, window_of
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.errors import Refused

UTC = Calendar()


def test_a_day_begins_in_the_organisations_zone() -> None:
    assert instant_of("from", "2026-07-01", Calendar("Europe/Berlin")) == dt.datetime(
        2026, 6, 30, 22, tzinfo=dt.UTC
    )


def test_an_instant_keeps_its_zone() -> None:
    assert instant_of("from", "2026-07-01T02:00:00+02:00", UTC) == dt.datetime(2026, 7, 1, tzinfo=dt.UTC)


def test_not_given_is_none() -> None:
    assert (instant_of("from", None, UTC), seconds_of("to", None, UTC)) == (None, None)


@pytest.mark.parametrize(
    "text",
    ["", "yesterday", "2026-13-01", "1e9", "1500000000", "2026-07-01 00:00:00", "9999-12-31", "0001-01-01"],
)
def test_anything_else_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(Refused) as refusal:
        instant_of("from", text, UTC)
    assert "from=" in refusal.value.message
    assert refusal.value.hint


def test_a_window_is_half_open_and_not_empty() -> None:
    assert window_of("1970-01-01", "1970-01-02", UTC) == (0, 86_400)
    assert window_of(None, None, UTC) == (None, None)
    with pytest.raises(Refused, match="empty"):
        window_of("1970-01-02", "1970-01-02", UTC)
