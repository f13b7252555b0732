"""The tables of closes: every column says what it is and in what unit."""

import pytest
import sqlalchemy as sa

from gpuledger.close.document import Physical, Weighted
from gpuledger.database.metadata import Instant
from gpuledger.warehouse import close_tables

ALL = [getattr(close_tables, name) for name in close_tables.__all__]


@pytest.mark.parametrize("table", ALL, ids=str)
def test_every_column_says_what_it_is(table: sa.Table) -> None:
    assert table.schema == "warehouse"
    assert table.comment
    for column in table.columns:
        assert column.comment, column.name
        assert isinstance(column.type, Instant) == column.name.endswith("_at"), column.name


def test_a_statement_has_a_column_for_each_amount_of_a_line() -> None:
    columns = {column.name: column for column in close_tables.statement.columns if not column.primary_key}
    weighted = {f"{name}_gpu_ms_weighted" for name in Weighted.__struct_fields__}
    assert columns.keys() == weighted | {f"{name}_gpu_ms" for name in Physical.__struct_fields__}
    for name, column in columns.items():
        unit = "gpu_ms x per mille: " if name in weighted else "gpu_ms: "
        assert str(column.comment).startswith(unit)
        assert isinstance(column.type, sa.BigInteger)
        assert not column.nullable
