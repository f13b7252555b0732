"""``gpuledger demo`` keeps to its own folder and its own server."""

from pathlib import Path

import pytest

from gpuledger import settings
from gpuledger.cli import demo_steps
from gpuledger.cli.demo import demo
from gpuledger.kernel.errors import Refused
from gpuledger.settings import Settings


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    config = Settings(home=tmp_path / "home")
    monkeypatch.setattr(settings, "load", lambda: config)
    return config


def test_it_refuses_a_database_of_somebody(config: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    own = config.model_copy(update={"database_url": "postgresql+psycopg://host/db"})
    monkeypatch.setattr(settings, "load", lambda: own)
    with pytest.raises(Refused, match="GPULEDGER_DATABASE_URL is set") as refused:
        demo()
    assert "env -u GPULEDGER_DATABASE_URL" in refused.value.hint


@pytest.mark.parametrize("options", [{}, {"once": True}, {"kafka": True}])
def test_it_passes_its_options_on(
    config: Settings, monkeypatch: pytest.MonkeyPatch, options: dict[str, bool]
) -> None:
    seen = []
    monkeypatch.setattr(demo_steps, "run", lambda *given, **named: seen.append((given, named)))
    demo(**options)
    assert seen == [((config,), {"once": False, "kafka": False} | options)]


def test_remove_deletes_the_demos_folder(config: Settings, capsys: pytest.CaptureFixture[str]) -> None:
    config.home.mkdir()
    (config.home / demo_steps.MARKER).write_text("[]")
    demo(remove=True)
    assert not config.home.exists()
    assert capsys.readouterr().err == f"removed {config.home}\n"


def test_remove_does_not_touch_a_ledger_of_somebodys_own(config: Settings) -> None:
    config.home.mkdir()
    (config.home / "mine").write_text("precious")
    with pytest.raises(Refused, match="was not made by the demo"):
        demo(remove=True)
    assert (config.home / "mine").read_text() == "precious"


def test_removing_nothing_is_no_error(config: Settings, capsys: pytest.CaptureFixture[str]) -> None:
    demo(remove=True)
    assert "nothing to remove" in capsys.readouterr().err
