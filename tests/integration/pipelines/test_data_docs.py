"""A run keeps what its gates found: each check leads to its page, and the index lists them, however the run ended."""

from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest
from tests.integration.pipelines.rows import (
    DAY,
    DAY_S,
    HOUR_S,
    START_S,
    TABLES,
    Database,
    Facts,
    Host,
    Segment,
)  # fmt: skip
from tests.integration.pipelines.running import failed_gates, materialised, roll_up, why

from gpuledger import settings

NOON_S = START_S + 12 * HOUR_S


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("GPULEDGER_DATA_DOCS", str(tmp_path / "docs"))
    settings.load.cache_clear()
    yield tmp_path / "docs"
    settings.load.cache_clear()


def put(database: Database, gpus: int) -> None:
    """A run of five GPUs on hosts that have so many."""
    facts = Facts(
        segments=[Segment("c/a", 5000, NOON_S, NOON_S + HOUR_S)],
        hosts=[Host("h", gpus, "healthy", START_S)],
        accounts=["c/a"],
    )
    database.put(facts)
    database.book(facts, "2024-03")


def run(database: Database) -> dg.ExecuteInProcessResult:
    return roll_up(database.url, DAY, DAY, now_s=START_S + 3 * DAY_S)


def test_a_gate_that_fails_leads_to_its_page_and_the_index_is_made_all_the_same(
    database: Database, folder: Path
) -> None:
    put(database, gpus=4)
    result = run(database)
    assert not result.success
    assert "gpu_hour" not in materialised(result)
    page = Path(str(failed_gates(result)["gpu_bucket"].metadata["data docs"].value))
    assert page.is_relative_to(folder)
    text = page.read_text()
    assert "no more is occupied than is installed" in text
    assert "law 9: partition" in text
    assert "2024-03-01T12:00:00" in text
    assert result.run_id in text
    index = (folder / "site/index.html").read_text()
    assert index.count(">fails</a>") == 1
    tried = {path.name for path in (folder / "results").iterdir()}
    assert index.count(">holds</a>") == len(tried) - 1
    assert tried == {e.asset_key.path[-1] for e in result.get_asset_check_evaluations()}


def test_every_table_has_a_page(database: Database, folder: Path) -> None:
    put(database, gpus=8)
    result = run(database)
    assert result.success, why(result)
    assert {path.stem for path in (folder / "site/expectations").iterdir()} == set(TABLES)
    assert {path.name for path in (folder / "site/validations").iterdir()} == set(TABLES)


def test_a_folder_that_cannot_be_written_stops_no_roll_up(database: Database, folder: Path) -> None:
    folder.write_text("a file where the folder should be")
    put(database, gpus=8)
    result = run(database)
    assert result.success, why(result)
    told = {str(e.metadata["data docs"].value) for e in result.get_asset_check_evaluations()}
    assert all(each.startswith("not kept: ") and str(folder) in each for each in told)
