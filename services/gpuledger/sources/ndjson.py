"""JSON objects of a file: one on each line, or all in one array; the first character that is no blank decides."""

from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from gpuledger.kernel.errors import Refused
from gpuledger.sources.documents import open_document
from gpuledger.sources.files import path_text
from gpuledger.sources.lines import Broken, Line, open_lines


def open_objects(path: Path) -> Iterator[Line | Broken]:
    """Return each object of the file as a piece; blank lines are none.

    Raises:
        Refused: When the file cannot be read, or begins with neither an object nor an array.
    """
    lines = open_lines(path)
    for line in lines:
        if isinstance(line, Broken):
            return chain((line,), lines)
        text = line.raw.lstrip()
        if text.startswith(b"["):
            return open_document(path).pieces()
        if text.startswith(b"{"):
            return chain((line,), lines)
        if text:
            raise Refused(
                f"{path_text(path)}:{line.number}: begins with neither a JSON object nor an array",
                hint="one object on each line, or one array of objects, is expected",
            )
    raise Refused(f"{path_text(path)} holds no JSON object", hint="check that the file is of this kind")
