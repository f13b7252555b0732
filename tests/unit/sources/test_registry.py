"""What holds for every source on the list."""

import gzip
from pathlib import Path

import pytest
from tests.unit.sources.rows import COCKPIT_COLUMNS, GOOD, PHILLY, POD_COLUMNS, only, read, table

from gpuledger.kernel.errors import BadRecord, Refused
from gpuledger.sources.protocol import ImportOptions
from gpuledger.sources.registry import names, source

TABLES = ("clustercockpit", "openb", "philly")


@pytest.mark.parametrize("name", names())
def test_missing_and_empty_files_are_refused_by_name(tmp_path: Path, name: str) -> None:
    with pytest.raises(Refused, match=r"nowhere\.csv"):
        source(name).read(tmp_path / "nowhere.csv", ImportOptions())
    with pytest.raises(Refused, match=r"nowhere\.csv"):
        source(name).size(tmp_path / "nowhere.csv")
    with pytest.raises(Refused, match=r"empty\.csv is empty"):
        read(name, tmp_path / "empty.csv", b"")
    with pytest.raises(Refused):
        source(name).read(tmp_path, ImportOptions())


@pytest.mark.parametrize("name", TABLES)
def test_options_that_cannot_be_are_refused(repository: Path, name: str) -> None:
    file = {"philly": "philly", "clustercockpit": "alex", "openb": "openb_pod_list_default"}[name]
    path = repository / f"services/gpuledger/demo/data/{file}.csv.gz"
    with pytest.raises(Refused, match="Mars/Base"):
        source(name).read(path, ImportOptions(timezone="Mars/Base"))
    for cluster in ("a/b", "Big", "~org", "a b"):
        with pytest.raises(Refused, match="--cluster"):
            source(name).read(path, ImportOptions(cluster=cluster))


def test_an_unknown_source_is_refused_with_those_there_are() -> None:
    with pytest.raises(Refused, match="nonesuch") as caught:
        source("nonesuch")
    assert caught.value.hint == f"known sources: {', '.join(names())}"


@pytest.mark.parametrize("name", TABLES)
def test_a_retry_without_context_or_with_a_partial_line_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(BadRecord, match="dead letter"):
        source(name).retry(GOOD, {})
    columns = {"philly": PHILLY, "clustercockpit": table(COCKPIT_COLUMNS), "openb": table(POD_COLUMNS)}[name]
    header = columns.split(b"\n")[0]
    packed = gzip.compress(header + b"\n" + GOOD)
    fault = only(read(name, tmp_path / "cut.gz", packed[:-1]))
    assert fault.code == "truncated-gzip"
    assert fault.raw == GOOD
    with pytest.raises(BadRecord, match="only the beginning"):
        source(name).retry(fault.raw, fault.context)
