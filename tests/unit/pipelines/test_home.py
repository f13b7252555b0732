import os
from pathlib import Path

import pytest
import yaml

from gpuledger_pipelines import home


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(home.VARIABLE, "")  # prepare sets it; the fixture takes it back


def test_a_missing_folder_is_made_with_telemetry_off(tmp_path: Path) -> None:
    folder = home.prepare(tmp_path / "deep" / "dagster")
    config = yaml.safe_load((folder / "dagster.yaml").read_text())
    assert config["telemetry"] == {"enabled": False}
    assert os.environ[home.VARIABLE] == str(folder)


def test_a_configuration_that_is_there_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "dagster.yaml").write_text("telemetry: {enabled: true}\n")
    home.prepare(tmp_path)
    assert (tmp_path / "dagster.yaml").read_text() == "telemetry: {enabled: true}\n"
