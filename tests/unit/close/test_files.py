"""The folder of a close: whole files, the same again, and a list that sha256sum reads."""

import hashlib
import shutil
import subprocess
from pathlib import Path

import pytest

from gpuledger.close import files
from gpuledger.kernel.errors import Unavailable

CONTENT = {"close.json": b'{"a":1}\n', "statement.html": b"<p>\n"}


def test_each_version_has_a_folder_of_its_own(tmp_path: Path) -> None:
    assert files.folder_of(tmp_path, "alpha", "2026-11", 2) == tmp_path / "alpha" / "2026-11" / "v2"
    assert files.folder_of(tmp_path, "../x", "2026-11", 1).parent.parent.parent == tmp_path


def test_the_files_are_written_with_the_list_of_their_digests(tmp_path: Path) -> None:
    files.write(tmp_path / "v1", CONTENT)
    assert {path.name: path.read_bytes() for path in (tmp_path / "v1").iterdir()} == {
        **CONTENT,
        files.SUMS: files.sums(CONTENT),
    }
    assert files.sums({"a": b"x"}).decode() == f"{hashlib.sha256(b'x').hexdigest()}  a\n"
    if (program := shutil.which("sha256sum")) is not None:
        subprocess.run([program, "--check", "--strict", files.SUMS], cwd=tmp_path / "v1", check=True)


def test_what_is_there_is_left_alone_and_what_differs_is_replaced(tmp_path: Path) -> None:
    files.write(tmp_path, CONTENT)
    kept = (tmp_path / "statement.html").stat()
    (tmp_path / "close.json").write_bytes(b"damaged")
    files.write(tmp_path, CONTENT)
    assert files.read(tmp_path / "close.json") == CONTENT["close.json"]
    again = (tmp_path / "statement.html").stat()
    assert (again.st_ino, again.st_mtime_ns) == (kept.st_ino, kept.st_mtime_ns)
    assert not list(tmp_path.glob(".*"))


def test_what_is_not_there_is_none(tmp_path: Path) -> None:
    assert files.read(tmp_path / "none") is None
    (tmp_path / "file").write_bytes(b"")
    assert files.read(tmp_path / "file" / "below") is None


def test_what_cannot_be_written_or_read_is_told_with_its_place(tmp_path: Path) -> None:
    (tmp_path / "v1").write_bytes(b"in the way")
    with pytest.raises(Unavailable, match="v1 cannot be written"):
        files.write(tmp_path / "v1", CONTENT)
    with pytest.raises(Unavailable, match="cannot be read"):
        files.read(tmp_path)
