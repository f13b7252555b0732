"""Appending lines to a file that several processes share, without ever gluing two messages together."""

import errno
import fcntl
import os
import time
from pathlib import Path

from gpuledger.kernel.errors import NotFound, Unavailable

LOCK_WAIT_S = 30.0
_LOCK_RETRY_S = 0.002


class LineAppender:
    """One append-only file, opened for writing; safe beside other appenders, not shared between threads.

    Args:
        path: An existing file; it is never created here, so that a mistyped topic is noticed.

    Raises:
        NotFound: When there is no such file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._fd = self._open()

    def append(self, lines: bytes) -> None:
        """Append whole lines; returns when the operating system has them.

        A writer that was killed may have left an unfinished line. It is ended first, which makes it a
        (bad) line of its own: history is kept as it is, and the next message stays whole.

        Raises:
            Unavailable: When the file cannot be locked or written; part of the lines may be there.
        """
        self._lock()
        try:
            size = os.fstat(self._fd).st_size
            torn = size > 0 and os.pread(self._fd, 1, size - 1) != b"\n"
            remaining = memoryview(b"\n" + lines if torn else lines)
            while remaining:
                remaining = remaining[os.write(self._fd, remaining) :]
        except OSError as error:
            raise self._unavailable(error) from error
        finally:
            fcntl.flock(self._fd, fcntl.LOCK_UN)

    def sync(self) -> None:
        """Return when everything appended is on the disk.

        Raises:
            Unavailable: When the disk refuses.
        """
        try:
            os.fsync(self._fd)
        except OSError as error:
            raise self._unavailable(error) from error

    def close(self) -> None:
        """Release the file."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _open(self) -> int:
        try:
            return os.open(self._path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)
        except FileNotFoundError as error:
            raise NotFound(f"{self._path} does not exist", hint="create the topic first") from error
        except OSError as error:
            raise self._unavailable(error) from error

    def _lock(self) -> None:
        """Take the lock of the file that has the name now, not of one that was deleted meanwhile."""
        deadline = time.monotonic() + LOCK_WAIT_S
        while True:
            try:
                fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                if error.errno != errno.EWOULDBLOCK or time.monotonic() > deadline:
                    raise self._unavailable(error) from error
                time.sleep(_LOCK_RETRY_S)
                continue
            if self._is_current():
                return
            os.close(self._fd)
            self._fd = -1
            self._fd = self._open()

    def _is_current(self) -> bool:
        mine = os.fstat(self._fd)
        try:
            named = self._path.stat()
        except FileNotFoundError:
            return False
        return (mine.st_dev, mine.st_ino) == (named.st_dev, named.st_ino)

    def _unavailable(self, error: OSError) -> Unavailable:
        return Unavailable(
            f"{self._path} cannot be written: {error.strerror}",
            hint="check the free space and the permissions of the folder, and who holds the file locked",
        )


def sync_folder(folder: Path) -> None:
    """Return when the names in a folder are on the disk: a new file is not there before its name is."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
