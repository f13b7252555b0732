"""Whether the archive is what was written: each file there, with its bytes, rows and sums, and no day left out."""

import datetime as dt
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from itertools import groupby
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from gpuledger.kernel.errors import GpuledgerError
from gpuledger_pipelines.archive import layout
from gpuledger_pipelines.archive import manifest as manifests
from gpuledger_pipelines.archive.contents import DATASETS
from gpuledger_pipelines.archive.layout import DATA, MANIFEST, Place
from gpuledger_pipelines.archive.manifest import Manifest


@dataclass(frozen=True, slots=True)
class Finding:
    """A file that is not what it should be.

    Args:
        file: Its path.
        problem: What is wrong with it.
        hint: What a person can do about it.
    """

    file: str
    problem: str
    hint: str


@dataclass(slots=True)
class Verification:
    """What was looked at, and what was found.

    Args:
        files: How many files were read to the end.
        rows: Rows in them, by dataset.
        bytes: Their size, by dataset.
        findings: Files that are not what they should be.
    """

    files: int = 0
    rows: dict[str, int] = field(default_factory=dict)
    bytes: dict[str, int] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether everything is as it was written."""
        return not self.findings

    def as_json(self) -> dict[str, object]:
        """Return it under the published keys."""
        return {"ok": self.ok, **asdict(self)}


def verify(
    root: Path, cluster: str | None = None, first: dt.date | None = None, end: dt.date | None = None
) -> Verification:
    """Read the archive, or a part of it, and compare it with its manifests.

    Args:
        root: The archive's folder.
        cluster: One cluster; all unless given.
        first: The first day; the first that there is unless given.
        end: The day after the last one.
    """
    found = Verification()
    for (dataset, name), places in groupby(
        layout.places(root, cluster), lambda place: (place.dataset, place.cluster)
    ):
        inside = [p for p in places if (first is None or p.day >= first) and (end is None or p.day < end)]
        for place in inside:
            _look_at(root, place, found)
        found.findings += _gaps(root, dataset, name, [place.day for place in inside])
    return found


def _look_at(root: Path, place: Place, found: Verification) -> None:
    folder = place.folder(root)
    try:
        manifest = manifests.read(root, place)
        path = manifests.data_of(root, manifest, place)
    except GpuledgerError as error:
        name = MANIFEST if MANIFEST in error.message else DATA
        found.findings.append(Finding(str(folder / name), error.message, error.hint))
        return
    problem = _problem(path, manifest)
    if problem is not None:
        found.findings.append(Finding(str(path), problem, manifests.again(place)))
        return
    found.files += 1
    found.rows[place.dataset] = found.rows.get(place.dataset, 0) + manifest.rows
    found.bytes[place.dataset] = found.bytes.get(place.dataset, 0) + manifest.bytes


def _problem(path: Path, manifest: Manifest) -> str | None:
    """Return what is wrong with a file, or None."""
    if (seen := manifests.digest(path)) != manifest.sha256:
        return f"its SHA-256 is {seen}, and its manifest tells of {manifest.sha256}"
    try:
        rows, sums, told = _reckoned(path, manifest.dataset)
    except (pa.ArrowException, OSError) as error:
        return f"it is no Parquet file of this kind: {error}"
    if told != (manifest.dataset, manifest.cluster, manifest.day):
        return f"it says that it is {' '.join(told)}"
    if rows != manifest.rows or sums != manifest.sums:
        return f"it has {rows:,} rows and sums {sums}, and its manifest tells of {manifest.rows:,} and {manifest.sums}"
    return None


def _reckoned(path: Path, dataset: str) -> tuple[int, dict[str, int], tuple[str, ...]]:
    """Return the rows, the sums and the name that a file comes to, a group of rows at a time."""
    kind, sums, rows = DATASETS[dataset], dict[str, int](), 0
    with pq.ParquetFile(path) as file:
        if not file.schema_arrow.equals(kind.schema):
            raise pa.ArrowInvalid(f"its columns are {', '.join(file.schema_arrow.names)}")
        kind.add_up(kind.schema.empty_table(), sums)
        for number in range(file.num_row_groups):
            table = file.read_row_group(number)
            kind.add_up(table, sums)
            rows += table.num_rows
        metadata = file.schema_arrow.metadata or {}
    told = tuple(metadata.get(key, b"?").decode() for key in (b"dataset", b"cluster", b"day"))
    return rows, dict(sorted(sums.items())), told


def _gaps(root: Path, dataset: str, cluster: str, days: Sequence[dt.date]) -> Iterator[Finding]:
    """Yield days without a file between the first and the last that have one."""
    if not days:
        return
    have, first = set(days), min(days)
    for n in range((max(days) - first).days):
        place = Place(dataset, cluster, first + dt.timedelta(days=n))
        if place.day not in have:
            yield Finding(str(place.folder(root) / DATA), "the day is missing", manifests.again(place))
