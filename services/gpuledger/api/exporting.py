"""Tables as files, written while they are read: CSV, Parquet, or a stream of Arrow.

A cell of CSV is opened by spreadsheets, which take some texts for formulas: these get an apostrophe in front, and stay
what they are in the other two forms. Numbers are numbers everywhere.
"""

import asyncio
import csv
import io
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any

from starlette.responses import StreamingResponse
from starlette.types import Message, Send

from gpuledger.kernel.clock import iso
from gpuledger.kernel.errors import Refused, Throttled, Unavailable
from gpuledger.kernel.spreadsheets import harmless

AT_ONCE = 3
"""How many exports one process writes at a time: each holds one of its few connections to the database."""

AT_ONCE_OWN = 2
"""How many of them may be one caller's: who reads slowly holds a place for long, and never all of them."""

PATIENCE_S = 60
"""How long a piece waits for who reads it."""

_UNWANTED = re.compile(r"q=0(\.0*)?")

Batch = Sequence[Sequence[Any]]


class Kind(StrEnum):
    """What a column holds."""

    TEXT = "text"
    WHOLE = "whole"
    DAY = "day"
    INSTANT = "instant"


Columns = Mapping[str, Kind]
"""Name of a column -> what it holds, in the order of the cells of a row."""


class Form(StrEnum):
    """How a table is written."""

    CSV = "csv"
    PARQUET = "parquet"
    ARROW = "arrow"


MEDIA: Mapping[Form, str] = {
    Form.CSV: "text/csv; charset=utf-8",
    Form.PARQUET: "application/vnd.apache.parquet",
    Form.ARROW: "application/vnd.apache.arrow.stream",
}


class Exports:
    """Writes tables, a few at a time.

    Args:
        at_once: How many.
        own: How many of them for one caller.
    """

    def __init__(self, at_once: int = AT_ONCE, own: int = AT_ONCE_OWN) -> None:
        self._at_once, self._own = at_once, own
        self._held: Counter[str] = Counter()
        self._turn = threading.RLock()  # an export that nobody reads may end at any line, one in here too

    def response(
        self, who: str, name: str, form: Form, columns: Columns, batches: Callable[[], Iterator[Batch]]
    ) -> StreamingResponse:
        """Return a table as a response; what is wrong with the question is raised before the first byte.

        Args:
            who: The caller.
            name: Of the file, without its suffix.
            form: How it is written.
            columns: What each cell of a row holds.
            batches: Opens the table and yields its rows; ended early when nobody reads on.

        Raises:
            Unavailable: When as many are written already.
            Throttled: When as many of them are the caller's.
            Refused: When the form needs what is not installed.
        """
        written = _writers()[form](columns, batches)  # nothing is read yet, but what is missing is said
        self._take(who)
        pieces = self._placed(who, written)
        first = next(pieces)  # from here on its end gives the place back, whatever becomes of the answer
        headers = {
            "Content-Disposition": f'attachment; filename="{name}.{form.value}"', "Cache-Control": "private, no-store"
        }  # fmt: skip
        return Table(_all(first, pieces), media_type=MEDIA[form], headers=headers)

    def _take(self, who: str) -> None:
        with self._turn:
            if self._held[who] >= self._own:
                raise Throttled(
                    f"{self._own} exports of yours are written already",
                    wait_s=PATIENCE_S,
                    hint="read them to the end first",
                )
            if self._held.total() >= self._at_once:
                raise Unavailable(
                    "as many exports are written as one process writes", hint="try again in a minute"
                )
            self._held[who] += 1

    def _placed(self, who: str, pieces: Iterator[bytes]) -> Iterator[bytes]:
        try:
            yield from pieces
        finally:
            with self._turn:
                self._held[who] -= 1
                if not self._held[who]:
                    del self._held[who]


class Table(StreamingResponse):
    """A stream whose reader must read."""

    patience_s: float = PATIENCE_S

    async def stream_response(self, send: Send) -> None:
        """Send the pieces; give up on who does not take one in time."""

        async def bounded(message: Message) -> None:
            async with asyncio.timeout(self.patience_s):
                await send(message)

        await super().stream_response(bounded)


def negotiated(asked: Form | None, accept: str) -> Form:
    """Return the form that is asked for by name, or else by an Accept header; CSV unless either says another."""
    if asked is not None:
        return asked
    parts = [part.replace(" ", "").lower().partition(";") for part in accept.split(",")]
    wanted = [text for text, _, weight in parts if not _UNWANTED.fullmatch(weight)]
    media = {text.partition(";")[0]: form for form, text in MEDIA.items()}
    return next((media[text] for text in wanted if text in media), Form.CSV)


def csv_pieces(columns: Columns, batches: Callable[[], Iterator[Batch]]) -> Iterator[bytes]:
    """Yield a table as CSV: a header, one line a row, unknown cells empty."""
    kinds = list(columns.values())
    out = io.StringIO(newline="")
    writer = csv.writer(out)
    rows = batches()
    writer.writerow(columns)
    for batch in rows:
        writer.writerows([_cell(kind, cell) for kind, cell in zip(kinds, row, strict=True)] for row in batch)
        yield out.getvalue().encode()
        out.seek(0)
        out.truncate()
    if text := out.getvalue():
        yield text.encode()


def _cell(kind: Kind, cell: Any) -> object:  # noqa: ANN401 - as its kind says
    if cell is None:
        return ""
    match kind:
        case Kind.TEXT:
            return harmless(str(cell))
        case Kind.INSTANT:
            return iso(cell)
        case Kind.DAY:
            return cell.isoformat()
        case Kind.WHOLE:
            return int(cell)


def _all(first: bytes, pieces: Iterator[bytes]) -> Iterator[bytes]:
    yield first
    yield from pieces


def _writers() -> Mapping[Form, Callable[[Columns, Callable[[], Iterator[Batch]]], Iterator[bytes]]]:
    return {Form.CSV: csv_pieces, Form.ARROW: _arrow_pieces, Form.PARQUET: _parquet_pieces}


class _Sink(io.RawIOBase):
    """Takes bytes as a file does, and hands them over as they come."""

    def __init__(self) -> None:
        super().__init__()
        self._taken: list[bytes] = []

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:  # noqa: ANN401 - any buffer
        piece = bytes(data)
        self._taken.append(piece)
        return len(piece)

    def drain(self) -> bytes:
        """Return what was written since the last call."""
        piece, self._taken = b"".join(self._taken), []
        return piece


def _arrow_pieces(columns: Columns, batches: Callable[[], Iterator[Batch]]) -> Iterator[bytes]:
    pa = _arrow()
    return _written(columns, batches, pa.ipc.new_stream)


def _parquet_pieces(columns: Columns, batches: Callable[[], Iterator[Batch]]) -> Iterator[bytes]:
    _arrow()
    import pyarrow.parquet as pq

    return _written(columns, batches, lambda sink, schema: pq.ParquetWriter(sink, schema, compression="zstd"))


def _written(
    columns: Columns, batches: Callable[[], Iterator[Batch]], open_writer: Callable[[_Sink, Any], Any]
) -> Iterator[bytes]:
    pa = _arrow()
    types = {
        Kind.TEXT: pa.string(), Kind.WHOLE: pa.int64(), Kind.DAY: pa.date32(), Kind.INSTANT: pa.timestamp("us", "UTC")
    }  # fmt: skip
    schema = pa.schema([pa.field(name, types[kind]) for name, kind in columns.items()])
    sink = _Sink()
    rows = batches()
    with open_writer(sink, schema) as writer:
        for batch in rows:
            cells = zip(*batch, strict=True)
            arrays = [pa.array(column, type=field.type) for column, field in zip(cells, schema, strict=True)]
            writer.write_batch(pa.record_batch(arrays, schema=schema))
            if piece := sink.drain():
                yield piece
    yield sink.drain()


def _arrow() -> Any:  # noqa: ANN401 - a module without annotations
    try:
        import pyarrow as pa
    except ImportError as error:
        raise Refused(
            "this ledger writes CSV alone: pyarrow is not installed",
            hint="pip install 'gpuledger[pipelines]' where the API runs, or ask for ?format=csv",
        ) from error
    return pa
