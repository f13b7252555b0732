import errno
import fcntl
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from gpuledger.kernel.errors import NotFound, Unavailable
from gpuledger.streams import appending
from gpuledger.streams.appending import LineAppender


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "0.ndjson"
    path.touch()
    return path


def test_lines_are_added_at_the_end(path: Path) -> None:
    path.write_bytes(b"one\n")
    appender = LineAppender(path)

    appender.append(b"two\nthree\n")
    appender.sync()
    appender.close()

    assert path.read_bytes() == b"one\ntwo\nthree\n"


def test_what_a_killed_writer_left_unfinished_becomes_a_line_of_its_own(path: Path) -> None:
    path.write_bytes(b'{"id":1}\n{"id":')

    LineAppender(path).append(b'{"id":3}\n')

    assert path.read_bytes().splitlines() == [b'{"id":1}', b'{"id":', b'{"id":3}']


def test_a_line_left_unfinished_while_the_file_is_open_is_ended_too(path: Path) -> None:
    appender = LineAppender(path)
    appender.append(b"one\n")
    with path.open("ab") as killed:
        killed.write(b"tw")

    appender.append(b"three\n")

    assert path.read_bytes() == b"one\ntw\nthree\n"


def test_a_short_write_is_continued(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write: Callable[[int, bytes], int] = os.write
    monkeypatch.setattr(appending.os, "write", lambda descriptor, data: write(descriptor, bytes(data[:3])))

    LineAppender(path).append(b"abcdefgh\n")

    assert path.read_bytes() == b"abcdefgh\n"


def test_a_full_disk_is_unavailable_and_the_lock_is_released(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_descriptor: int, _data: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    appender = LineAppender(path)
    with monkeypatch.context() as patch:
        patch.setattr(appending.os, "write", full)
        with pytest.raises(Unavailable, match="No space left"):
            appender.append(b"one\n")

    LineAppender(path).append(b"two\n")
    assert path.read_bytes() == b"two\n"


def test_a_file_that_stays_locked_is_unavailable_in_time(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(appending, "LOCK_WAIT_S", 0.05)
    with path.open("ab") as other:
        fcntl.flock(other, fcntl.LOCK_EX)

        with pytest.raises(Unavailable, match="cannot be written"):
            LineAppender(path).append(b"one\n")


def test_a_file_created_anew_is_written_not_the_deleted_one(path: Path) -> None:
    appender = LineAppender(path)
    appender.append(b"one\n")
    path.unlink()
    path.touch()

    appender.append(b"two\n")

    assert path.read_bytes() == b"two\n"


def test_a_deleted_file_is_not_found_instead_of_written_to_nowhere(path: Path) -> None:
    appender = LineAppender(path)
    path.unlink()

    with pytest.raises(NotFound):
        appender.append(b"one\n")
