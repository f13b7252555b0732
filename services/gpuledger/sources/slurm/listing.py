"""Listings of one line per record whose fields stand between bars, as Slurm's commands print them.

The fields are padded with blanks at will, and not quoted: a field that holds a bar gives a line of another
width, which is a fault. A header may name one column twice; the second is ``NAME#2``.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from gpuledger.kernel.errors import BadRecord, Refused
from gpuledger.sources.files import path_text
from gpuledger.sources.lines import BYTE_ORDER_MARK, Broken, Line, read_lines
from gpuledger.sources.slurm.scontrol import text_of

BAR = "|"
BAR_AND_HASH = "|#"
"""Two characters that no name holds: what those print who know that names hold bars."""


class Listing(NamedTuple):
    """A listing whose first line has been looked at.

    Args:
        path: The file.
        first: That line.
        rest: The lines after it.
        delimiter: What stands between its fields.
    """

    path: Path
    first: Line
    rest: Iterator[Line | Broken]
    delimiter: str

    def cells(self) -> list[str]:
        """Return the fields of the first line.

        Raises:
            Refused: When they are no text.
        """
        try:
            return cells(self.first.raw, self.delimiter)
        except BadRecord as error:
            raise Refused(
                f"{path_text(self.path)}:{self.first.number}: {error.message}", hint=error.hint
            ) from error

    def all(self) -> Iterator[Line | Broken]:
        """Yield every line, the first too: there is no header."""
        yield self.first
        yield from self.rest


def open_listing(path: Path) -> Listing:
    """Open a listing.

    Raises:
        Refused: When the file cannot be read, or its first line holds no bar.
    """
    lines = read_lines(path)
    first = next((line for line in lines if isinstance(line, Broken) or line.raw.strip()), None)
    if not isinstance(first, Line) or b"|" not in first.raw:
        raise Refused(
            f"{path_text(path)} is no listing with | between its fields",
            hint="ask the command for parsable output, with | as the separator",
        )
    first = replace(first, raw=first.raw.removeprefix(BYTE_ORDER_MARK))
    return Listing(path, first, lines, BAR_AND_HASH if BAR_AND_HASH.encode() in first.raw else BAR)


def cells(raw: bytes, delimiter: str) -> list[str]:
    """Return the fields of a line without their padding.

    Raises:
        BadRecord: When the line is no text.
    """
    return [cell.strip() for cell in text_of(raw).rstrip("\r").split(delimiter)]


def columns(header: Sequence[str]) -> list[str]:
    """Return the names of the columns, the second of a name as ``NAME#2``."""
    seen: Counter[str] = Counter()
    names = []
    for name in header:
        seen[name] += 1
        names.append(name if seen[name] == 1 else f"{name}#{seen[name]}")
    return names


def row(names: Sequence[str], raw: bytes, delimiter: str) -> dict[str, str]:
    """Return the fields of a line by column.

    Raises:
        BadRecord: When there are more or fewer than columns.
    """
    found = cells(raw, delimiter)
    if len(found) != len(names):
        raise wrong_width(names, found)
    return dict(zip(names, found, strict=True))


def wrong_width(names: Sequence[str], found: Sequence[str]) -> BadRecord:
    """Return the fault of a line that has more or fewer fields than columns."""
    return BadRecord(
        f"{len(names)} columns expected, {len(found)} found",
        code="wrong-columns",
        hint="a name or comment holds the separator; import the JSON form, which cannot be mistaken",
    )
