"""The demo remembers what it has done, and touches no folder that is not its own."""

import json
from pathlib import Path

import pytest

from gpuledger.cli import demo_steps
from gpuledger.kernel.errors import Refused
from gpuledger.settings import Settings


def test_nothing_is_done_before_the_marker_is_written(tmp_path: Path) -> None:
    assert demo_steps._done(tmp_path / demo_steps.MARKER) == set()


def test_the_marker_says_which_ways_were_filled(tmp_path: Path) -> None:
    marker = tmp_path / demo_steps.MARKER
    marker.write_text(json.dumps(["files"]))
    assert demo_steps._done(marker) == {"files"}


def test_removing_a_folder_without_the_marker_is_refused_and_keeps_it(tmp_path: Path) -> None:
    (tmp_path / "postgres").mkdir()
    with pytest.raises(Refused, match="not made by the demo"):
        demo_steps.remove(Settings(home=tmp_path))
    assert (tmp_path / "postgres").is_dir()


def test_removing_the_demo_leaves_nothing(tmp_path: Path) -> None:
    home = tmp_path / "demo"
    (home / "logs").mkdir(parents=True)
    (home / demo_steps.MARKER).write_text("[]")
    demo_steps.remove(Settings(home=home))
    assert not home.exists()


def test_a_step_prints_its_name_and_time_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    with demo_steps.step("budgets"):
        pass
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("budgets ")
    assert captured.err.rstrip().endswith(" s")


def test_every_bundled_trace_exists() -> None:
    assert all(path.exists() for _, path in demo_steps.TRACES)
