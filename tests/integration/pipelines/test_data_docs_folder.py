"""What gates found is kept, shown, and bounded."""

import json
from pathlib import Path

import pytest
from tests.integration.pipelines.docs import FAILS, HOLDS, NASTY, keep

from gpuledger.settings import Settings
from gpuledger_pipelines.data_docs.folder import ROWS_KEPT, DataDocs, Tried

BROKEN = [(NASTY, -1), (NASTY, -1), ("c/b", 5)]


@pytest.fixture
def docs(tmp_path: Path) -> DataDocs:
    return DataDocs(tmp_path / "docs", kept=2)


def results(docs: DataDocs, cluster: str = "*") -> list[Path]:
    return sorted(docs.folder.glob(f"results/gpu_bucket/{cluster}/*/*.json"))


def pages(docs: DataDocs, cluster: str = "*") -> list[Path]:
    return sorted(docs.folder.glob(f"site/validations/gpu_bucket/{cluster}/*/*.html"))


def test_a_result_is_kept_with_its_rows_and_a_page(docs: DataDocs, tmp_path: Path) -> None:
    page = keep(docs, Tried("gpu_bucket", "c", "2024-03-01 to 2024-03-02", "r7"), tmp_path / "db", BROKEN)
    (kept,) = results(docs)
    assert pages(docs) == [page]
    told = json.loads(kept.read_text())
    assert (told["success"], told["suite_name"]) == (False, "gpu_bucket")
    assert told["meta"]["batch_parameters"] == {
        "cluster": "c",
        "rows": "2024-03-01 to 2024-03-02",
        "run": "r7",
    }
    by_type = {each["expectation_config"]["type"]: each for each in told["results"]}
    failed = by_type["expect_partition"]
    assert failed["expectation_config"]["description"] == FAILS
    assert failed["result"]["details"]["unexpected_rows"] == [{"account": NASTY, "gpu_ms": -1}] * 2
    assert "sqlite" not in kept.read_text()  # nor any other way to a database, with its password
    text = page.read_text()
    assert all(part in text for part in (FAILS, HOLDS, "law 9: partition", "exceptions: 2"))


def test_what_the_ledger_holds_is_text_on_a_page(docs: DataDocs, tmp_path: Path) -> None:
    page = keep(docs, Tried("gpu_bucket", NASTY, "1", NASTY), tmp_path / "db", BROKEN)
    index = docs.build()
    assert index is not None
    for made in (page, index):
        assert "<b id" not in made.read_text()
        assert "&lt;b id" in made.read_text()


def test_the_oldest_results_of_a_table_and_cluster_go_with_their_pages(
    docs: DataDocs, tmp_path: Path
) -> None:
    other = keep(docs, Tried("gpu_bucket", "d", "0"), tmp_path / "db", BROKEN)
    made = [
        keep(docs, Tried("gpu_bucket", "c", str(turn)), tmp_path / "db", [("c/a", turn)]) for turn in range(4)
    ]
    assert pages(docs, "c") == made[2:]
    assert [path.stem for path in results(docs, "c")] == ["2", "3"]
    assert pages(docs, "d") == [other]
    assert len(list((docs.folder / "results/gpu_bucket/c").iterdir())) == docs.kept


def test_the_index_lists_results_the_newest_first_and_suites(docs: DataDocs, tmp_path: Path) -> None:
    assert docs.build() is None
    for turn, rows in enumerate((BROKEN, [("c/a", 1)])):
        keep(docs, Tried("gpu_bucket", "c", f"turn {turn}"), tmp_path / "db", rows)
    index = docs.build()
    assert index == docs.index
    assert index is not None
    text = index.read_text()
    assert text.index("turn 1") < text.index("turn 0")
    assert [verdict for verdict in ("holds", "fails") if f'class="{verdict}"' in text] == ["holds", "fails"]
    assert 'href="expectations/gpu_bucket.html"' in text
    assert (docs.folder / "site/expectations/gpu_bucket.html").exists()


@pytest.mark.parametrize("cluster", ["profiling", "../up", "a/b.c", "it's %20", "..", "ü"])
def test_a_cluster_may_be_called_anything(docs: DataDocs, tmp_path: Path, cluster: str) -> None:
    page = keep(docs, Tried("gpu_bucket", cluster, "x"), tmp_path / "db", [("c/a", 1)])
    assert pages(docs) == [page]
    assert page.is_relative_to(docs.folder / "site/validations/gpu_bucket")
    index = docs.build()
    assert index is not None
    assert index.read_text().count(">holds</a>") == 1


def test_of_many_failing_rows_some_are_kept_and_all_are_counted(docs: DataDocs, tmp_path: Path) -> None:
    rows = [("c/a", -1)] * (2 * ROWS_KEPT)
    keep(docs, Tried("gpu_bucket", "c", "x"), tmp_path / "db", rows)
    told = json.loads(results(docs)[0].read_text())
    unique, _, partition = (each["result"] for each in told["results"])
    assert (unique["unexpected_count"], len(unique["unexpected_list"])) == (2 * ROWS_KEPT, ROWS_KEPT)
    assert partition["observed_value"] == 2 * ROWS_KEPT
    assert len(partition["details"]["unexpected_rows"]) <= ROWS_KEPT


def test_pages_are_made_anew_from_what_is_kept(docs: DataDocs, tmp_path: Path) -> None:
    page = keep(docs, Tried("gpu_bucket", "c", "x"), tmp_path / "db", BROKEN)
    text = page.read_text()
    page.unlink()
    docs.build()
    assert not page.exists()
    docs.build(anew=True)
    assert FAILS in page.read_text()
    assert page.read_text().count("<tr>") == text.count("<tr>")


def test_a_page_is_found_behind_a_web_server_where_there_is_one(tmp_path: Path) -> None:
    page = tmp_path / "site/validations/gpu_bucket/a%2Fb/x y.html"
    assert DataDocs(tmp_path, 1).link(page) == str(page)
    assert DataDocs(tmp_path, 1, "https://docs.example.org/gates/").link(page) == (
        "https://docs.example.org/gates/validations/gpu_bucket/a%252Fb/x%20y.html"
    )


def test_the_settings_say_where(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GPULEDGER_HOME", str(tmp_path))
    assert DataDocs.of(Settings()) == DataDocs(tmp_path / "data-docs", 30)
    monkeypatch.setenv("GPULEDGER_DATA_DOCS", str(tmp_path / "x"))
    monkeypatch.setenv("GPULEDGER_DATA_DOCS_KEPT", "3")
    monkeypatch.setenv("GPULEDGER_DATA_DOCS_URL", "https://docs.example.org")
    assert DataDocs.of(Settings()) == DataDocs(tmp_path / "x", 3, "https://docs.example.org")
