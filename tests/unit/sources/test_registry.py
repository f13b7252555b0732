"""What holds for every source on the list."""

import gzip
from dataclasses import replace
from pathlib import Path

import pytest
from tests.property.sources.seeds import SEEDS, Seed
from tests.unit.sources.rows import GOOD

from gpuledger.kernel.errors import BadRecord, Refused
from gpuledger.sources.protocol import Fault
from gpuledger.sources.registry import names, source

FIRST = {seed.source: seed for seed in reversed(SEEDS)}
"""The first seed of each source."""


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


@pytest.mark.parametrize("name", names())
def test_options_that_cannot_be_are_refused(name: str) -> None:
    path, options = FIRST[name].path, FIRST[name].options
    with pytest.raises(Refused, match="Mars/Base"):
        source(name).read(path, replace(options, timezone="Mars/Base"))
    for cluster in ("a/b", "Big", "~org", "a b"):
        with pytest.raises(Refused, match="--cluster"):
            source(name).read(path, replace(options, cluster=cluster))


def test_an_unknown_source_is_refused_with_those_there_are() -> None:
    with pytest.raises(Refused, match="nonesuch") as caught:
        source("nonesuch")
    assert caught.value.hint == f"known sources: {', '.join(names())}"
    assert names() == sorted(names())


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
