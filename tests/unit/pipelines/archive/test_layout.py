"""Where files lie: Hive's layout, for names of every kind."""

import datetime as dt
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuledger.kernel.errors import Refused
from gpuledger_pipelines.archive import layout
from gpuledger_pipelines.archive.layout import Place

DAY = dt.date(2026, 11, 30)


def test_a_partition_has_dataset_version_cluster_and_day() -> None:
    folder = Place("usage", "alex", DAY).folder(Path("archive"))
    assert folder == Path("archive/usage/v1/cluster=alex/day=2026-11-30")


@given(st.text(min_size=1))
def test_every_name_comes_back_and_stays_one_folder(name: str) -> None:
    written = layout.escaped(name)
    assert layout.unescaped(written) == name
    assert Path(written).name == written or name in (".", "..")
    assert not set(written) & set("*?[]{}/=")


def test_what_is_no_partition_is_passed_over(tmp_path: Path) -> None:
    places = [Place("usage", "a=b", DAY), Place("telemetry", "a=b", DAY), Place("usage", "c", DAY)]
    for place in places:
        place.folder(tmp_path).mkdir(parents=True)
    (tmp_path / "usage/v1/cluster=c/day=yesterday").mkdir()
    (tmp_path / "usage/v1/scratch").mkdir()
    (tmp_path / "usage/v2/cluster=later/day=2026-11-30").mkdir(parents=True)
    assert list(layout.places(tmp_path)) == [places[0], places[2], places[1]]
    assert list(layout.places(tmp_path, "c")) == [places[2]]
    assert layout.clusters(tmp_path) == ["a=b", "c"]


@pytest.mark.parametrize("name", ["a*", "a?", "a[1]", "{a}"])
def test_a_folder_that_engines_take_for_a_pattern_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(Refused, match="as patterns"):
        layout.checked_root(tmp_path / name)


def test_a_folder_is_made_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert layout.checked_root(Path("archive")) == tmp_path / "archive"
