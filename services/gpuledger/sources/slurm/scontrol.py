"""Listings of ``scontrol show``: a block of ``Key=Value`` words per record, on one line or on several.

A block begins with its key at the start of a line and ends before the next one. Its values are not escaped:
a name or a comment may hold anything, also what looks like another key. A key that is needed and stands there
twice is therefore a fault, never a choice.
"""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from gpuledger.kernel.errors import BadRecord, Refused
from gpuledger.sources.files import path_text
from gpuledger.sources.lines import BYTE_ORDER_MARK, LINE_LIMIT_BYTES, Broken, Line, read_lines

NOTHING = frozenset(("", "(null)", "None", "N/A", "Unknown", "n/a", "NONE"))
"""What stands for a value that there is not."""

_WORD = re.compile(r"(?:^|\s)([A-Za-z][\w/:]*)=(\S*)")


def read_blocks(path: Path, key: str) -> Iterator[Line | Broken]:
    """Return the blocks of a listing in order, each numbered by its first line.

    Args:
        path: The file.
        key: The key that a block begins with, such as ``JobId``.

    Raises:
        Refused: When the file cannot be read, or its first words are not that key.
    """
    lines = read_lines(path)
    mark = key.encode() + b"="
    first = next((line for line in lines if isinstance(line, Broken) or line.raw.strip()), None)
    if isinstance(first, Line):
        first = first._replace(raw=first.raw.removeprefix(BYTE_ORDER_MARK))
    if not isinstance(first, Line) or not first.raw.startswith(mark):
        raise Refused(
            f"{path_text(path)} does not begin with {key}=", hint="check that the file is of this kind"
        )
    return _blocks(path, mark, first, lines)


def words(raw: bytes, wanted: Iterable[str]) -> dict[str, str]:
    """Return the values of the wanted keys of a block, up to the next blank; empty when there is none.

    Raises:
        BadRecord: When the block is no text, or one of the keys stands in it twice.
    """
    found = dict.fromkeys(wanted, "")
    seen: set[str] = set()
    for key, value in _WORD.findall(text_of(raw)):
        if key not in found:
            continue
        if key in seen:
            raise BadRecord(
                f"{key}: stands there twice",
                code="key-twice",
                hint="a name or comment holds what looks like this key; import the JSON form, which cannot be mistaken",
            )
        seen.add(key)
        found[key] = "" if value in NOTHING else value
    return found


def text_of(raw: bytes) -> str:
    """Return bytes as text.

    Raises:
        BadRecord: When they are none.
    """
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        raise BadRecord(
            f"byte {error.start} (0x{raw[error.start]:02x}) is not UTF-8",
            code="not-utf8",
            hint="import the JSON form, or convert the file to UTF-8",
        ) from error
    if "\0" in text:
        raise BadRecord(
            "a NUL byte", code="nul-byte", hint="the file was damaged while it was written; fetch it again"
        )
    return text


def _blocks(path: Path, mark: bytes, first: Line, lines: Iterator[Line | Broken]) -> Iterator[Line | Broken]:
    block: _Block | None = _Block(first)
    for line in lines:
        if isinstance(line, Broken):
            yield line if block is None else block.broken(line)
            block = None  # what follows up to the next key belongs to the record that is broken
        elif line.raw.startswith(mark):
            if block is not None:
                yield block.whole(path)
            block = _Block(line)
        elif block is not None:
            block.add(line)
    if block is not None:
        yield block.whole(path)


class _Block:
    """A record whose end has not been read yet."""

    def __init__(self, first: Line) -> None:
        self._number, self._lines, self._last, self._length = first.number, [first.raw], first, len(first.raw)

    def add(self, line: Line) -> None:
        if self._length <= LINE_LIMIT_BYTES:
            self._lines.append(line.raw)
            self._length += len(line.raw) + 1
        self._last = line

    def whole(self, path: Path) -> Line | Broken:
        raw = b"\n".join(self._lines).rstrip()
        if self._length <= LINE_LIMIT_BYTES:
            return Line(self._number, raw, self._last.position, self._last.ended)
        return Broken(
            number=self._number,
            code="line-too-long",
            message=f"{path_text(path)}:{self._number}: the record has over {LINE_LIMIT_BYTES} bytes",
            hint="look for a record whose first line is missing, mend the file and import it again",
            raw=raw,
            position=self._last.position,
            partial=False,
        )

    def broken(self, line: Broken) -> Broken:
        raw = b"\n".join((*self._lines, line.raw))
        return Broken(self._number, line.code, line.message, line.hint, raw, line.position, line.partial)
