"""Tables as files: what stands in a cell comes back, in pieces, and no cell is a formula."""

import asyncio
import csv
import datetime as dt
import io
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.types import Message

from gpuledger.api.exporting import Exports, Form, Kind, Table, csv_pieces, negotiated
from gpuledger.kernel.errors import NotFound, Throttled, Unavailable

COLUMNS = {"name": Kind.TEXT, "amount": Kind.WHOLE, "on": Kind.DAY, "at": Kind.INSTANT}
NOON = dt.datetime(2026, 12, 1, 12, tzinfo=dt.UTC)
ROWS = [["=1+1", -5, dt.date(2026, 12, 1), NOON], [None, 2**60, None, None]]


def opened(*batches: Sequence[Sequence[Any]]) -> Iterator[Sequence[Sequence[Any]]]:
    yield from batches


def body(response: Any) -> bytes:  # noqa: ANN401 - a stream of any kind
    async def read() -> bytes:
        return b"".join([bytes(piece) async for piece in response.body_iterator])

    return asyncio.run(read())


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r", "\n"])
def test_what_a_spreadsheet_takes_for_a_formula_is_text(start: str) -> None:
    cell = f"{start}cmd|' /C calc'!A0"
    written = b"".join(csv_pieces({"t": Kind.TEXT}, lambda: opened([[cell]]))).decode()
    assert list(csv.reader(io.StringIO(written, newline=""))) == [["t"], [f"'{cell}"]]


@given(st.lists(st.tuples(st.text(st.characters(exclude_categories=["Cs"])), st.integers(-(2**62), 2**62))))
def test_no_text_begins_as_a_formula_and_no_number_is_changed(rows: list[tuple[str, int]]) -> None:
    written = b"".join(csv_pieces({"t": Kind.TEXT, "n": Kind.WHOLE}, lambda: opened(rows))).decode()
    read = list(csv.reader(io.StringIO(written, newline="")))[1:]
    assert [int(amount) for _, amount in read] == [amount for _, amount in rows]
    for (cell, _), (text, _) in zip(read, rows, strict=True):
        assert not cell.startswith(("=", "+", "-", "@", "\t", "\r", "\n"))
        assert cell.removeprefix("'") == text.removeprefix("'")


def test_arrow_and_parquet_keep_every_value_and_its_type() -> None:
    exports = Exports()
    wanted = [dict(zip(COLUMNS, row, strict=True)) for row in (*ROWS, *ROWS)]
    stream = body(exports.response("ada", "t", Form.ARROW, COLUMNS, lambda: opened(ROWS, ROWS)))
    assert pa.ipc.open_stream(stream).read_all().to_pylist() == wanted
    file = body(exports.response("ada", "t", Form.PARQUET, COLUMNS, lambda: opened(ROWS, ROWS)))
    assert pq.read_table(io.BytesIO(file)).to_pylist() == wanted
    text = body(exports.response("ada", "t", Form.CSV, COLUMNS, lambda: opened(ROWS))).decode()
    assert text == (
        "name,amount,on,at\r\n'=1+1,-5,2026-12-01,2026-12-01T12:00:00Z\r\n,1152921504606846976,,\r\n"
    )


@pytest.mark.parametrize("form", list(Form))
def test_an_empty_table_has_its_columns(form: Form) -> None:
    written = body(Exports().response("ada", "t", form, COLUMNS, opened))
    match form:
        case Form.CSV:
            assert written == b"name,amount,on,at\r\n"
        case Form.ARROW:
            assert pa.ipc.open_stream(written).read_all().column_names == list(COLUMNS)
        case Form.PARQUET:
            assert pq.read_table(io.BytesIO(written)).column_names == list(COLUMNS)


@pytest.mark.parametrize("form", list(Form))
def test_no_more_is_read_than_was_asked_for(form: Form) -> None:
    """A table without an end: it is written as it is read, a batch at a time."""
    taken = 0

    def endless() -> Iterator[Sequence[Sequence[Any]]]:
        nonlocal taken
        while True:
            taken += 1
            yield ROWS

    exports = Exports(at_once=1)
    response = exports.response("ada", "t", form, COLUMNS, endless)

    async def three() -> None:
        pieces = response.body_iterator
        for _ in range(3):
            await anext(aiter(pieces))

    asyncio.run(three())
    assert taken <= 4


def test_a_place_is_given_back_however_an_export_ends() -> None:
    exports = Exports(at_once=1)

    def broken() -> Iterator[Sequence[Sequence[Any]]]:
        raise NotFound("no such thing", hint="")
        yield  # a generator, as every table is

    with pytest.raises(NotFound):
        exports.response("ada", "t", Form.CSV, COLUMNS, broken)
    unread = exports.response("ada", "t", Form.CSV, COLUMNS, lambda: opened(ROWS, ROWS))
    with pytest.raises(Unavailable, match="as many exports"):
        exports.response("ada", "t", Form.CSV, COLUMNS, opened)
    del unread
    assert body(exports.response("ada", "t", Form.CSV, COLUMNS, opened))
    assert body(exports.response("ada", "t", Form.CSV, COLUMNS, opened))


def test_nobody_holds_all_places() -> None:
    exports = Exports(at_once=3, own=2)
    mine = [exports.response("ada", "t", Form.CSV, COLUMNS, lambda: opened(ROWS, ROWS)) for _ in range(2)]
    with pytest.raises(Throttled, match="exports of yours"):
        exports.response("ada", "t", Form.CSV, COLUMNS, opened)
    other = exports.response("bob", "t", Form.CSV, COLUMNS, lambda: opened(ROWS, ROWS))
    with pytest.raises(Unavailable, match="as many exports"):
        exports.response("eve", "t", Form.CSV, COLUMNS, opened)
    assert body(mine.pop())
    assert body(exports.response("ada", "t", Form.CSV, COLUMNS, opened))
    assert body(other)


def test_who_does_not_read_is_given_up_on() -> None:
    class Hasty(Table):
        patience_s = 0.01

    async def stuck(message: Message) -> None:
        if message["type"] == "http.response.body":
            await asyncio.sleep(60)

    with pytest.raises(TimeoutError):
        asyncio.run(Hasty(iter([b"a", b"b"])).stream_response(stuck))


@pytest.mark.parametrize(
    ("asked", "accept", "form"),
    [
        (None, "", Form.CSV),
        (None, "*/*", Form.CSV),
        (None, "text/html, Application/Vnd.Apache.Parquet;q=0.9", Form.PARQUET),
        (None, "application/vnd.apache.arrow.stream", Form.ARROW),
        (None, "application/vnd.apache.parquet; q=0, text/csv", Form.CSV),
        (None, "application/vnd.apache.parquet;q=0.000, application/vnd.apache.arrow.stream", Form.ARROW),
        (Form.CSV, "application/vnd.apache.parquet", Form.CSV),
    ],
)
def test_the_form_is_the_one_that_was_named(asked: Form | None, accept: str, form: Form) -> None:
    assert negotiated(asked, accept) is form
