"""The real traces by day, other ways to foretell a period's end, and how each did: see docs/forecast.md."""

import csv
import datetime as dt
import gzip
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from tests.commands import traces

from gpuledger_pipelines.forecasting import LEAST_DAYS, REACH, Outlook, outlook

DAY_S = 86_400
HELIOS = Path(__file__).parents[1] / "fixtures/sources/helios/earth_vc_state_changes_2020-05.csv.gz"
Forecaster = Callable[[list[int], int], Outlook]


@dataclass(frozen=True, slots=True)
class Case:
    """A moment at which an end was foretold, and what came.

    Args:
        trace: Where it is from.
        history: gpu_ms by day before the moment.
        came: gpu_ms by day from then to the period's end.
    """

    trace: str
    history: list[int]
    came: list[int]


def cases(every_days: int) -> Iterator[Case]:
    """Yield a case for every few days of a period, for each account that has two weeks of history."""
    for days, first in philly().values():
        for start, end in (
            (dt.date(2017, 10, 1), dt.date(2017, 11, 1)),
            (dt.date(2017, 11, 1), dt.date(2017, 12, 1)),
        ):
            for day in range((start - first).days + 1, (end - first).days - 1, every_days):
                if day >= LEAST_DAYS:
                    yield Case("Philly", days[:day], days[day : (end - first).days])
    for days in helios().values():
        for day in range(LEAST_DAYS, len(days) - 1, every_days):
            yield Case("Helios", days[:day], days[day:])


def philly() -> dict[str, tuple[list[int], dt.date]]:
    """Return virtual cluster -> what it held by day from its first GPU to the trace's last day, and the first day."""
    sums: dict[str, dict[int, int]] = defaultdict(lambda: defaultdict(int))
    for run in traces.philly():
        _add(sums[run.key], run.start_s, run.end_s, run.milli)
    last = max(max(days) for days in sums.values())
    return {
        key: (
            [days.get(n, 0) for n in range(min(days), last + 1)],
            dt.date(1970, 1, 1) + dt.timedelta(min(days)),
        )
        for key, days in sorted(sums.items())
    }


def helios() -> dict[str, list[int]]:
    """Return virtual cluster -> what it held by day of May 2020, from the states of Earth."""
    may_s = int(dt.datetime(2020, 5, 1, tzinfo=dt.UTC).timestamp())
    sums: dict[str, dict[int, int]] = defaultdict(lambda: defaultdict(int))
    held: dict[str, tuple[int, int]] = {}
    with gzip.open(HELIOS, "rt", newline="") as file:
        for row in csv.DictReader(file):
            at_s = int(dt.datetime.fromisoformat(row["time"] + "+00:00").timestamp()) - may_s
            since_s, milli = held.get(row["vc"], (at_s, 0))
            _add(sums[row["vc"]], since_s, at_s, milli)
            held[row["vc"]] = (at_s, int(row["running_gpu_num"]) * 1000)
    for key, (since_s, milli) in held.items():
        _add(sums[key], since_s, 31 * DAY_S, milli)
    return {key: [days.get(n, 0) for n in range(31)] for key, days in sorted(sums.items())}


def _add(days: dict[int, int], from_s: int, to_s: int, milli: int) -> None:
    while from_s < to_s:
        edge_s = min(to_s, (from_s // DAY_S + 1) * DAY_S)
        days[from_s // DAY_S] += (edge_s - from_s) * milli
        from_s = edge_s


def naive(history: list[int], days: int) -> Outlook:
    """Every day will be as the last one was; days stray as a random walk does."""
    return _walked(history, [history[-1]] * days, 1)


def seasonal_naive(history: list[int], days: int) -> Outlook:
    """Every day will be as the same weekday was last; each weekday strays as a random walk of its own."""
    return _walked(history, [history[n - 7] for n in range(7)] * (days // 7 + 1), 7, days)


def _walked(history: list[int], expected: list[int], season: int, days: int | None = None) -> Outlook:
    days = days or len(expected)
    step = np.sqrt(np.mean(np.square(np.subtract(history[season:], history[:-season], dtype=float))))
    # The sum of n steps of a walk from its start: 1 + 4 + ... + n x n squared steps, for each day of the season.
    lengths = [(days - n + season - 1) // season for n in range(season)]
    spread = step * np.sqrt(sum(n * (n + 1) * (2 * n + 1) / 6 for n in lengths))
    middle = sum(expected[:days])
    return Outlook(max(round(middle - REACH * spread), 0), middle, round(middle + REACH * spread))


FORECASTERS: dict[str, Forecaster] = {
    "naive": naive,
    "seasonal naive": seasonal_naive,
    "ours": outlook,
}


@dataclass(frozen=True, slots=True)
class Score:
    """How a way to foretell did on a trace.

    Args:
        error: Sum of what it was wrong by, of the sum of what came.
        bias: The same, where too much and too little cancel out.
        coverage: Share of cases in which what came lay in the band.
        penalty: Width of the band, and ten times what lay beyond it, of the sum of what came (Gneiting and Raftery's
            interval score): a band is good that is narrow and holds.
    """

    error: float
    bias: float
    coverage: float
    penalty: float


def score(forecaster: Forecaster, on: list[Case]) -> Score:
    """Return how a way to foretell does in these cases."""
    rows = [(forecaster(case.history, len(case.came)), sum(case.came)) for case in on]
    whole = sum(came for _, came in rows)
    beyond = sum(max(told.low_gpu_ms - came, came - told.high_gpu_ms, 0) for told, came in rows)
    return Score(
        error=sum(abs(told.middle_gpu_ms - came) for told, came in rows) / whole,
        bias=sum(told.middle_gpu_ms - came for told, came in rows) / whole,
        coverage=sum(told.low_gpu_ms <= came <= told.high_gpu_ms for told, came in rows) / len(rows),
        penalty=(sum(told.high_gpu_ms - told.low_gpu_ms for told, _ in rows) + 10 * beyond) / whole,
    )
