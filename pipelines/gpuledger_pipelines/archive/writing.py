"""Writing a day of a cluster: streamed from the database, published by one rename, left alone where nothing changed.

PostgreSQL sorts and sends the rows as text (COPY), Arrow reads them block by block, and a group of rows at a time goes
to the file: memory does not grow with the day.
"""

import datetime as dt
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import sqlalchemy as sa

from gpuledger.database.engine import Reader, reading
from gpuledger.streams.appending import sync_folder
from gpuledger_pipelines.archive import manifest as manifests
from gpuledger_pipelines.archive.contents import DATASETS, HOST_SEPARATOR, SCHEMA_VERSION, Dataset
from gpuledger_pipelines.archive.layout import DATA, Place
from gpuledger_pipelines.archive.manifest import Manifest
from gpuledger_pipelines.partitions import DAY_S

GROUP_ROWS = 1 << 17
"""Rows that are held at a time, and those of a row group: about 20 MB of them, and 100 GPUs' day of four rungs."""

BLOCK_BYTES = 4 << 20
"""Of text that are read at a time; a row is never longer."""

SETTINGS = ("SET LOCAL work_mem = '64MB'", "SET LOCAL jit = off")
"""For the length of a snapshot: a day of a thousand GPUs is sorted in memory, a larger one on the server's disk."""


@dataclass(frozen=True, slots=True)
class Written:
    """What became of one file.

    Args:
        place: Where it is.
        manifest: What stands beside it now.
        changed: Whether it was replaced; False where it had these bytes already.
    """

    place: Place
    manifest: Manifest
    changed: bool


def write_day(engine: sa.Engine, root: Path, cluster: str, day: dt.date) -> list[Written]:
    """Write both files of a day from one snapshot of the ledger.

    Args:
        engine: Reads ``ledger_read``.
        root: The archive's folder.
        cluster: The cluster, which is also the book.
        day: A UTC day that is over.

    Raises:
        Unavailable: When the database or the folder cannot be used.
    """
    # Whoever calls keeps other writers of the cluster away.
    with reading(engine) as reader:
        for setting in SETTINGS:
            reader.exec_driver_sql(setting)
        seq = _known_seq(reader, cluster)
        return [_write(reader, root, Place(name, cluster, day), seq) for name in DATASETS]


def _known_seq(reader: Reader, cluster: str) -> int:
    found = reader.execute(
        sa.text("SELECT last_seq FROM ledger_read.books WHERE book = :cluster"), {"cluster": cluster}
    ).scalar()
    return int(found or 0)


def _write(reader: Reader, root: Path, place: Place, seq: int) -> Written:
    """Write one file beside the one there is, and put it in its place where it says something else."""
    folder = place.folder(root)
    path, partial = folder / DATA, folder / f".{DATA}.{os.getpid()}"
    with manifests.writable(path):
        folder.mkdir(parents=True, exist_ok=True)
        for left in folder.glob(f".{DATA}.*"):  # by a writer that was killed: there is one at a time
            left.unlink()
        try:
            filled = _fill(reader, partial, place)
            made = manifests.sealed(
                Manifest(
                    format=manifests.FORMAT,
                    schema=SCHEMA_VERSION,
                    dataset=place.dataset,
                    cluster=place.cluster,
                    day=place.day.isoformat(),
                    bytes=partial.stat().st_size,
                    sha256=manifests.digest(partial),
                    rows=filled.rows,
                    sums=dict(sorted(filled.sums.items())),
                    known_seq=seq,
                )
            )
            before = manifests.find(root, place)
            if before is not None and before.sha256 == made.sha256 and _holds(path, made):
                return Written(place, before, changed=False)
            partial.replace(path)
            sync_folder(folder)
        finally:
            partial.unlink(missing_ok=True)
    manifests.write(root, made, place)
    return Written(place, made, changed=True)


def _holds(path: Path, made: Manifest) -> bool:
    """Say whether the file in its place is the one that was made: a damaged one is replaced."""
    return path.exists() and path.stat().st_size == made.bytes and manifests.digest(path) == made.sha256


@dataclass(slots=True)
class _Filled:
    rows: int = 0
    sums: dict[str, int] = field(default_factory=dict)


def _fill(reader: Reader, path: Path, place: Place) -> _Filled:
    dataset = DATASETS[place.dataset]
    schema = dataset.schema.with_metadata(
        {
            "format": manifests.FORMAT,
            "schema": str(SCHEMA_VERSION),
            "dataset": place.dataset,
            "cluster": place.cluster,
            "day": place.day.isoformat(),
        }
    )
    filled = _Filled()
    dataset.add_up(schema.empty_table(), filled.sums)
    with path.open("wb") as file:
        with pq.ParquetWriter(file, schema, compression="zstd", version="2.6") as writer:
            for table in _groups(_batches(reader, dataset, place), schema):
                writer.write_table(table, row_group_size=GROUP_ROWS)
                filled.rows += table.num_rows
                dataset.add_up(table, filled.sums)
        file.flush()
        os.fsync(file.fileno())
    return filled


def _groups(batches: Iterator[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.Table]:
    """Cut batches of any size into tables of a fixed number of rows, so that equal rows give equal bytes."""
    held: list[pa.RecordBatch] = []
    count = 0
    for batch in batches:
        held.append(batch)
        count += batch.num_rows
        while count >= GROUP_ROWS:
            whole = pa.Table.from_batches(held, schema)
            yield whole.slice(0, GROUP_ROWS).combine_chunks()
            held, count = whole.slice(GROUP_ROWS).to_batches(), count - GROUP_ROWS
    if count:
        yield pa.Table.from_batches(held, schema).combine_chunks()


def _batches(reader: Reader, dataset: Dataset, place: Place) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a day as the database sends them."""
    from_s = (place.day - dt.date(1970, 1, 1)).days * DAY_S
    binds = {"cluster": place.cluster, "from_s": from_s, "to_s": from_s + DAY_S}
    raw = reader.connection.driver_connection
    assert isinstance(raw, psycopg.Connection)  # noqa: S101 - there is one driver
    with (
        raw.cursor() as cursor,
        cursor.copy(f"COPY ({dataset.statement}) TO STDOUT (FORMAT csv)", binds) as copy,
    ):
        text = _Text(copy)
        if text.is_empty():
            return
        rows = pa.csv.open_csv(
            pa.PythonFile(text, mode="r"),
            read_options=pa.csv.ReadOptions(
                column_names=dataset.schema.names, block_size=BLOCK_BYTES, use_threads=False
            ),
            parse_options=pa.csv.ParseOptions(newlines_in_values=True),
            convert_options=pa.csv.ConvertOptions(
                column_types={
                    f.name: pa.string() if pa.types.is_list(f.type) else f.type for f in dataset.schema
                },
                # An empty text is in quotes; what is not there is not.
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )
        for batch in rows:
            yield _typed(batch, dataset.schema)


def _typed(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    columns = [
        _lists(column) if pa.types.is_list(part.type) else column
        for column, part in zip(batch.columns, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _lists(column: pa.Array) -> pa.Array:
    """Take lists of names apart, each of the few that there are once."""
    encoded = column.dictionary_encode()
    lists = [text.split(HOST_SEPARATOR) if text else [] for text in encoded.dictionary.to_pylist()]
    return pa.array(lists, pa.list_(pa.string())).take(encoded.indices)


class _Text:
    """What COPY sends, as a file that Arrow reads: as many bytes as were asked for, until the end."""

    def __init__(self, copy: "psycopg.Copy") -> None:
        self._blocks: Iterator[Any] = iter(copy)
        self._held = bytearray()
        self.closed = False

    def is_empty(self) -> bool:
        """Say whether not a byte comes."""
        self._want(1)
        return not self._held

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes; fewer than asked for at the end alone."""
        self._want(size)
        cut = len(self._held) if size < 0 else size
        part = bytes(self._held[:cut])
        del self._held[:cut]
        return part

    def readable(self) -> bool:
        """Say that it is for reading."""
        return True

    def close(self) -> None:
        """Forget what was not read."""
        self.closed = True

    def _want(self, size: int) -> None:
        while size < 0 or len(self._held) < size:
            block = next(self._blocks, None)
            if block is None:
                return
            self._held += block
