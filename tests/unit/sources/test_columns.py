"""Rows by column: cut apart only where every line is a plain row; cells that are as usual, None for the others."""

import pytest

from gpuledger.kernel.errors import BadRecord
from gpuledger.sources.columns import (
    Columns,
    columns_of,
    each,
    floored_seconds,
    names,
    whole_numbers,
    whole_seconds,
)

HEADER = ("id", "user", "gpus")


def cells(text: bytes) -> dict[str, list[str]] | None:
    found = columns_of(HEADER, text)
    return None if found is None else {column: list(found[column]) for column in HEADER}


def test_rows_are_cut_apart_by_column() -> None:
    assert cells(b"1,a,8\n2,b,\n3,,1") == {
        "id": ["1", "2", "3"],
        "user": ["a", "b", ""],
        "gpus": ["8", "", "1"],
    }


def test_rows_know_their_columns_and_bytes() -> None:
    found = columns_of(HEADER, "1,ü,8\n2,b,1".encode())
    assert isinstance(found, Columns)
    assert ("user" in found, "host" in found, len(found)) == (True, False, 2)
    assert found.raws() == ["1,ü,8".encode(), b"2,b,1"]
    with pytest.raises(ValueError, match="not in"):
        _ = found["host"]


@pytest.mark.parametrize(
    "text",
    [
        b"1,a,8\n2,b",
        b"1,a,8\n2,b,1,",
        b"1,a\n2,b,1,4",
        b"1,a,8\n\n2,b,1",
        b"1,a,8,2\nb,1",
        b'1,"a",8',
        b"1,a,8\r\n2,b,1",
        b"1,a\0,8",
        b"1,\xff,8",
        b"",
    ],
    ids=lambda text: repr(text)[:20],
)
def test_lines_that_are_no_plain_rows_are_left_to_who_reads_them_one_by_one(text: bytes) -> None:
    assert cells(text) is None


def test_a_table_of_one_column_is_never_cut() -> None:
    assert columns_of(("id",), b"1\n2") is None


def test_cells_that_are_alike_are_read_once() -> None:
    seen: list[str] = []

    def read(value: str) -> int:
        seen.append(value)
        if value == "x":
            raise BadRecord("no", code="no", hint="none")
        return int(value)

    assert each(["1", "x", "1", "2", "x"], read) == [1, None, 1, 2, None]
    assert sorted(seen) == ["1", "2", "x"]


def test_names() -> None:
    assert names(["a", "b"]) == ["a", "b"]
    assert names(["a", "", "b\t", "ü", "abc"], limit_bytes=2) == ["a", None, None, "ü", None]


def test_numbers() -> None:
    assert whole_numbers(["1", "007", "9" * 15]) == [1, 7, 10**15 - 1]
    assert whole_numbers(["1", "", "-1", "1.0", "9" * 16, "²", "\u0661", "1_0", " 1"]) == [1, *[None] * 8]


def test_seconds() -> None:
    assert whole_seconds(["66.0", "66", "0.0"]) == [66, 66, 0]
    assert whole_seconds(["66.5", "66.0", "", "66.00", "-1.0", "1.0.0"]) == [None, 66, None, 66, None, None]
    assert floored_seconds(["66.5", "66.0", "", "8210.0000000002", ".9"]) == [66, 66, None, 8210, 0]
