"""A manifest that does not hold is told apart from one that is not there, with its file and what mends it."""

import datetime as dt
from pathlib import Path

import pytest

from gpuledger.kernel.errors import Corrupt, NotFound, Refused, Unavailable
from gpuledger_pipelines.archive import manifest
from gpuledger_pipelines.archive.layout import DATA, MANIFEST, Place
from gpuledger_pipelines.archive.manifest import Manifest

PLACE = Place("usage", "c", dt.date(2026, 11, 30))
MENDS = "gpuledger archive write --cluster c --from 2026-11-30 --to 2026-12-01"


def made(**other: object) -> Manifest:
    told = {
        "format": "gpuledger.archive", "schema": 1, "dataset": "usage", "cluster": "c", "day": "2026-11-30",
        "bytes": 3, "sha256": "ab", "rows": 1, "sums": {"gpu_ms": 2**62}, "known_seq": 7,
    }  # fmt: skip
    return manifest.sealed(Manifest(**{**told, **other}))  # type: ignore[arg-type]


def test_what_is_written_is_read(tmp_path: Path) -> None:
    manifest.write(tmp_path, made(), PLACE)
    assert manifest.read(tmp_path, PLACE) == manifest.find(tmp_path, PLACE) == made()
    (only,) = PLACE.folder(tmp_path).iterdir()
    assert only.name == MANIFEST


def test_none_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match=f"day=2026-11-30/{MANIFEST} is missing") as told:
        manifest.read(tmp_path, PLACE)
    assert MENDS in told.value.hint
    assert manifest.find(tmp_path, PLACE) is None


@pytest.mark.parametrize(
    ("other", "problem"),
    [
        ({"day": "2026-11-29"}, "is the manifest of another file"),
        ({"cluster": "d"}, "is the manifest of another file"),
        ({"format": "other"}, "is the manifest of another file"),
    ],
)
def test_that_of_another_file_is_corrupt(tmp_path: Path, other: dict[str, str], problem: str) -> None:
    manifest.write(tmp_path, made(**other), PLACE)
    with pytest.raises(Corrupt, match=problem) as told:
        manifest.read(tmp_path, PLACE)
    assert MENDS in told.value.hint


def test_every_byte_counts(tmp_path: Path) -> None:
    manifest.write(tmp_path, made(), PLACE)
    path = PLACE.folder(tmp_path) / MANIFEST
    whole = path.read_bytes()
    for at in range(len(whole)):
        for bit in (1, 2, 4, 8, 64):
            path.write_bytes(whole[:at] + bytes([whole[at] ^ bit]) + whole[at + 1 :])
            with pytest.raises((Corrupt, Refused)):
                manifest.read(tmp_path, PLACE)
    path.write_bytes(whole + b" ")
    with pytest.raises(Corrupt, match="was changed"):
        manifest.read(tmp_path, PLACE)


def test_half_a_manifest_is_corrupt(tmp_path: Path) -> None:
    manifest.write(tmp_path, made(), PLACE)
    path = PLACE.folder(tmp_path) / MANIFEST
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(Corrupt, match="is no manifest"):
        manifest.read(tmp_path, PLACE)
    assert manifest.find(tmp_path, PLACE) is None


def test_a_later_schema_is_refused(tmp_path: Path) -> None:
    manifest.write(tmp_path, made(schema=2), PLACE)
    with pytest.raises(Refused, match="has schema 2, and this version reads 1"):
        manifest.read(tmp_path, PLACE)


def test_a_file_of_another_size_is_named(tmp_path: Path) -> None:
    manifest.write(tmp_path, made(), PLACE)
    with pytest.raises(NotFound, match=f"{DATA} is missing"):
        manifest.data_of(tmp_path, made(), PLACE)
    path = PLACE.folder(tmp_path) / DATA
    path.write_bytes(b"abcd")
    with pytest.raises(Corrupt, match="has 4 bytes, and its manifest tells of 3"):
        manifest.data_of(tmp_path, made(), PLACE)
    path.write_bytes(b"abc")
    assert manifest.data_of(tmp_path, made(), PLACE) == path
    assert manifest.digest(path) == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"


def test_a_disk_that_refuses_is_unavailable(tmp_path: Path) -> None:
    (tmp_path / "usage").write_text("a file where a folder should be")
    with pytest.raises(Unavailable, match="cannot be written"):
        manifest.write(tmp_path, made(), PLACE)
