"""The table of forecasts: every column says what it is and in what unit."""

import sqlalchemy as sa

from gpuledger.database.metadata import Instant
from gpuledger.warehouse.forecast_tables import BAND_PERCENT, forecast
from gpuledger_pipelines.forecasting import BAND


def test_every_column_says_what_it_is_and_amounts_say_their_unit() -> None:
    assert forecast.schema == "warehouse"
    assert [column.name for column in forecast.primary_key.columns] == ["cluster", "period", "account"]
    for column in forecast.columns:
        comment = str(column.comment)
        assert comment.startswith("gpu_ms: ") == column.name.endswith("_gpu_ms"), column.name
        assert isinstance(column.type, Instant) == column.name.endswith("_at"), column.name
        if column.name.endswith(("_gpu_ms", "_count")):
            assert isinstance(column.type, sa.BigInteger)


def test_what_is_not_known_is_null_and_what_is_delivered_always_known() -> None:
    nullable = {column.name for column in forecast.columns if column.nullable}
    assert nullable == {"forecast_gpu_ms", "low_gpu_ms", "high_gpu_ms", "reason"}


def test_the_band_is_the_one_that_the_pipelines_make() -> None:
    assert round(100 * (BAND[-1] - BAND[0])) == BAND_PERCENT
    assert f"{BAND_PERCENT} %" in str(forecast.comment)
