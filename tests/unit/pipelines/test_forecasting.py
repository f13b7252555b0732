"""The model behind the forecast: whole numbers in and out, the same from the same, and not without a past."""

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.tsa.statespace.sarimax import SARIMAX
from statsmodels.tsa.statespace.structural import UnobservedComponents

from gpuledger_pipelines import forecasting
from gpuledger_pipelines.forecasting import LEAST_DAYS, NotFittedError, Outlook, outlook

HOUR = 3_600_000
histories = st.lists(st.integers(0, 24_000 * HOUR), min_size=LEAST_DAYS, max_size=40)


def steady(days: int, level: int = 800 * HOUR, spread: int = 100 * HOUR) -> list[int]:
    chance = random.Random(3)
    return [level + chance.randrange(-spread, spread) for _ in range(days)]


@settings(max_examples=10, deadline=None)
@given(histories, st.integers(1, 31), st.integers(0, 24_000 * HOUR))
def test_a_band_holds_the_middle_and_begins_at_nothing(history: list[int], days: int, today: int) -> None:
    found = outlook(history, days, today)
    assert 0 <= found.low_gpu_ms <= found.middle_gpu_ms <= found.high_gpu_ms
    assert found == outlook(history, days, today)
    assert all(isinstance(value, int) for value in (found.low_gpu_ms, found.middle_gpu_ms, found.high_gpu_ms))


def test_what_is_steady_goes_on_and_the_band_holds_it() -> None:
    found = outlook(steady(60), 10)
    assert found.low_gpu_ms < 8_000 * HOUR < found.high_gpu_ms
    assert abs(found.middle_gpu_ms - 8_000 * HOUR) < 500 * HOUR


def test_days_that_stray_further_have_a_wider_band() -> None:
    calm, wild = (outlook(steady(60, spread=spread * HOUR), 10) for spread in (20, 400))
    assert 4 * (calm.high_gpu_ms - calm.low_gpu_ms) < wild.high_gpu_ms - wild.low_gpu_ms


def test_the_size_of_the_cluster_does_not_matter() -> None:
    small, large = outlook(steady(40), 10), outlook([1000 * day for day in steady(40)], 10)
    assert large.middle_gpu_ms == pytest.approx(1000 * small.middle_gpu_ms, rel=1e-6)


def test_what_today_brought_already_comes_no_more() -> None:
    whole, half = (outlook(steady(60), 3, today * HOUR) for today in (0, 400))
    assert whole.middle_gpu_ms - half.middle_gpu_ms == pytest.approx(400 * HOUR, rel=1e-6)


def test_a_day_that_brought_more_than_was_foreseen_takes_nothing_from_the_others() -> None:
    busy = outlook(steady(60), 3, 40_000 * HOUR)
    assert abs(busy.middle_gpu_ms - outlook(steady(60), 2).middle_gpu_ms) < 5 * HOUR


def test_a_level_that_never_moved_has_one_future() -> None:
    assert outlook([7 * HOUR] * LEAST_DAYS, 3, 2 * HOUR) == Outlook(*[19 * HOUR] * 3)
    assert outlook([0] * LEAST_DAYS, 3) == Outlook(0, 0, 0)


def test_a_model_that_cannot_be_fitted_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    class Singular:
        def fit(self, **_: object) -> None:
            raise ValueError("singular")

    with pytest.raises(NotFittedError, match="singular"):
        forecasting._of_sum(Singular(), 3, 0)
    monkeypatch.setattr(forecasting, "_variance_of_sum", lambda fitted, days: float("nan"))
    with pytest.raises(NotFittedError, match="has no end"):
        outlook(steady(20), 3)


@pytest.mark.parametrize("days", [1, 2, 9])
def test_the_spread_of_a_sum_is_that_of_simulated_sums(days: int) -> None:
    """Against the library's own simulation; and of one day it is what the library says of that day."""
    history = np.asarray(steady(40), dtype=float) / HOUR / 1000
    for model in (UnobservedComponents(history, "llevel"), SARIMAX(history, order=(1, 0, 0), trend="c")):
        fitted = model.fit(disp=0)
        found = forecasting._variance_of_sum(fitted, days)
        paths = fitted.simulate(days, anchor="end", repetitions=2_000, rng=np.random.default_rng(1))
        assert found == pytest.approx(float(np.asarray(paths).reshape(days, -1).sum(axis=0).var()), rel=0.12)
        if days == 1:
            assert found == pytest.approx(float(fitted.get_forecast(1).var_pred_mean[0]), rel=1e-6)
