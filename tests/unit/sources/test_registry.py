"""What holds for every source on the list."""

import gzip
from pathlib import Path

import pytest
from tests.property.sources.seeds import SEEDS, Seed
from tests.unit.sources.rows import GOOD

from gpuledger.kernel.errors import BadRecord, Refused
from gpuledger.sources.protocol import Fault, ImportOptions
from gpuledger.sources.registry import names, source

<<<<<<< HEAD
FIRST = {seed.source: seed for seed in reversed(SEEDS)}
"""The first seed of each source."""
=======
LIVE = "tests/fixtures/sources/slurm-live"
>>>>>>> 4c7bf67 (slurm-squeue-text, slurm-scontrol-jobs and slurm-sacctmgr; settings are refused with what they say)


@pytest.mark.parametrize("name", names())
def test_missing_and_empty_files_are_refused_by_name(tmp_path: Path, name: str) -> None:
    options = FIRST[name].options
    with pytest.raises(Refused, match=r"nowhere\.csv"):
        source(name).read(tmp_path / "nowhere.csv", options)
    with pytest.raises(Refused, match=r"nowhere\.csv"):
        source(name).size(tmp_path / "nowhere.csv")
    with pytest.raises(
        Refused, match=f"{FIRST[name].file.name if FIRST[name].entry.mutate else 'records'} is empty"
    ):
        source(name).read(FIRST[name].write(tmp_path, b""), options)
    (tmp_path / "folder").mkdir()
    with pytest.raises(Refused):
        source(name).read(tmp_path / "folder", options)


<<<<<<< HEAD
@pytest.mark.parametrize("name", names())
def test_options_that_cannot_be_are_refused(name: str) -> None:
    path, zone = FIRST[name].path, FIRST[name].entry.timezone
=======
TABLES = {"philly": PHILLY, "clustercockpit": table(COCKPIT_COLUMNS), "openb": table(POD_COLUMNS)}
"""Sources of comma-separated values, which any row is a fault of."""

EXAMPLES = {
    "clustercockpit": "services/gpuledger/demo/data/alex.csv.gz",
    "openb": "services/gpuledger/demo/data/openb_pod_list_default.csv.gz",
    "philly": "services/gpuledger/demo/data/philly.csv.gz",
    "slurm-jobcomp": "tests/fixtures/sources/slurm/synthetic/jobcomp.ndjson",
    "slurm-sacct-json": "tests/fixtures/sources/slurm/captures/sacct.json.gz",
    "slurm-sacct-text": "tests/fixtures/sources/slurm/captures/sacct-allocations.psv.gz",
    "slurm-nodes": f"{LIVE}/lab-scontrol-nodes.txt",
    "slurm-sacctmgr": f"{LIVE}/synthetic-sacctmgr-event.psv",
    "slurm-scontrol-jobs": f"{LIVE}/lab-job-suspended.txt",
    "slurm-squeue-json": "tests/fixtures/sources/slurm/captures/squeue-live.json.gz",
    "slurm-squeue-text": f"{LIVE}/gcm-squeue.txt",
    "slurmrestd": "tests/fixtures/sources/slurm/captures/squeue-live.json.gz",
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_options_that_cannot_be_are_refused(repository: Path, name: str) -> None:
    path = repository / EXAMPLES[name]
>>>>>>> 4c7bf67 (slurm-squeue-text, slurm-scontrol-jobs and slurm-sacctmgr; settings are refused with what they say)
    with pytest.raises(Refused, match="Mars/Base"):
        source(name).read(path, ImportOptions(timezone="Mars/Base"))
    for cluster in ("a/b", "Big", "~org", "a b"):
        with pytest.raises(Refused, match="--cluster"):
            source(name).read(path, ImportOptions(cluster=cluster, timezone=zone))


def test_an_unknown_source_is_refused_with_those_there_are() -> None:
    with pytest.raises(Refused, match="nonesuch") as caught:
        source("nonesuch")
    assert caught.value.hint == f"known sources: {', '.join(names())}"
<<<<<<< HEAD
    assert names() == sorted(names())
=======
>>>>>>> 4c7bf67 (slurm-squeue-text, slurm-scontrol-jobs and slurm-sacctmgr; settings are refused with what they say)


@pytest.mark.parametrize("name", names())
def test_a_retry_without_context_is_refused(name: str) -> None:
    with pytest.raises(BadRecord, match="dead letter"):
        source(name).retry(GOOD, {})


@pytest.mark.parametrize(
    "seed", [pytest.param(seed, id=str(seed)) for seed in SEEDS if seed.entry.records == "lines"]
)
def test_a_retry_of_a_partial_line_is_refused(tmp_path: Path, seed: Seed) -> None:
    packed = gzip.compress(seed.put_together(seed.sample) + b"1,2")
    items = list(source(seed.source).read(seed.write(tmp_path, packed[:-1]), seed.options))
    (fault,) = [item for item in items if isinstance(item, Fault) and item.code == "truncated-gzip"]
    assert fault.raw == b"1,2"
    with pytest.raises(BadRecord, match="only the beginning"):
        source(seed.source).retry(fault.raw, fault.context)
