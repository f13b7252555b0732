"""Figures as Parquet: the same columns as in CSV, of kinds that a notebook can count with."""

import io
from decimal import Decimal

import pyarrow.parquet as pq

from gpuledger_dashboards.parquet import parquet_of

HOUR = 3_600_000


def test_amounts_stand_in_both_units_with_the_context_and_unknown_is_null() -> None:
    rows = [
        {"account": "a", "used_gpu_ms": 3 * HOUR, "share": Decimal("0.5")},
        {"account": "b", "used_gpu_ms": None},
    ]
    table = pq.read_table(io.BytesIO(parquet_of(rows, {"as_of": "2026-03-11"})))
    assert table.to_pylist() == [
        {"account": "a", "used_gpu_ms": 3 * HOUR, "used_gpu_hours": Decimal("3.000"), "share": Decimal("0.5"),
         "as_of": "2026-03-11"},
        {"account": "b", "used_gpu_ms": None, "used_gpu_hours": None, "share": None, "as_of": "2026-03-11"},
    ]  # fmt: skip
    assert str(table.schema.field("used_gpu_ms").type) == "int64"


def test_a_column_of_numbers_and_texts_is_one_of_texts() -> None:
    table = pq.read_table(io.BytesIO(parquet_of([{"gpus": 8}, {"gpus": "0.142"}], {})))
    assert table.column("gpus").to_pylist() == ["8", "0.142"]
