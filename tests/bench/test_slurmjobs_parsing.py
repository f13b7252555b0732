"""How fast records of Slurm jobs become facts, against a bare read of the same bytes by the library that reads them.

The bare read makes plain values and throws them away. A source makes three events of each record, each with its bytes
as they go onto a stream, its digest and its id: that is most of its work, and no parser's. So the ratio is told twice:
of understanding alone, from bytes to the neutral run, and of the whole. A record of ``sacct --json`` is 6 kB of which a
tenth is understood: there the typed read keeps up with the bare one. A row is split in 5 microseconds by csv, in C, and
a small document read in as many by msgspec; nothing that looks at fifteen fields in Python keeps up with that, and the
limit is what is measured, less what a busy machine takes away.
"""

import csv
import gc
import gzip
import io
import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import pytest
from tests.unit.sources.slurm.told import FIXTURES, HOUR, T, Told, document, written

from gpuledger.sources.documents import open_document
from gpuledger.sources.lines import Line
from gpuledger.sources.protocol import ImportOptions, Translated
from gpuledger.sources.registry import source
from gpuledger.sources.slurm.jobcomp import _Documents
from gpuledger.sources.slurm.reading import JobReader
from gpuledger.sources.slurm.sacct_json import AccountingReader
from gpuledger.sources.slurm.sacct_text import _Rows

pytestmark = pytest.mark.bench

RECORDS = {"short": 4000, "full": 40_000}
ROUNDS = 5
LIMITS = {
    # source: ratio of understanding, ratio of the whole
    "slurm-sacct-json": (0.3, 0.2),
    "slurm-sacct-text": (0.08, 0.015),
    "slurm-jobcomp": (0.05, 0.01),
}


def bare(name: str, content: bytes) -> int:
    if name == "slurm-sacct-json":
        return len(msgspec.json.decode(content)["jobs"])
    if name == "slurm-jobcomp":
        return sum(1 for line in content.splitlines() if msgspec.json.decode(line))
    return sum(1 for _ in csv.reader(io.StringIO(content.decode()), delimiter="|")) - 1


def reader_and_records(name: str, path: Path, content: bytes) -> tuple[JobReader, Sequence[bytes]]:
    if name == "slurm-sacct-json":
        pieces = open_document(path).pieces("jobs")
        return AccountingReader(ImportOptions()), [p.raw for p in pieces if isinstance(p, Line)]
    first, *rest = content.splitlines()
    if name == "slurm-jobcomp":
        return _Documents(ImportOptions()), [first, *rest]
    return _Rows(ImportOptions(), {"columns": first.decode().split("|"), "delimiter": "|"}), rest


def seconds(work: Callable[[], int], records: int) -> float:
    best = float("inf")
    gc.disable()  # a whole document in plain values would make the collector the measure
    try:
        for _ in range(ROUNDS):
            began = time.perf_counter()
            assert work() == records
            best = min(best, time.perf_counter() - began)
    finally:
        gc.enable()
    return best


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
    records = RECORDS[test_form]
    content, path = content_of(name, records), tmp_path / "records"
    path.write_bytes(content)
    reader, raws = reader_and_records(name, path, content)

    def whole() -> int:
        return sum(isinstance(item, Translated) for item in source(name).read(path, ImportOptions()))

    read_s = seconds(lambda: bare(name, content), records)
    understood_s = seconds(lambda: sum(len(reader.parse(raw)) for raw in raws), records)
    whole_s = seconds(whole, records)
    understood_min, whole_min = LIMITS[name]
    print(
        f"\n{name}: bare {records / read_s:,.0f}, understood {records / understood_s:,.0f}, three events each"
        f" {records / whole_s:,.0f} records/s; ratios {read_s / understood_s:.2f} (at least {understood_min})"
        f" and {read_s / whole_s:.3f} (at least {whole_min})"
    )
    assert read_s / understood_s >= understood_min
    assert read_s / whole_s >= whole_min
