"""The lines as Parquet: the columns of the table, exact, with the seal in the metadata, the same bytes each time."""

import io

import msgspec
import pyarrow.parquet as pq
from tests.unit.close.close_said import document

from gpuledger.close.document import digest, encode
from gpuledger.close.store import flat
from gpuledger.warehouse.close_tables import statement


def test_it_holds_the_lines_in_the_columns_of_the_table() -> None:
    from gpuledger.close.parquet_table import table

    said = document()
    read = pq.read_table(io.BytesIO(table(said)))
    assert read.column_names == [column.name for column in statement.columns]
    place = {"cluster": "alpha", "period": "2026-11", "version": 1}
    assert read.to_pylist() == [{**place, **flat(line)} for line in said.accounts]
    assert read.schema.metadata[b"sealed"].decode() == digest(encode(said))
    assert read.schema.field("charged_gpu_ms_weighted").metadata[b"comment"].startswith(b"gpu_ms x per mille")


def test_it_is_the_same_each_time() -> None:
    from gpuledger.close.parquet_table import table

    assert table(document()) == table(document())


def test_a_period_without_accounts_is_an_empty_table() -> None:

    from gpuledger.close.parquet_table import table

    empty = msgspec.structs.replace(document(), accounts=[])
    assert pq.read_table(io.BytesIO(table(empty))).num_rows == 0
