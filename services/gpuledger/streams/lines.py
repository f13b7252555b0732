"""Reading complete lines of a file that others append to, and noticing when its past has changed."""

import os
from collections.abc import Iterator
from pathlib import Path

from gpuledger.kernel.errors import NotFound, Unavailable
from gpuledger.streams.protocol import PositionLost

CHUNK_BYTES = 1 << 18
READ_BUDGET_BYTES = 1 << 24
"""One read stops after about this many bytes, whatever its limit: long lines must not fill the memory."""

WITNESS_BYTES = 64
"""How much of what was already read is compared again; a file rewritten in place differs there."""

LOST_HINT = (
    "the file was truncated, replaced or deleted: restore it, or read what it holds now from its beginning with"
    " gpuledger ingest --from-start; what is booked is not booked twice"
)


class LineReader:
    """A place in one append-only file; every read checks that the file is still the one first opened.

    Args:
        path: The file.
        line: Number of the line to read next, counted from 0; finding it costs one pass over the lines
            before it, after which the byte offset is kept.

    Raises:
        NotFound: When there is no such file.
        Unavailable: When the file cannot be opened.
        PositionLost: When the file has fewer complete lines.
    """

    def __init__(self, path: Path, line: int) -> None:
        self._path = path
        try:
            self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError as error:
            raise NotFound(f"{path} does not exist", hint="create the topic first") from error
        except OSError as error:
            raise Unavailable(
                f"{path} cannot be read: {error.strerror}", hint="check the permissions of the folder"
            ) from error
        opened = os.fstat(self._fd)
        self._identity = (opened.st_dev, opened.st_ino)
        self._line, self._offset = self._walk(0, 0, line)
        if self._line < line:
            held = self._line
            self.close()
            raise PositionLost(f"{path} has {held} complete lines, the reader was at {line}", hint=LOST_HINT)
        self._end = (self._line, self._offset)
        self._unfinished_size = -1
        self._witness = self._read_witness()

    @property
    def line(self) -> int:
        """Number of the line that ``read`` returns next."""
        return self._line

    def close(self) -> None:
        """Release the file; further reads fail."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def end(self) -> int:
        """Return the number of complete lines, counting only those that came since the last call.

        Raises:
            PositionLost: When the file is another one, shorter than what was read, or rewritten.
        """
        size = self._verified_size()
        line, offset = self._end
        if not self._offset <= offset <= size:
            line, offset = self._line, self._offset
        self._end = self._walk(line, offset, None)
        return self._end[0]

    def read(self, limit: int) -> list[bytes]:
        """Return up to ``limit`` complete lines without their ends and move past them.

        An unfinished last line is left alone until somebody ends it.

        Raises:
            PositionLost: When the file is another one, shorter than what was read, or rewritten.
        """
        size = self._verified_size()
        if size in (self._offset, self._unfinished_size) or limit <= 0:
            return []
        lines: list[bytes] = []
        pieces: list[bytes] = []  # of a line that is longer than one chunk
        taken = 0
        for _, chunk in self._chunks(self._offset):
            *complete, rest = chunk.split(b"\n", limit - len(lines))
            if complete:
                complete[0] = b"".join((*pieces, complete[0]))
                pieces.clear()
                lines += complete
                taken += sum(map(len, complete)) + len(complete)
                if len(lines) >= limit or taken >= READ_BUDGET_BYTES:
                    break
            pieces.append(rest)
        if not lines:
            # A long unfinished line is not read again before the file has changed.
            self._unfinished_size = size
            return []
        self._line += len(lines)
        self._offset += taken
        self._witness = self._read_witness()
        return lines

    def _verified_size(self) -> int:
        """Return the size of the file after making sure that what was read is still there."""
        try:
            named = self._path.stat()
        except FileNotFoundError:
            raise PositionLost(f"{self._path} was deleted while it was read", hint=LOST_HINT) from None
        if (named.st_dev, named.st_ino) != self._identity:
            raise PositionLost(f"{self._path} was replaced by another file", hint=LOST_HINT)
        if named.st_size < self._offset:
            raise PositionLost(
                f"{self._path} has {named.st_size} bytes, the reader had come to byte {self._offset}",
                hint=LOST_HINT,
            )
        if self._read_witness() != self._witness:
            raise PositionLost(
                f"{self._path} was rewritten: the bytes before line {self._line} are not those read",
                hint=LOST_HINT,
            )
        return named.st_size

    def _read_witness(self) -> bytes:
        length = min(WITNESS_BYTES, self._offset)
        return os.pread(self._fd, length, self._offset - length)

    def _walk(self, line: int, offset: int, target: int | None) -> tuple[int, int]:
        """Go from the start of ``line`` to the start of ``target``, or past the last complete line."""
        if line == target:
            return line, offset
        for start, chunk in self._chunks(offset):
            count = chunk.count(b"\n")
            if target is not None and line + count >= target:
                rest = chunk.split(b"\n", target - line)[-1]
                return target, start + len(chunk) - len(rest)
            if count:
                line += count
                offset = start + chunk.rindex(b"\n") + 1
        return line, offset

    def _chunks(self, offset: int) -> Iterator[tuple[int, bytes]]:
        while chunk := os.pread(self._fd, CHUNK_BYTES, offset):
            yield offset, chunk
            offset += len(chunk)
