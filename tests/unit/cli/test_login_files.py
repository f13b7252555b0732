"""``gpuledger login-files`` writes what it gathered, and says where."""

import json
from pathlib import Path

import pytest
from tests.unit.login import scripted

from gpuledger import settings
from gpuledger.cli.login_files import login_files
from gpuledger.kernel.errors import NotFound

ANSWERS = {
    "/v1/balances": {"balances": [scripted.balance("org/a")], "as_of": scripted.AS_OF},
    "/v1/usage": scripted.usage(scripted.used("ines", 1)),
}


def _use(monkeypatch: pytest.MonkeyPatch, database_url: str) -> None:
    monkeypatch.setenv("GPULEDGER_DATABASE_URL", database_url)
    settings.load.cache_clear()


def test_the_files_are_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, database_url: str
) -> None:
    _use(monkeypatch, database_url)
    scripted.answer_with(monkeypatch, ANSWERS)
    login_files(tmp_path)
    assert capsys.readouterr().out == f"{tmp_path / 'login.json'}\n{tmp_path / 'ondemand-alpha.json'}\n"
    login_files(tmp_path, as_json=True)
    files = json.loads(capsys.readouterr().out)["files"]
    assert [Path(file).exists() for file in files] == [True, True]


def test_what_the_ledger_refuses_writes_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, database_url: str
) -> None:
    _use(monkeypatch, database_url)
    scripted.answer_with(monkeypatch, {})
    with pytest.raises(NotFound):
        login_files(tmp_path)
    assert not list(tmp_path.iterdir())
