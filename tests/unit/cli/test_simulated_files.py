"""Files that simulations leave."""

import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from tests.commands import simulated
from tests.commands.running import quick

from gpuledger.cli.simulated_files import parquet_writer, see_to_place
from gpuledger.kernel.errors import Refused


def test_a_page_with_every_world(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    ran = quick("simulate", simulated.scenario(tmp_path), "--report", page, "--json", settings={})
    assert ran.status == 0
    assert f"{page}: written" in ran.err
    text = page.read_text()
    assert text.startswith("<!doctype html>")
    assert all(f"</svg> {world['world']}</li>" in text for world in ran.json["simulations"])


def test_every_figure_in_a_table_that_other_tools_read(tmp_path: Path) -> None:
    path = tmp_path / "figures.parquet"
    arguments = ("--world", "fifo", "--parquet", path, "--json")
    ran = quick("simulate", simulated.scenario(tmp_path), *arguments, settings={})
    rows = pq.read_table(path).to_pylist()
    of = {row["measure"]: row["value"] for row in rows}
    assert {(row["scenario"], row["world"], row["seed"], row["days"]) for row in rows} == {
        ("small", "fifo", 5, 1)
    }
    assert of["wait_s.large.p50"] == ran.json["wait_s"]["large"]["p50"]
    assert of["occupancy"] == ran.json["occupancy"]
    assert of["wait_s.largest.p50"] is None


@pytest.mark.parametrize("option", ["--report", "--parquet", "--events"])
def test_a_place_that_cannot_be_written_is_refused_before_anything_is_simulated(
    tmp_path: Path, option: str
) -> None:
    arguments = ("--world", "fifo", option, tmp_path / "nowhere" / "file", "--json")
    ran = quick("simulate", simulated.scenario(tmp_path), *arguments, settings={})
    assert ran.status == 2
    assert option in ran.problem["error"]
    assert "simulate small" not in ran.err


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="it is a folder"):
        see_to_place("--report", tmp_path)


def test_without_pyarrow_it_says_which_extra_brings_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(Refused) as refused:
        parquet_writer(tmp_path / "file")
    assert "gpuledger[dashboards]" in refused.value.hint
