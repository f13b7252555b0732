"""Roll-ups run as a process of their own, with the settings that keep them quiet and at home."""

import json
from pathlib import Path

import pytest

from gpuledger.cli import running
from gpuledger.cli.running import pipeline_env, place_of, run_rollup, show_rollup
from gpuledger.demo import people
from gpuledger.settings import Settings

URL = "postgresql+psycopg://somebody@somewhere/ledger"


@pytest.fixture
def config(tmp_path: Path) -> Settings:
    return Settings(home=tmp_path / "home")


def test_the_pipelines_live_in_the_data_folder_and_phone_nobody(config: Settings) -> None:
    env = pipeline_env(config, URL)
    assert env["GPULEDGER_DATABASE_URL"] == URL
    assert Path(env["DAGSTER_HOME"]) == config.home / "dagster"
    assert (config.home / "dagster").is_dir()
    assert env["DAGSTER_DISABLE_TELEMETRY"] == "1"
    assert env["GX_ANALYTICS_ENABLED"] == "false"


@pytest.mark.parametrize(
    ("bound", "place"),
    [
        ("127.0.0.1", "http://127.0.0.1:8080"),
        ("0.0.0.0", "http://127.0.0.1:8080"),
        ("10.1.2.3", "http://10.1.2.3:8080"),
        ("::", "http://[::1]:8080"),
        ("fd00::7", "http://[fd00::7]:8080"),
    ],
)
def test_where_a_server_is_reached_that_is_bound_to_an_address(bound: str, place: str) -> None:
    assert place_of(bound, 8080) == place


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stands in for Python, so that what is run can be seen and answered."""
    program = tmp_path / "python"
    monkeypatch.setattr(running.sys, "executable", str(program))
    return program


def answer(program: Path, script: str) -> None:
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)


def test_a_roll_up_gets_its_arguments_and_answers_with_its_summary(config: Settings, program: Path) -> None:
    answer(program, """printf '{"arguments": "%s", "url": "%s"}' "$*" "$GPULEDGER_DATABASE_URL" """)
    status, summary = run_rollup(config, URL, ["--cluster", "alex"])
    assert status == 0
    assert summary == {"arguments": "-m gpuledger_pipelines.rollup --json --cluster alex", "url": URL}


@pytest.mark.parametrize(("script", "status"), [("exit 3", 3), ("echo no json; exit 1", 1)])
def test_a_roll_up_that_fails_keeps_its_status(
    config: Settings, program: Path, script: str, status: int
) -> None:
    answer(program, script)
    assert run_rollup(config, URL, []) == (status, None)


def test_a_summary_is_a_line_per_cluster(capsys: pytest.CaptureFixture[str]) -> None:
    cluster = {
        "cluster": "alex",
        "from": "2023-02-07",
        "to": "2023-02-11",
        "rows": {"usage_hour": 1200, "usage_day": 34},
        "checks_passed": 8,
        "checks_failed": 1,
    }
    show_rollup(json.loads(json.dumps({"clusters": [cluster]})))
    assert capsys.readouterr().out == "alex: 2023-02-07 to 2023-02-11, 1,234 rows, 8 gates passed, 1 failed\n"


def test_who_one_can_look_as_is_told_in_the_demos_folder_alone(config: Settings) -> None:
    assert running.people_lines(config, running.DASHBOARDS) == []
    config.home.mkdir()
    people.keep(config.home / people.FILE, people.people([]))
    lines = running.people_lines(config, "http://127.0.0.1:9/")
    assert "    http://127.0.0.1:9/?as=maya&cluster=institute" in lines
    assert sum(line.startswith("    http") for line in lines) == 4
