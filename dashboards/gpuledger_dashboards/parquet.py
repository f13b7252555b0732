"""Rows of a figure as a Parquet file, for whoever goes on in a notebook. Pure."""

from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.parquet as pq

from gpuledger_dashboards.figures import in_both_units


def parquet_of(rows: Sequence[Mapping[str, object]], context: Mapping[str, object]) -> bytes:
    """Return rows as Parquet: the same columns as in CSV, whole numbers whole, what is unknown null.

    Args:
        rows: Cells by column; a row may leave columns out.
        context: What stands beside every row, such as the window.
    """
    wide = [in_both_units(row) | dict(context) for row in rows]
    names = dict.fromkeys(name for row in wide for name in row)
    buffer = pa.BufferOutputStream()
    pq.write_table(pa.table({name: _alike([row.get(name) for row in wide]) for name in names}), buffer)
    found: bytes = buffer.getvalue().to_pybytes()
    return found


def _alike(values: list[object]) -> list[object]:
    """Return values of one kind: a column that has numbers and texts, such as whole GPUs and parts, is one of texts."""
    if len({type(value) for value in values if value is not None}) <= 1:
        return values
    return [None if value is None else str(value) for value in values]
