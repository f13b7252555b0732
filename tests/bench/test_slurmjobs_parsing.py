"""How fast records of Slurm jobs are read, against a bare read of the same bytes; see ``tests.bench.parsing``.

A record of ``sacct --json`` is 6 kB of which a tenth is understood: there the typed read is faster than the bare one.
A row is split in 3 microseconds by csv, in C, and a small document read in 2 by msgspec; what looks at two dozen fields
takes three to four times as long, although what jobs have in common is understood once, and three events, each with two
digests, take five times as long again. The limits are what was measured, less what a busy machine takes away.
"""

import csv
import gzip
import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest
from tests.bench.parsing import speed
from tests.unit.sources.slurm.told import FIXTURES, HOUR, T, Told, document, written

from gpuledger.ingest.collector import relax_collector
from gpuledger.sources.documents import open_document
from gpuledger.sources.lines import Broken, Line, read_lines
from gpuledger.sources.protocol import ImportOptions, Translated
from gpuledger.sources.registry import source
from gpuledger.sources.slurm.jobcomp import _Documents
from gpuledger.sources.slurm.reading import JobReader
from gpuledger.sources.slurm.sacct_json import AccountingReader
from gpuledger.sources.slurm.sacct_text import _header, _records, _Rows

pytestmark = pytest.mark.bench

RECORDS = {"short": 1500, "full": 40_000}
LIMITS = {
    # source: least ratio of understanding, of the whole
    "slurm-sacct-json": (0.3, 0.2),
    "slurm-sacct-text": (0.22, 0.035),
    "slurm-jobcomp": (0.23, 0.03),
}


def bare(name: str, content: bytes) -> int:
    if name == "slurm-sacct-json":
        return len(msgspec.json.decode(content)["jobs"])
    if name == "slurm-jobcomp":
        return sum(1 for line in content.splitlines() if msgspec.json.decode(line))
    return sum(1 for _ in csv.reader(io.StringIO(content.decode()), delimiter="|")) - 1


def records_of(name: str, path: Path) -> tuple[JobReader, Iterator[Line | Broken]]:
    """Return the reader of a source, and the pieces of a file as the source cuts it."""
    if name == "slurm-sacct-json":
        return AccountingReader(ImportOptions()), open_document(path).pieces("jobs")
    lines = read_lines(path)
    if name == "slurm-jobcomp":
        return _Documents(ImportOptions()), lines
    delimiter, columns = _header(path, next(lines))
    reader = _Rows(ImportOptions(), {"columns": columns, "delimiter": delimiter.decode()})
    return reader, _records(lines, delimiter, len(columns) - 1)


def content_of(name: str, records: int) -> bytes:
    """Return records of a busy cluster; those of accounting are captured ones, with their steps."""
    if name == "slurm-sacct-json":
        captured = json.loads(gzip.decompress((FIXTURES / "captures/sacct.json.gz").read_bytes()))["jobs"]
        return document(*(captured[n % len(captured)] | {"job_id": n + 1} for n in range(records)))
    runs = [
        Told(
            job=n,
            account=f"prog-{n % 40}",
            nodes=f"h100-{n % 200:03d}",
            submit=T + n,
            start=T + n + 60,
            end=T + n + HOUR,
        )
        for n in range(records)
    ]
    return written(name, *runs)


@pytest.mark.parametrize("name", LIMITS)
def test_records_become_facts_at_a_share_of_the_speed_of_a_bare_read(
    tmp_path: Path, name: str, test_form: str
) -> None:
    relax_collector()
    records = RECORDS[test_form]
    content, path = content_of(name, records), tmp_path / "records"
    path.write_bytes(content)

    def understand() -> int:
        reader, pieces = records_of(name, path)
        return sum(len(reader.parse(piece.raw)) for piece in pieces)

    def whole() -> int:
        return sum(isinstance(item, Translated) for item in source(name).read(path, ImportOptions()))

    bare_read: Callable[[], int] = lambda: bare(name, content)  # noqa: E731 - as long as the others
    assert bare_read() == understand() == whole() == records
    found = speed(records, bare_read, understand, whole)
    print(f"\n{name}: {found}")
    understood_min, whole_min = LIMITS[name]
    assert found.understood >= understood_min
    assert found.whole >= whole_min
