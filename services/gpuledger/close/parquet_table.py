"""The lines of a statement as Parquet, column by column as in ``warehouse.statement``."""

from io import BytesIO

import pyarrow as pa
import pyarrow.parquet as pq

from gpuledger.close.document import Document, digest, encode
from gpuledger.close.store import flat
from gpuledger.warehouse.close_tables import statement


def table(document: Document) -> bytes:
    """Return the lines of a close as a Parquet file; its metadata say of which close they are, and its digest."""
    place = {"cluster": document.cluster, "period": document.period, "version": document.version}
    rows = [{**place, **flat(line)} for line in document.accounts]
    schema = pa.schema(
        [
            pa.field(
                column.name,
                pa.string() if column.type.python_type is str else pa.int64(),
                nullable=False,
                metadata={"comment": column.comment or ""},
            )
            for column in statement.columns
        ],
        metadata={"format": document.format, "sealed": digest(encode(document))},
    )
    out = BytesIO()
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), out, compression="zstd")
    return out.getvalue()
