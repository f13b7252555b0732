"""A backup is what its manifest tells of, or it is refused; books that differ are named."""

import datetime as dt
from pathlib import Path

import pytest

from gpuledger.backup import manifest
from gpuledger.backup.manifest import Head
from gpuledger.kernel.errors import NotFound, Refused

AT = dt.datetime(2026, 12, 1, tzinfo=dt.UTC)
HEADS = (Head(book="alpha", rows=3, head="a" * 64), Head(book="~org", rows=1, head="b" * 64))


@pytest.fixture
def backup(tmp_path: Path) -> Path:
    path = tmp_path / "ledger.dump"
    path.write_bytes(b"rows" * 999)
    told = manifest.made(path, taken_at=AT, revision="0030", server="18.6", heads=HEADS)
    manifest.path_of(path).write_text(manifest.text(told))
    return path


def test_a_manifest_comes_back_as_it_was_written(backup: Path) -> None:
    told = manifest.read(backup)
    assert (told.heads, told.bytes, told.taken_at) == (HEADS, 3996, "2026-12-01T00:00:00Z")
    assert manifest.path_of(backup).name == "ledger.dump.json"


def test_a_byte_that_was_changed_is_found(backup: Path) -> None:
    content = bytearray(backup.read_bytes())
    content[1234] ^= 1
    backup.write_bytes(content)
    with pytest.raises(Refused, match="its SHA-256 is not that of its manifest"):
        manifest.read(backup)


def test_a_copy_that_is_not_whole_is_told_as_such(backup: Path) -> None:
    backup.write_bytes(backup.read_bytes()[:-1])
    with pytest.raises(Refused, match="3,995 bytes, its manifest says 3,996"):
        manifest.read(backup)


def test_a_manifest_that_is_none_or_of_another_version(backup: Path) -> None:
    path = manifest.path_of(backup)
    text = path.read_text()
    path.write_text("{}")
    with pytest.raises(Refused, match="is no manifest of a backup"):
        manifest.read(backup)
    path.write_text(text.replace('"version": 1', '"version": 2'))
    with pytest.raises(Refused, match="version 2, this gpuledger reads 1"):
        manifest.read(backup)
    path.unlink()
    with pytest.raises(NotFound, match=r"ledger\.dump\.json is not there"):
        manifest.read(backup)


def test_books_that_differ_are_named(backup: Path) -> None:
    told = manifest.read(backup)
    assert manifest.differences(told, HEADS) == []
    there = (Head(book="alpha", rows=2, head="c" * 64), Head(book="beta", rows=1, head="d" * 64))
    found = {each.book: each.what for each in manifest.differences(told, there)}
    assert found == {
        "alpha": f"2 rows and head {'c' * 16}, not 3 and {'a' * 16}",
        "beta": "the backup has no such book",
        "~org": "missing; it had 1 rows",
    }
