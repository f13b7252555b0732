"""The pages are served to this machine only, and send nothing home."""

import os
import tomllib
from pathlib import Path

import pytest

from gpuledger_dashboards import run


def test_flags_bind_to_the_loopback_and_send_nothing_home() -> None:
    command = run.command(8600)
    assert command[1:4] == ["-m", "streamlit", "run"]
    for flag in (
        "--server.address=127.0.0.1",
        "--server.port=8600",
        "--server.headless=true",
        "--browser.gatherUsageStats=false",
        "--client.toolbarMode=minimal",
    ):
        assert flag in command


def test_it_becomes_streamlit_with_the_address_of_the_api(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[str, list[str], dict[str, str]]] = []
    monkeypatch.setattr(os, "execve", lambda *call: seen.append(call))
    run.main(["--port", "8600", "--api", "http://127.0.0.1:9"])
    run.main(["--host", "0.0.0.0"])
    (program, argv, environment), (_, elsewhere, _) = seen
    assert "--server.address=0.0.0.0" in elsewhere
    assert program == argv[0]
    assert environment["GPULEDGER_API_URL"] == "http://127.0.0.1:9"


def test_both_themes_are_shipped_beside_the_router() -> None:
    config = tomllib.loads((Path(run.APP).parent / ".streamlit" / "config.toml").read_text())
    assert {"light", "dark"} <= config["theme"].keys()
    assert config["browser"]["gatherUsageStats"] is False
