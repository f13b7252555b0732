"""Lines of a plain or gzip-compressed file, whatever is wrong with it; never the whole file in memory.

Whether a file is compressed is read from its first bytes, not from its name.
"""

import hashlib
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import BinaryIO

import msgspec
from msgspec.structs import replace

from gpuledger.kernel.errors import Refused
from gpuledger.sources.files import path_text

LINE_LIMIT_BYTES = 1 << 20
"""A longer line is no record of any source; it is reported, kept and passed over."""

RAW_LIMIT_BYTES = 1 << 24
"""How much of a line that is too long is kept with its report."""

WHOLE_LIMIT_BYTES = 1 << 30
"""A file that must be held in memory is refused from here on."""

BYTE_ORDER_MARK = b"\xef\xbb\xbf"

_CHUNK_BYTES = 1 << 16
_BLOCK_BYTES = 1 << 18
_GZIP_MAGIC = b"\x1f\x8b"
_GZIP_WBITS = 31
_FETCH_AGAIN = "fetch the file again and import it whole: what is already booked is not booked twice"


class Line(msgspec.Struct, frozen=True, gc=False):
    """One line.

    Args:
        number: 1 for the first of the decompressed file.
        raw: Its bytes without the newline.
        position: Bytes of the file on disk that were read so far.
        ended: False for a last line without a newline.
    """

    number: int
    raw: bytes
    position: int
    ended: bool


class Lines(msgspec.Struct, frozen=True, gc=False):
    """Whole lines that follow one another, not yet cut apart.

    Args:
        number: That of the first.
        text: Their bytes, with a newline between each two and none at the end.
        position: Bytes of the file on disk that were read so far.
    """

    number: int
    text: bytes
    position: int

    def each(self) -> list[Line]:
        """Return the lines."""
        position, rows = self.position, enumerate(self.text.split(b"\n"), self.number)
        return [Line(number, raw, position, True) for number, raw in rows]  # noqa: FBT003 - for each line of a file


@dataclass(frozen=True, slots=True)
class Broken:
    """A line that is none: too long, or cut off by the damage of the file.

    Args:
        number: The line it would have been.
        code: ``line-too-long``, ``truncated-gzip``, ``corrupt-gzip`` or ``unreadable``.
        message: What is wrong, with file and line.
        hint: What a person can do about it.
        raw: The bytes there were, up to ``RAW_LIMIT_BYTES``.
        position: Bytes of the file on disk that were read so far.
        partial: Whether the line goes on in a part of the file that could not be read.
    """

    number: int
    code: str
    message: str
    hint: str
    raw: bytes
    position: int
    partial: bool


def read_lines(path: Path) -> Iterator[Line | Broken]:
    """Yield every line of the file in order; damage ends the file and is yielded last, once.

    Raises:
        Refused: When the file is missing, empty, a folder, or may not be read.
    """
    return each_line(read_parts(path))


def each_line(parts: Iterable[Lines | Line | Broken]) -> Iterator[Line | Broken]:
    """Return the lines of a file one by one."""
    return chain.from_iterable(part.each() if isinstance(part, Lines) else (part,) for part in parts)


def read_parts(path: Path) -> Iterator[Lines | Line | Broken]:
    """Yield what ``read_lines`` does, but lines that were read at once together; the first stands alone.

    Raises:
        Refused: When the file is missing, empty, a folder, or may not be read.
    """
    with _open(path) as file:
        number = 1
        tail = _Tail()
        position = 0
        try:
            for block, position in _blocks(path, file):
                first, newline, rest = block.partition(b"\n")
                if newline:
                    yield tail.finish(path, number, first, position)
                    number += 1
                    lines, newline, rest = rest.rpartition(b"\n")
                    if newline:
                        yield Lines(number, lines, position)
                        number += lines.count(b"\n") + 1
                    tail.add(rest)
                else:
                    tail.add(first)
        except _Damage as damage:
            yield Broken(
                number=number,
                code=damage.code,
                message=f"{path_text(path)}:{number}: {damage}; the last good line is {number - 1}",
                hint=_FETCH_AGAIN,
                raw=tail.kept,
                position=position,
                partial=True,
            )
            return
        if tail.length:
            last = tail.finish(path, number, b"", position)
            yield replace(last, ended=False) if isinstance(last, Line) else last


def open_lines(path: Path) -> Iterator[Line | Broken]:
    """Return every line of the file as ``read_lines`` does, but open it at once; a byte order mark is no text.

    Raises:
        Refused: When the file is missing, empty, a folder, or may not be read.
    """
    return each_line(open_parts(path))


def open_parts(path: Path) -> Iterator[Lines | Line | Broken]:
    """Return what ``read_parts`` yields, but open the file at once; a byte order mark is no text.

    Raises:
        Refused: When the file is missing, empty, a folder, or may not be read.
    """
    parts = read_parts(path)
    first = next(parts, None)
    if first is None:
        raise Refused(f"{path_text(path)} is empty", hint="fetch the file again")
    if isinstance(first, Line):
        first = replace(first, raw=first.raw.removeprefix(BYTE_ORDER_MARK))
    return chain((first,), parts)


def read_whole(path: Path) -> tuple[bytes, int]:
    """Return the decompressed file, and its bytes on disk.

    Raises:
        Refused: When the file is missing, empty, a folder, damaged, too large, or may not be read.
    """
    with _open(path) as file:
        blocks: list[bytes] = []
        length = size = 0
        try:
            for block, position in _blocks(path, file):
                blocks.append(block)
                length, size = length + len(block), position
                if length > WHOLE_LIMIT_BYTES:
                    raise Refused(
                        f"{path_text(path)} holds more than {WHOLE_LIMIT_BYTES} bytes in one document",
                        hint="ask for a shorter span of time, and import the parts one after another",
                    )
        except _Damage as damage:
            raise Refused(f"{path_text(path)}: {damage}", hint=_FETCH_AGAIN) from damage
    return b"".join(blocks), size


class _Damage(Exception):  # noqa: N818 - it never leaves this module
    """The file cannot be read further."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class _Tail:
    """The beginning of a line whose end has not been read yet."""

    def __init__(self) -> None:
        self._start_anew()

    @property
    def kept(self) -> bytes:
        """What is kept of it."""
        return b"".join(self._pieces)

    def add(self, piece: bytes) -> None:
        if piece:
            if self.length < RAW_LIMIT_BYTES:
                self._pieces.append(piece[: RAW_LIMIT_BYTES - self.length])
            self.length += len(piece)
            self._digest.update(piece)

    def finish(self, path: Path, number: int, piece: bytes, position: int) -> Line | Broken:
        """Return the line that ends with the piece, and start anew."""
        if not self.length:
            return Line(number, piece, position, ended=True)
        self.add(piece)
        length, raw, digest = self.length, self.kept, self._digest.hexdigest()
        self._start_anew()
        if length <= LINE_LIMIT_BYTES:
            return Line(number, raw, position, ended=True)
        cut = "" if length == len(raw) else f"; its first {len(raw)} bytes are kept, sha256 of all {digest}"
        return Broken(
            number=number,
            code="line-too-long",
            message=f"{path_text(path)}:{number}: the line has {length} bytes, over {LINE_LIMIT_BYTES}{cut}",
            hint="look for a missing line end, mend the line and import the file again",
            raw=raw,
            position=position,
            partial=False,
        )

    def _start_anew(self) -> None:
        self._pieces: list[bytes] = []
        self.length = 0
        self._digest = hashlib.sha256()


def _open(path: Path) -> BinaryIO:
    try:
        return path.open("rb")
    except FileNotFoundError as error:
        raise Refused(f"{path_text(path)} does not exist", hint="check the path") from error
    except IsADirectoryError as error:
        raise Refused(f"{path_text(path)} is a folder", hint="name the file in it") from error
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise Refused(f"{path_text(path)} cannot be read: {reason}", hint="check its permissions") from error


def _blocks(path: Path, file: BinaryIO) -> Iterator[tuple[bytes, int]]:
    """Yield the decompressed file in blocks, each with the position on disk after it."""
    chunks = _chunks(file)
    position, first = next(chunks, (0, b""))
    if not first:
        raise Refused(f"{path_text(path)} is empty", hint="fetch the file again")
    compressed = first.startswith(_GZIP_MAGIC)
    inflate = _Inflate()
    while first:
        if compressed:
            for block in inflate.feed(first):
                yield block, position
        else:
            yield first, position
        position, first = next(chunks, (position, b""))
    if compressed:
        for block in inflate.close():
            yield block, position


def _chunks(file: BinaryIO) -> Iterator[tuple[int, bytes]]:
    position = 0
    while True:
        try:
            chunk = file.read(_CHUNK_BYTES)
        except OSError as error:
            raise _Damage("unreadable", f"reading failed: {error.strerror}") from error
        if not chunk:
            return
        position += len(chunk)
        yield position, chunk


class _Inflate:
    """A gzip stream of one or more members, giving all that can be had before any damage."""

    def __init__(self) -> None:
        self._member = zlib.decompressobj(_GZIP_WBITS)
        self._between = False

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """Yield what the chunk decompresses to, in blocks."""
        while chunk:
            if self._between:
                chunk = chunk.lstrip(b"\0")  # padding after the last member is usual on tapes and blocks
                if not chunk:
                    return
                self._member, self._between = zlib.decompressobj(_GZIP_WBITS), False
            before = self._member.copy()
            try:
                block = self._member.decompress(chunk, _BLOCK_BYTES)
            except zlib.error as error:
                yield from _salvage(before, chunk)
                raise _Damage("corrupt-gzip", _corruption(error)) from error
            if block:
                yield block
            self._between = self._member.eof
            chunk = self._member.unused_data if self._member.eof else self._member.unconsumed_tail

    def close(self) -> Iterator[bytes]:
        """Yield what is still held back, and make sure that the last member was whole."""
        if self._between:
            return
        try:
            rest = self._member.flush()
        except zlib.error as error:
            raise _Damage("corrupt-gzip", _corruption(error)) from error
        if rest:
            yield rest
        if not self._member.eof:
            raise _Damage("truncated-gzip", "the gzip data ends before its end mark: the file is cut short")


def _salvage(member: "zlib._Decompress", chunk: bytes) -> Iterator[bytes]:
    """Yield, byte by byte, what the chunk gives before the damage in it."""
    for index in range(len(chunk)):
        try:
            piece = member.decompress(chunk[index : index + 1])
        except zlib.error:
            return
        if piece:
            yield piece


def _corruption(error: zlib.error) -> str:
    reason = str(error).rpartition(": ")[2]
    if "check" in reason and "header" not in reason:
        return f"the checksum of the gzip data does not fit ({reason}): a line before may be wrong"
    return f"the gzip data is damaged ({reason})"
