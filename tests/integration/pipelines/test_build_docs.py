"""The command that makes all pages anew: what it prints, and how it exits."""

from pathlib import Path

import pytest
from tests.integration.pipelines.docs import keep

from gpuledger import settings
from gpuledger_pipelines.build_docs import main
from gpuledger_pipelines.data_docs.folder import DataDocs, Tried


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GPULEDGER_DATA_DOCS", str(tmp_path / "docs"))
    settings.load.cache_clear()
    return tmp_path / "docs"


@pytest.fixture(autouse=True)
def _settings_anew() -> None:
    settings.load.cache_clear()


def test_it_prints_where_the_pages_are(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = keep(DataDocs(folder, 5), Tried("gpu_bucket", "c", "x"), tmp_path / "db", [("c/a", 1)])
    page.unlink()
    assert main([]) == 0
    assert capsys.readouterr().out == f"{folder / 'site/index.html'}\n"
    assert page.exists()


def test_nothing_kept_is_told(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 3
    assert str(folder) in capsys.readouterr().err


def test_a_folder_that_cannot_be_written_is_told(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    keep(DataDocs(folder, 5), Tried("gpu_bucket", "c", "x"), tmp_path / "db", [("c/a", 1)])
    (folder / ".lock").unlink()
    (folder / ".lock").mkdir()
    assert main([]) == 1
    assert "GPULEDGER_DATA_DOCS" in capsys.readouterr().err


def test_settings_that_are_not_valid_are_bad_usage(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GPULEDGER_DATA_DOCS_KEPT", "0")
    assert main([]) == 2
    assert "GPULEDGER_DATA_DOCS_KEPT" in capsys.readouterr().err
    assert not folder.exists()
