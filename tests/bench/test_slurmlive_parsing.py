"""How fast pictures of Slurm's live state are read, against a bare read of the same bytes (``tests.bench.parsing``)."""

import csv
import gzip
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.bench.parsing import speed

from gpuledger.ingest.collector import relax_collector
from gpuledger.sources.documents import open_document
from gpuledger.sources.lines import Line
from gpuledger.sources.protocol import ImportOptions
from gpuledger.sources.registry import source
from gpuledger.sources.slurm.controller import ControllerReader
from gpuledger.sources.slurm.listing import columns, open_listing
from gpuledger.sources.slurm.scontrol import read_blocks
from gpuledger.sources.slurm.scontrol_jobs import JobBlocks
from gpuledger.sources.slurm.squeue_text import Rows

pytestmark = pytest.mark.bench

FIXTURES = Path(__file__).parents[1] / "fixtures/sources"
COPIES = {"short": 30, "full": 600}


@pytest.fixture
def copies(test_form: str) -> int:
    return COPIES[test_form]


def report(
    name: str, path: Path, bare: Callable[[bytes], object], understand: Callable[[], object]
) -> tuple[float, float]:
    """Print and return what part of the speed of the bare read understanding has, and the whole source."""
    relax_collector()

    def whole() -> int:
        return sum(1 for _ in source(name).read(path, ImportOptions()))

    raw, records = path.read_bytes(), whole()
    found = speed(records, lambda: bare(raw), understand, whole)
    print(f"\n{name}: {found}")
    return found.understood, found.whole


def renumbered(job: dict[str, Any], copy: int) -> dict[str, Any]:
    return job | {key: job[key] and job[key] + 100 * copy for key in ("job_id", "array_job_id", "het_job_id")}


def test_squeue_json(tmp_path: Path, copies: int) -> None:
    jobs = json.loads(gzip.decompress((FIXTURES / "slurm/captures/squeue-live.json.gz").read_bytes()))["jobs"]
    path = tmp_path / "squeue.json"
    path.write_text(
        json.dumps({"jobs": [renumbered(job, copy) for copy in range(copies) for job in jobs]}, indent=1)
    )

    def parse() -> None:
        reader = ControllerReader(ImportOptions())
        for piece in open_document(path).pieces("jobs"):
            reader.parse(piece.raw)

    understood, whole = report("slurm-squeue-json", path, msgspec.json.decode, parse)
    assert understood >= 0.3
    assert whole >= 0.1


def test_scontrol_jobs(tmp_path: Path, copies: int) -> None:
    """The bare read is a dict of the words of each block: there is no library for the form."""
    text = gzip.decompress((FIXTURES / "slurm-live/lab-scontrol-jobs.txt.gz").read_bytes()).decode()
    number = re.compile(r"((?:Array|Het)?JobId=)(\d+)")
    path = tmp_path / "scontrol.txt"
    path.write_text(
        "".join(
            number.sub(lambda found: f"{found[1]}{int(found[2]) + 100 * copy}", text)  # noqa: B023 - used at once
            for copy in range(copies)
        )
    )

    def parse() -> None:
        reader = JobBlocks(ImportOptions())
        for block in read_blocks(path, "JobId"):
            reader.parse(block.raw)

    def bare(raw: bytes) -> object:
        blocks = raw.decode().split("\n\n")
        return [dict(word.partition("=")[::2] for word in block.split()) for block in blocks]

    understood, whole = report("slurm-scontrol-jobs", path, bare, parse)
    assert understood >= 0.3
    assert whole >= 0.15


def test_squeue_text(tmp_path: Path, copies: int) -> None:
    """csv splits a row in C; here each of two dozen fields is read, and times are put into their zone."""
    header, *rows = (
        gzip.decompress((FIXTURES / "slurm-live/lab-squeue-all.psv.gz").read_bytes()).decode().splitlines()
    )
    path = tmp_path / "squeue.psv"
    path.write_text("\n".join((header, *(row for _ in range(copies) for row in rows), "")))

    def parse() -> None:
        listing = open_listing(path)
        reader = Rows(ImportOptions(), {"columns": columns(listing.cells()), "delimiter": listing.delimiter})
        for line in listing.rest:
            assert isinstance(line, Line)
            reader.parse(line.raw)

    understood, whole = report(
        "slurm-squeue-text",
        path,
        lambda raw: list(csv.reader(raw.decode().splitlines(), delimiter="|")),
        parse,
    )
    assert understood >= 0.25
    assert whole >= 0.07


def test_nodes(tmp_path: Path, copies: int) -> None:
    """Nodes are read twice: the newest word of all tells when the picture was taken."""
    nodes = json.loads(gzip.decompress((FIXTURES / "slurm-live/lab-sinfo.json.gz").read_bytes()))["nodes"]
    path = tmp_path / "sinfo.json"
    told = [node | {"name": f"{node['name']}-{copy}"} for copy in range(10 * copies) for node in nodes]
    path.write_text(json.dumps({"nodes": told}, indent=1))
    _, whole = report(
        "slurm-nodes", path, msgspec.json.decode, lambda: list(open_document(path).pieces("nodes"))
    )
    assert whole >= 0.03
