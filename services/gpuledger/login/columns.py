"""Rows as Slurm's commands print them: columns of a width, or fields between bars. Pure."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Generic, TypeVar

from gpuledger.kernel.errors import Refused
from gpuledger.kernel.near import did_you_mean

R = TypeVar("R")

_WIDEST = 1000
"""Wider than any terminal."""


class Style(Enum):
    """How a row becomes a line."""

    ALIGNED = "aligned"
    BARS = "bars"
    BARS_CLOSED = "bars, one at the end too"


@dataclass(frozen=True, slots=True)
class Column(Generic[R]):
    """One column of a table of rows ``R``.

    Args:
        name: What ``--format`` calls it and the header says.
        width: Its least width; a longer text makes the column wider unless the width was asked for.
        text: What a row shows there.
        is_left: Whether it stands to the left, as names do.
        is_fixed: Whether a longer text is cut, with a ``+`` at its end, as Slurm cuts it.
    """

    name: str
    width: int
    text: Callable[[R], str]
    is_left: bool = False
    is_fixed: bool = False


def chosen(columns: Mapping[str, Column[R]], asked: str) -> tuple[Column[R], ...]:
    """Return the columns that ``--format`` asks for: names with commas between, each with ``%WIDTH`` where wanted.

    A width below zero puts the column to the left, as with Slurm's commands. Case does not matter.

    Raises:
        Refused: When there is no such column, or the width is no number.
    """
    by_name = {name.lower(): column for name, column in columns.items()}
    found = []
    for part in filter(None, (each.strip() for each in asked.split(","))):
        name, _, width = part.partition("%")
        column = by_name.get(name.lower())
        if column is None:
            fields = f"fields: {', '.join(columns)}"
            raise Refused(f"there is no field {name!r}", hint=did_you_mean(name, columns, fields))
        found.append(_sized(column, width) if width else column)
    if not found:
        raise Refused("--format names no field", hint=f"fields: {', '.join(columns)}")
    return tuple(found)


def lines(
    columns: Sequence[Column[R]], rows: Sequence[R], style: Style, *, with_header: bool = True
) -> Iterator[str]:
    """Yield the lines of a table.

    Args:
        columns: What is shown.
        rows: Whose.
        style: Aligned for people, between bars for programs.
        with_header: Whether names of the columns come first.
    """
    cells = [[_plain(column.text(row)) for column in columns] for row in rows]
    names = [column.name for column in columns]
    if style is not Style.ALIGNED:
        end = "|" if style is Style.BARS_CLOSED else ""
        for line in [names, *cells] if with_header else cells:
            yield "|".join(cell.replace("|", "?") for cell in line) + end
        return
    widths = [
        column.width
        if column.is_fixed
        else max(column.width, len(column.name) if with_header else 0, *(len(row[at]) for row in cells), 0)
        for at, column in enumerate(columns)
    ]
    if with_header:
        yield _aligned(columns, widths, names)
        yield " ".join("-" * width for width in widths)
    for line in cells:
        yield _aligned(columns, widths, line)


def _aligned(columns: Sequence[Column[R]], widths: Sequence[int], cells: Sequence[str]) -> str:
    shown = (
        cut.ljust(width) if column.is_left else cut.rjust(width)
        for column, width, cut in zip(columns, widths, map(_cut, cells, widths), strict=True)
    )
    return " ".join(shown).rstrip()


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "+"


def _sized(column: Column[R], width: str) -> Column[R]:
    try:
        number = int(width)
    except ValueError as error:
        raise Refused(f"{width!r} is no width of field {column.name}", hint="such as %20, or %-20") from error
    if not 1 <= abs(number) <= _WIDEST:
        raise Refused(
            f"field {column.name} cannot be {number} wide",
            hint=f"from 1 to {_WIDEST}, or below zero for the left",
        )
    return replace(column, width=abs(number), is_left=number < 0, is_fixed=True)


def _plain(text: str) -> str:
    """Keep what a name holds from moving a terminal's cursor or beginning another line."""
    return "".join(each if each.isprintable() else "?" for each in text)
