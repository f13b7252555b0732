"""What a reader remembers of records before changes nothing: each reads as it does for a reader that has seen none."""

import random
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from tests.property.sources.mutations import mutated
from tests.property.sources.seeds import SEEDS, Seed

from gpuledger.kernel.errors import BadRecord
from gpuledger.sources.lines import Line, read_lines
from gpuledger.sources.protocol import ImportOptions
from gpuledger.sources.slurm import jobcomp, listing, sacct_text, squeue_text
from gpuledger.sources.slurm.job import SlurmJob
from gpuledger.sources.slurm.reading import JobReader

RECORDS = {"short": 400, "full": 20_000}


def sacct_rows(path: Path) -> JobReader:
    delimiter, columns = sacct_text._header(path, next(read_lines(path)))
    return sacct_text._Rows(ImportOptions(), {"columns": columns, "delimiter": delimiter.decode()})


def squeue_rows(path: Path) -> JobReader:
    opened = listing.open_listing(path)
    columns = listing.columns([column.upper() for column in opened.cells()])
    return squeue_text.Rows(ImportOptions(), {"columns": columns, "delimiter": opened.delimiter})


def documents(path: Path) -> JobReader:
    del path
    return jobcomp._Documents(ImportOptions())


READERS: dict[str, Callable[[Path], JobReader]] = {
    "slurm-sacct-text": sacct_rows,
    "slurm-squeue-text": squeue_rows,
    "slurm-jobcomp": documents,
}
CASES = [
    pytest.param(seed, id=str(seed))
    for seed in SEEDS
    if seed.source in READERS and not (seed.source == "slurm-squeue-text" and seed.sample[0].startswith(b"{"))
]


def outcome(reader: JobReader, raw: bytes) -> Sequence[SlurmJob] | tuple[str, str]:
    """Return the jobs of a record, or what is wrong with it."""
    try:
        return reader.parse(raw)
    except BadRecord as error:
        return error.code, error.message


@pytest.mark.parametrize("seed", CASES)
def test_a_record_reads_as_if_it_were_the_first(tmp_path: Path, seed: Seed, test_form: str) -> None:
    path = seed.write(tmp_path, seed.put_together(seed.sample))
    chance = random.Random(str(seed))
    seasoned = READERS[seed.source](path)
    for line in read_lines(path):
        if isinstance(line, Line):
            outcome(seasoned, line.raw)
    for _ in range(RECORDS[test_form]):
        raw = mutated(chance.choice(seed.sample), seed.sample, chance)
        assert outcome(seasoned, raw) == outcome(READERS[seed.source](path), raw)
