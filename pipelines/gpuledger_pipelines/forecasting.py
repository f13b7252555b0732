"""What the days to come will bring, told from the days that were, by whole numbers in and out.

Two models say what comes: of a level that wanders (local level: tomorrow is like today), and of one that comes back to
its mean (autoregression). Which of the two an account is, a month of days does not tell, so the middle and both ends of
the band are the means of theirs. ``docs/forecast.md`` shows the back-test that chose them.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

LEAST_DAYS = 14
"""Two weeks: with less, neither what is usual nor how far days stray from it can be told."""

MOST_DAYS = 182
"""What was half a year ago says little of next week, and the work grows with every day."""

BAND = (0.1, 0.9)
REACH = 1.2815515594
"""A tenth of a normal distribution lies further than so many standard deviations above its middle, a tenth below."""


class NotFittedError(Exception):
    """No model could be fitted to the history."""


@dataclass(frozen=True, slots=True)
class Outlook:
    """What the days to come bring in sum.

    Args:
        low_gpu_ms: Less comes in one future of ten.
        middle_gpu_ms: Less comes in every other future.
        high_gpu_ms: More comes in one future of ten.
    """

    low_gpu_ms: int
    middle_gpu_ms: int
    high_gpu_ms: int


def outlook(history: Sequence[int], days: int, today_gpu_ms: int = 0) -> Outlook:
    """Return what the next days will bring in sum.

    Args:
        history: gpu_ms of each day before today, oldest first; at least ``LEAST_DAYS`` of them.
        days: How many days are asked for, today among them.
        today_gpu_ms: What today has brought already: it comes no more.

    Raises:
        NotFittedError: When no model can be fitted to the history.
    """
    scale = max(history)
    if scale == min(history):  # a level that never moved has one future
        rest = max(scale - today_gpu_ms, 0) + scale * (days - 1)
        return Outlook(rest, rest, rest)
    # A model's search for its parameters minds how large the numbers are; amounts of a cluster are enormous.
    told = _told([gpu_ms / scale for gpu_ms in history], days, today_gpu_ms / scale)
    low, middle, high = (round(sum(one) / len(one) * scale) for one in zip(*told, strict=True))
    return Outlook(low, middle, high)


def _told(history: Sequence[float], days: int, today: float) -> list[tuple[float, float, float]]:
    """Return low, middle and high of each model."""
    import numpy as np
    from statsmodels.tsa.statespace.sarimax import SARIMAX
    from statsmodels.tsa.statespace.structural import UnobservedComponents

    known = np.asarray(history, dtype=float)
    models = (UnobservedComponents(known, "llevel"), SARIMAX(known, order=(1, 0, 0), trend="c"))
    return [_of_sum(model, days, today) for model in models]


def _of_sum(model: Any, days: int, today: float) -> tuple[float, float, float]:  # noqa: ANN401 - it has no annotations
    """Fit a model; return low, middle and high of the sum of the next days, less what today has brought."""
    import numpy as np

    try:
        with warnings.catch_warnings():
            # The library warns of searches that ended early or began anew; the back-test has judged what they find.
            warnings.simplefilter("ignore")
            fitted = model.fit(disp=0, maxiter=50)
            by_day = np.maximum(fitted.get_forecast(days).predicted_mean, 0)
            spread = float(np.sqrt(_variance_of_sum(fitted, days)))
    except (ValueError, np.linalg.LinAlgError) as error:
        raise NotFittedError(str(error)) from error
    # Today's part is over only as far as it was foreseen: a day that brought more takes nothing from the others.
    middle = float(by_day.sum() - min(today, by_day[0]))
    if not np.isfinite([middle, spread]).all():
        raise NotFittedError("the spread of what is to come has no end")
    return max(middle - REACH * spread, 0.0), middle, middle + REACH * spread


def _variance_of_sum(fitted: Any, days: int) -> float:  # noqa: ANN401
    """Return the variance of the sum of the next days.

    The library gives that of each day; the sum's is not theirs together, for days that follow each other stray
    alike. A shock to the state n days before the end enters the sum n times, each time as far as it has worn off.
    """
    import numpy as np

    space = fitted.model.ssm
    observe, move, shock = (
        np.atleast_3d(space[name])[..., 0] for name in ("design", "transition", "selection")
    )
    shocks = shock @ np.atleast_3d(space["state_cov"])[..., 0] @ shock.T
    reach = np.zeros_like(observe)
    power = np.eye(len(move))
    variance = days * float(np.ravel(space["obs_cov"])[0])
    for day in range(1, days + 1):
        reach = reach + observe @ power
        power = move @ power
        of_state = fitted.predicted_state_cov[..., -1] if day == days else shocks
        variance += float((reach @ of_state @ reach.T).item())
    return variance
