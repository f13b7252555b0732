"""Whatever is changed of an archive, verify names the file and says what mends it."""

import datetime as dt
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.integration.pipelines.rows import DAY, DAY_S, START_S, Database, Facts, Sample, Segment

from gpuledger_pipelines.archive import manifest as manifests
from gpuledger_pipelines.archive.contents import USAGE
from gpuledger_pipelines.archive.layout import DATA, MANIFEST, Place
from gpuledger_pipelines.archive.verifying import Verification, verify
from gpuledger_pipelines.archive.writing import write_day

DAYS = [DAY + dt.timedelta(days=n) for n in range(3)]
SECOND = Place("usage", "c", DAYS[1])
MENDS = "gpuledger archive write --cluster c --from 2024-03-02 --to 2024-03-03 writes it anew"


@pytest.fixture
def archive(database: Database, root: Path) -> Path:
    """Three days of one run with samples."""
    samples = [Sample("w0", START_S + n * 9_000, 300_000, n) for n in range(20)]
    database.put(Facts(segments=[Segment("c/a", 1000, START_S, None)], samples=samples))
    for day in DAYS:
        write_day(database.engine, root, "c", day)
    return root


def files(root: Path) -> list[Path]:
    return sorted(path for path in root.rglob("*") if path.is_file())


def test_an_archive_as_it_was_written_holds(archive: Path) -> None:
    found = verify(archive)
    assert (found.ok, found.files, found.rows) == (True, 6, {"usage": 3, "telemetry": 20})
    assert found.bytes["usage"] == sum(
        (Place("usage", "c", d).folder(archive) / DATA).stat().st_size for d in DAYS
    )
    part = verify(archive, "c", DAYS[1], DAYS[2])
    assert (part.ok, part.files) == (True, 2)
    assert verify(archive, "d") == Verification()


def test_a_flipped_byte_anywhere_is_found_and_its_file_named(archive: Path) -> None:
    """In twelve files, at their beginning, in their middle and at their end."""
    for path in files(archive):
        whole = path.read_bytes()
        for at in (0, len(whole) // 2, len(whole) - 2):
            path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
            found = verify(archive)
            # A manifest with another digest or size speaks of the file beside it.
            assert [Path(each.file).parent for each in found.findings] == [path.parent], (path, at)
        path.write_bytes(whole)
    assert verify(archive).ok


def test_a_missing_file_a_missing_manifest_and_a_missing_day_are_named(archive: Path) -> None:
    folder = SECOND.folder(archive)
    (folder / DATA).rename(archive / "aside")
    (finding,) = verify(archive).findings
    assert (finding.file, finding.hint) == (str(folder / DATA), MENDS)
    assert "is missing" in finding.problem
    (archive / "aside").rename(folder / DATA)
    (folder / MANIFEST).unlink()
    (finding,) = verify(archive).findings
    assert (finding.file, finding.hint) == (str(folder / MANIFEST), MENDS)
    shutil.rmtree(folder)
    (finding,) = verify(archive).findings
    assert (finding.file, finding.problem, finding.hint) == (str(folder / DATA), "the day is missing", MENDS)


def swapped(archive: Path) -> None:
    """The file of one day in the place of another, with a manifest to match."""
    first, second = Place("usage", "c", DAYS[0]), SECOND
    manifest = manifests.read(archive, first)
    shutil.copy(first.folder(archive) / DATA, second.folder(archive) / DATA)
    forge(archive, day="2024-03-02", sha256=manifest.sha256, bytes=manifest.bytes, sums=manifest.sums)


def other_rows(archive: Path) -> None:
    """Another amount, written as Parquet with the digest in its manifest: the sums tell."""
    path = SECOND.folder(archive) / DATA
    with pq.ParquetFile(path) as file:
        table = file.read()
    number = table.schema.get_field_index("gpus_milli")
    table = table.set_column(number, table.schema.field(number), pa.chunked_array([[1001]]))
    pq.write_table(table, path)
    forge(archive, sha256=manifests.digest(path), bytes=path.stat().st_size)


def no_parquet(archive: Path) -> None:
    path = SECOND.folder(archive) / DATA
    path.write_bytes(b"PAR1 and nothing else")
    forge(archive, sha256=manifests.digest(path), bytes=path.stat().st_size)


def forge(archive: Path, **keys: object) -> None:
    manifest = manifests.read(archive, SECOND)
    told = {name: getattr(manifest, name) for name in manifest.__struct_fields__}
    manifests.write(archive, manifests.Manifest(**{**told, **keys}), SECOND)


@pytest.mark.parametrize(
    ("forged", "problem"),
    [
        (swapped, "it says that it is usage c 2024-03-01"),
        (other_rows, f"sums {{'gpu_ms': {1001 * DAY_S}}}"),
        (no_parquet, "it is no Parquet file of this kind"),
        (lambda archive: forge(archive, rows=2), "its manifest tells of 2"),
        (lambda archive: forge(archive, sha256="0" * 64), "its manifest tells of 000"),
        (lambda archive: forge(archive, schema=2), "this version reads 1"),
        (lambda archive: forge(archive, cluster="d"), "is the manifest of another file"),
    ],
)
def test_who_forges_a_manifest_too_is_found(
    archive: Path, forged: Callable[[Path], None], problem: str
) -> None:
    forged(archive)
    (finding,) = verify(archive).findings
    assert problem in finding.problem
    assert Path(finding.file).parent == SECOND.folder(archive)


def test_nothing_of_another_schema_is_taken_for_this_one(archive: Path) -> None:
    path = SECOND.folder(archive) / DATA
    pq.write_table(USAGE.schema.empty_table().select(["run"]), path)
    forge(archive, sha256=manifests.digest(path), bytes=path.stat().st_size)
    (finding,) = verify(archive).findings
    assert "it is no Parquet file of this kind" in finding.problem
