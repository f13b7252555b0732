"""JSON objects of a file: one on each line, or all in one array; the first character that is no blank decides."""

from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from gpuledger.kernel.errors import Refused
from gpuledger.sources.documents import open_document
from gpuledger.sources.files import path_text
from gpuledger.sources.lines import Broken, Line, open_lines

_LOOKED_AT = 100
"""Where none of so many lines begins an object, the file is of another kind."""


def open_objects(path: Path) -> Iterator[Line | Broken]:
    """Return each object of the file as a piece; blank lines are none.

    Raises:
        Refused: When the file cannot be read, or is neither an array nor holds an object on each line.
    """
    first = next((line for line in open_lines(path) if isinstance(line, Broken) or line.raw.strip()), None)
    if isinstance(first, Line) and first.raw.lstrip().startswith(b"["):
        return open_document(path).pieces()
    return object_lines(path)


def object_lines(path: Path) -> Iterator[Line | Broken]:
    """Return the lines of a file that holds an object on each; one that is broken takes no other with it.

    Raises:
        Refused: When the file cannot be read, or none of its first lines begins an object.
    """
    lines = open_lines(path)
    held: list[Line | Broken] = []
    looked_at = 0
    for line in lines:
        held.append(line)
        text = line.raw.lstrip()
        if isinstance(line, Broken) or text.startswith(b"{"):
            return chain(held, lines)
        looked_at += bool(text)
        if looked_at == _LOOKED_AT:
            break
    raise Refused(
        f"{path_text(path)}: none of its first lines begins a JSON object",
        hint="check that the file is of this kind: one object on each line is expected",
    )
