"""Rows that were read at once, by column: a value that stands in many of them is understood once.

What is read here is what is written as it usually is. Where it is not, the value is None, and whoever reads the column
leaves the row to what reads rows one by one, with its messages: nothing is refused here.
"""

from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from functools import partial
from typing import TypeVar

from gpuledger.kernel.errors import BadRecord
from gpuledger.sources.values import DIGITS_LIMIT, NAME_LIMIT_BYTES, name, seconds_and_fraction, whole_number

Cell = TypeVar("Cell", bound=Hashable)
T = TypeVar("T")

_NOT_PLAIN = (b'"', b"\r", b"\0")
"""Bytes that say that a comma or a newline may be none of the table's, or that a row is no text."""


class Columns:
    """Rows of a table, by column.

    Args:
        header: The names of the columns; two at least.
        text: The rows as they stand in the file, with a newline between each two.
        firsts: The cells of the first column.
        cells: Those of all columns, row after row; what stands in the first column is not to be read here.
    """

    def __init__(
        self, header: Sequence[str], text: bytes, firsts: Sequence[str], cells: Sequence[str]
    ) -> None:
        self._header, self._text, self._firsts, self._cells = header, text, firsts, cells

    def raws(self) -> list[bytes]:
        """Return the bytes of each row."""
        return self._text.split(b"\n")

    def __contains__(self, column: str) -> bool:
        return column in self._header

    def __len__(self) -> int:
        return len(self._firsts)

    def __getitem__(self, column: str) -> Sequence[str]:
        place = self._header.index(column)
        return self._cells[place :: len(self._header)] if place else self._firsts


def columns_of(header: Sequence[str], text: bytes) -> Columns | None:
    """Return lines by column, or None unless each of them is a plain row of the table.

    Args:
        header: The names of the columns.
        text: The lines, with a newline between each two.
    """
    if any(byte in text for byte in _NOT_PLAIN):
        return None
    try:
        lines = text.decode()
    except UnicodeDecodeError:
        return None
    width = len(header)
    count = lines.count("\n") + 1
    # A newline becomes the first character of a cell: where the first column has them all, every row is of one width.
    cells = lines.replace("\n", ",\n").split(",")
    firsts = "".join(cells[::width]).split("\n")
    is_table = width > 1 and len(cells) == count * width and len(firsts) == count
    return Columns(header, text, firsts, cells) if is_table else None


def each(column: Sequence[Cell], read: Callable[[Cell], T]) -> list[T | None]:
    """Return what the cells of a column say; those that are alike are read once.

    Args:
        column: The cells, or cells of several columns that belong together.
        read: Reads one; whether it raises must hang on the cell alone.
    """
    known: dict[Cell, T] = {}
    for value in set(column):
        with suppress(BadRecord):
            known[value] = read(value)
    return [*map(known.get, column)]


def names(column: Sequence[str], limit_bytes: int = NAME_LIMIT_BYTES) -> Sequence[str | None]:
    """Return the cells that are names, as ``values.name`` reads them; for columns whose cells differ."""
    together = "".join(column)
    if all(column) and together.isascii() and together.isprintable() and max(map(len, column)) <= limit_bytes:
        return column
    return each(column, partial(name, "", limit_bytes=limit_bytes))


def whole_numbers(column: Sequence[str]) -> Sequence[int | None]:
    """Return the cells that are numbers, as ``values.whole_number`` reads them; for columns whose cells differ."""
    together = "".join(column)
    if all(column) and together.isascii() and together.isdigit() and max(map(len, column)) <= DIGITS_LIMIT:
        return [*map(int, column)]
    return each(column, partial(whole_number, ""))


def whole_seconds(column: Sequence[str]) -> Sequence[int | None]:
    """Return the cells that are whole seconds, as ``values.seconds_and_fraction`` reads them; for cells that differ."""
    whole = ("\n".join(column) + "\n").replace(".0\n", "\n")
    return whole_numbers(whole.split("\n")[:-1]) if "." not in whole else each(column, _whole)


def floored_seconds(column: Sequence[str]) -> Sequence[int | None]:
    """Return what ``whole_seconds`` does, those with a fraction floored."""
    whole = ("\n".join(column) + "\n").replace(".0\n", "\n")
    return whole_numbers(whole.split("\n")[:-1]) if "." not in whole else each(column, _floored)


def _whole(value: str) -> int:
    whole, fraction = seconds_and_fraction("", value)
    if fraction:
        raise BadRecord("not whole seconds", code="not-a-number")
    return whole


def _floored(value: str) -> int:
    return seconds_and_fraction("", value)[0]
