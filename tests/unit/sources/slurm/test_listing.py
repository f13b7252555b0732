from pathlib import Path

import pytest

from gpuledger.kernel.errors import BadRecord, Refused
from gpuledger.sources.slurm.listing import Listing, cells, columns, open_listing, row


def listing(tmp_path: Path, text: bytes) -> Listing:
    path = tmp_path / "listing"
    path.write_bytes(text)
    return open_listing(path)


@pytest.mark.parametrize(
    ("text", "delimiter", "first"),
    [
        (b"A|B |C\n1|2|3\n", "|", ["A", "B", "C"]),
        (b"\n\xef\xbb\xbfA|#B|C|#D\n", "|#", ["A", "B|C", "D"]),
        (b"A|B\r\n", "|", ["A", "B"]),
    ],
)
def test_the_first_line_tells_what_stands_between_the_fields(
    tmp_path: Path, text: bytes, delimiter: str, first: list[str]
) -> None:
    found = listing(tmp_path, text)
    assert (found.delimiter, found.cells()) == (delimiter, first)


def test_the_lines_are_numbered_as_they_stand_in_the_file(tmp_path: Path) -> None:
    found = listing(tmp_path, b"\nA|B\n1|2\n3|4")
    assert [line.number for line in found.all()] == [2, 3, 4]
    assert [line.number for line in listing(tmp_path, b"A|B\n1|2\n").rest] == [2]


@pytest.mark.parametrize("text", [b"hello\nA|B\n", b"\n\n", b"A,B\n"])
def test_a_file_without_bars_is_refused(tmp_path: Path, text: bytes) -> None:
    with pytest.raises(Refused, match="no listing"):
        listing(tmp_path, text)


def test_a_first_line_that_is_no_text_is_refused_with_its_place(tmp_path: Path) -> None:
    with pytest.raises(Refused, match=r":1: byte 2 .* is not UTF-8"):
        listing(tmp_path, b"A|\xff\n").cells()


def test_a_column_that_is_named_twice_is_two_columns() -> None:
    assert columns(["A", "B", "A", "", "A", ""]) == ["A", "B", "A#2", "", "A#3", "#2"]


def test_a_row_is_as_wide_as_the_header() -> None:
    assert row(["A", "B"], b" 1 | x y ", "|") == {"A": "1", "B": "x y"}
    with pytest.raises(BadRecord, match="2 columns expected, 3 found") as caught:
        row(["A", "B"], b"1|2|3", "|")
    assert caught.value.code == "wrong-columns"
    assert cells(b"a|b|#c", "|#") == ["a|b", "c"]
