"""Listings of ``scontrol show``: a block of ``Key=Value`` words per record, on one line or on several.

A block begins with its key at the start of a line and ends before the next one. Its values are not escaped:
a name or a comment may hold anything, also what looks like another key. A key that is needed and stands there
twice is therefore a fault, never a choice.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec.structs import replace

from gpuledger.kernel.errors import BadRecord, Refused
from gpuledger.sources.files import path_text
from gpuledger.sources.lines import BYTE_ORDER_MARK, LINE_LIMIT_BYTES, Broken, Line, read_lines

NOTHING = frozenset(("", "(null)", "None", "N/A", "Unknown", "n/a", "NONE"))
"""What stands for a value that there is not."""


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
        first = replace(first, raw=first.raw.removeprefix(BYTE_ORDER_MARK))
    if not isinstance(first, Line) or not first.raw.startswith(mark):
        raise Refused(
            f"{path_text(path)} does not begin with {key}=", hint="check that the file is of this kind"
        )
    return _blocks(path, mark, first, lines)


def words(raw: bytes, wanted: Sequence[str]) -> dict[str, str]:
    """Return the values of the wanted keys of a block, up to the next blank; empty when there is none.

    Raises:
        BadRecord: When the block is no text, or one of the keys stands in it twice.
    """
    found = dict.fromkeys(wanted, "")
    seen: set[str] = set()
    for word in text_of(raw).split():
        key, equals, value = word.partition("=")
        if key not in found or not equals:
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
    block, length, number, last = [first.raw], len(first.raw), first.number, first
    for line in lines:
        if isinstance(line, Broken):
            raw = b"\n".join((*block, line.raw))
            where = number if block else line.number
            yield Broken(where, line.code, line.message, line.hint, raw, line.position, line.partial)
            block = []  # what follows up to the next key belongs to the record that is broken
            continue
        if line.raw.startswith(mark):
            if block:
                yield _whole(path, number, block, length, last)
            block, length, number = [line.raw], len(line.raw), line.number
        elif block and length <= LINE_LIMIT_BYTES:
            block.append(line.raw)
            length += len(line.raw) + 1
        last = line
    if block:
        yield _whole(path, number, block, length, last)


def _whole(path: Path, number: int, lines: Sequence[bytes], length: int, last: Line) -> Line | Broken:
    """Return a block whose end was read; one that is too long for a record is broken."""
    raw = b"\n".join(lines).rstrip()
    if length <= LINE_LIMIT_BYTES:
        return Line(number, raw, last.position, last.ended)
    return Broken(
        number=number,
        code="line-too-long",
        message=f"{path_text(path)}:{number}: the record has over {LINE_LIMIT_BYTES} bytes",
        hint="look for a record whose first line is missing, mend the file and import it again",
        raw=raw,
        position=last.position,
        partial=False,
    )
