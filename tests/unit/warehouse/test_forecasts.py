"""Which budgets are seen to be overrun, and what is told where nothing is seen."""

import datetime as dt
from collections.abc import Iterator
from typing import Any

import pytest
import sqlalchemy as sa

from gpuledger.database.engine import make_engine, reading
from gpuledger.warehouse import budgets
from gpuledger.warehouse.forecast_tables import forecast
from gpuledger.warehouse.forecasts import NOT_MADE, Foreseen, Overrun, forecasts, funds_gpu_ms, overrun
from gpuledger.warehouse.tables import budget_vs_actual

AT = dt.datetime(2026, 3, 20, 6, tzinfo=dt.UTC)


def foreseen(middle: int | None, high: int | None) -> Foreseen:
    return Foreseen(middle, 0 if middle is not None else None, high, 30, AT, None)


@pytest.mark.parametrize(
    ("middle", "high", "funds", "expected"),
    [
        (100, 120, 99, Overrun.EXPECTED),
        (100, 120, 100, Overrun.POSSIBLE),
        (100, 120, 119, Overrun.POSSIBLE),
        (100, 120, 120, Overrun.NONE),
        (0, 0, 0, Overrun.NONE),
        (1, 1, 0, Overrun.EXPECTED),
        (100, 120, None, None),
        (None, None, 99, None),
    ],
)
def test_an_overrun_is_expected_or_possible(
    middle: int | None, high: int | None, funds: int | None, expected: Overrun | None
) -> None:
    assert overrun(foreseen(middle, high), funds) is expected


@pytest.mark.parametrize(
    ("budget", "transferred", "expired", "funds"),
    [(100, 20, 5, 115), (100, -100, 0, 0), (0, 30, 0, 30), (0, 0, 0, None)],
)
def test_funds_are_the_budget_with_transfers_less_what_expired(
    budget: int, transferred: int, expired: int, funds: int | None
) -> None:
    row = {"budget_gpu_ms": budget, "transferred_gpu_ms": transferred, "expired_gpu_ms": expired}
    assert funds_gpu_ms(row) == funds


@pytest.fixture
def engine(database_url: str) -> Iterator[sa.Engine]:
    engine = make_engine(database_url)
    amounts: dict[str, Any] = {
        c.name: 0 for c in budget_vs_actual.c if not c.nullable and c.name.endswith("_gpu_ms")
    }
    key = {"cluster": "alpha", "period": "2026-03"}
    with engine.begin() as connection:
        connection.execute(
            sa.insert(budget_vs_actual),
            [
                {**key, **amounts, "budget_gpu_ms": 100, "account": "alpha/a"},
                {**key, **amounts, "budget_gpu_ms": 100, "account": "alpha/b"},
            ],
        )
        connection.execute(
            sa.insert(forecast).values(
                **key, account="alpha/a", delivered_gpu_ms=60, forecast_gpu_ms=101, low_gpu_ms=90,
                high_gpu_ms=120, history_day_count=40, left_day_count=11, as_of_at=AT,
            )
        )  # fmt: skip
    yield engine
    engine.dispose()


def test_a_report_shows_what_is_foreseen_under_keys_of_its_own(engine: sa.Engine) -> None:
    with reading(engine) as reader:
        first, second = budgets.report(reader, "alpha", None, ()).rows
    assert first["forecast"] == {
        "gpu_ms": 101, "low_gpu_ms": 90, "high_gpu_ms": 120, "band_percent": 80, "overrun": "expected",
        "history_days": 40, "as_of": "2026-03-20T06:00:00Z", "reason": None,
    }  # fmt: skip
    told = second["forecast"]
    assert (told["gpu_ms"], told["overrun"], told["as_of"], told["reason"]) == (None, None, None, NOT_MADE)


def test_of_one_cluster_or_of_all(engine: sa.Engine) -> None:
    with reading(engine) as reader:
        assert set(forecasts(reader, None, "2026-03")) == {("alpha", "2026-03", "alpha/a")}
        assert forecasts(reader, "beta", "2026-03") == {}
        assert forecasts(reader, "alpha", "2026-02") == {}
