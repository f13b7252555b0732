"""Of which periods something is foreseen, and why not of others."""

import datetime as dt

import pytest

from gpuledger.kernel.calendar import Calendar
from gpuledger_pipelines.defs.forecast import assets
from gpuledger_pipelines.defs.forecast.assets import NOT_BEGUN, NOT_FITTED, OVER, History, Line, line
from gpuledger_pipelines.forecasting import NotFittedError, Outlook

UTC = Calendar("UTC")
LEVEL = History([5] * 20, today_gpu_ms=1)


def at_s(*parts: int) -> int:
    return int(dt.datetime(*parts, tzinfo=dt.UTC).timestamp())  # type: ignore[arg-type]


def test_the_days_left_are_foreseen_today_among_them_as_far_as_it_is_not_over() -> None:
    assert line(UTC, at_s(2024, 3, 30, 6), "2024-03", LEVEL) == Line(Outlook(9, 9, 9), 20, 2, None)
    assert line(UTC, at_s(2024, 3, 31, 23), "2024-03", LEVEL) == Line(Outlook(4, 4, 4), 20, 1, None)


def test_days_are_those_of_the_organisations_zone() -> None:
    """At six in the evening of UTC's last day of March it is April in Auckland."""
    assert line(Calendar("Pacific/Auckland"), at_s(2024, 3, 31, 18), "2024-03", LEVEL).reason == OVER
    assert line(Calendar("Pacific/Auckland"), at_s(2024, 3, 31, 18), "2024-04", LEVEL).left_day_count == 30


def test_a_period_that_is_over_or_has_not_begun_has_a_reason() -> None:
    assert line(UTC, at_s(2024, 4, 1), "2024-03", LEVEL) == Line(None, 0, 0, OVER)
    assert line(UTC, at_s(2024, 3, 31), "2024-04", LEVEL) == Line(None, 0, 30, NOT_BEGUN)


@pytest.mark.parametrize("days", [0, 13])
def test_a_short_history_gives_a_reason_and_no_number(days: int) -> None:
    found = line(UTC, at_s(2024, 3, 15), "2024-03", History([5] * days))
    assert found == Line(None, days, 17, f"{days} whole days are known, and a forecast needs 14")


def test_a_history_that_no_model_fits_gives_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> Outlook:
        raise NotFittedError("singular")

    monkeypatch.setattr(assets, "outlook", refuse)
    assert line(UTC, at_s(2024, 3, 30), "2024-03", LEVEL) == Line(None, 20, 2, NOT_FITTED)
