"""The UI starts in a prepared home, on this machine only, and sends nothing home."""

import os
from pathlib import Path

import pytest

from gpuledger_pipelines import ui


def test_the_ui_listens_on_this_machine_only() -> None:
    command = ui.command(3001)
    assert command[command.index("-h") + 1] == "127.0.0.1"
    assert command[command.index("-p") + 1] == "3001"


def test_a_home_without_settings_gets_them_before_dagster_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[list[str]] = []
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path / "dagster"))
    monkeypatch.setattr(os, "execv", lambda _, program: started.append(program))
    ui.main(["--port", "3002"])
    assert started == [ui.command(3002)]
    assert "enabled: false" in (tmp_path / "dagster" / "dagster.yaml").read_text()
