"""What login nodes and portals show is gathered from the API and written whole."""

import datetime as dt
import json
import stat
from collections.abc import Collection
from pathlib import Path

import pytest
from tests.unit.login import scripted

from gpuledger.kernel.errors import Refused
from gpuledger.login import asking, gathering

NOW = dt.datetime(2026, 12, 8, 9, tzinfo=dt.UTC)
USERS = {"org/a": ("u-1", "u-2", "u-erased", "-"), "org/b": ("u-2",), "org": ("u-3",)}


def NAMES(tokens: Collection[str]) -> dict[str, str]:  # noqa: N802 - a table
    known = {"u-1": "ines", "u-2": "tomas", "u-3": "maya", "u-4": "nobody asks"}
    return {token: known[token] for token in tokens if token in known}


ANSWERS = {
    "/v1/balances": {
        "balances": [
            scripted.balance("org/a"),
            scripted.balance("org/a", period="2026-11", available=1),
            scripted.balance("org/b", cluster="beta", available=7),
            scripted.balance("org/~own", available=2),
        ],
        "as_of": scripted.AS_OF,
    },
    "/v1/usage": lambda request: scripted.usage(
        *(scripted.used(name, 1) for name in USERS[request.url.params["account"]])
    ),
}


def _write(folder: Path, monkeypatch: pytest.MonkeyPatch, members: Path | None = None) -> list[Path]:
    scripted.answer_with(monkeypatch, ANSWERS)
    with asking.open_client() as client:
        return gathering.write_files(client, folder, NAMES, days=90, members=members, now=NOW)


def test_people_are_those_who_used_an_account(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    login, alpha, beta = _write(tmp_path, monkeypatch)
    document = json.loads(login.read_text())
    assert document["people"] == {"ines": ["org/a"], "maya": ["org/~own"], "tomas": ["org/a", "org/b"]}
    assert [row["period"] for row in document["accounts"]["org/a"]] == ["2026-12"]
    assert (alpha.name, beta.name) == ("ondemand-alpha.json", "ondemand-beta.json")
    assert json.loads(beta.read_text())["balances"] == [{"user": "tomas", "project": "org/b", "value": 7.0}]
    assert stat.S_IMODE(login.stat().st_mode) == 0o644
    assert sorted(tmp_path.iterdir()) == sorted([login, alpha, beta])


def test_the_window_is_as_long_as_was_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    seen = scripted.answer_with(monkeypatch, ANSWERS)
    with asking.open_client() as client:
        gathering.write_files(client, tmp_path, NAMES, days=7, members=None, now=NOW)
    assert {r.url.params["from"] for r in seen if r.url.path == "/v1/usage"} == {"2026-12-01T09:00:00Z"}


def test_a_file_of_people_adds_to_them(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    members = tmp_path / "members.csv"
    members.write_text("person,account\nlin,org/b\n\nines,org/b\n")
    login, *_ = _write(tmp_path, monkeypatch, members)
    people = json.loads(login.read_text())["people"]
    assert (people["lin"], people["ines"]) == (["org/b"], ["org/a", "org/b"])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", ":1: the first line"),
        ("name,account\n", ":1: the first line"),
        ("person,account\nlin\n", ":2: 'lin'"),
        ("person,account\na,b\n,org\n", ":3: ',org'"),
    ],
)
def test_a_file_of_people_is_refused_with_its_line(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "members.csv"
    file.write_text(text)
    with pytest.raises(Refused, match=said):
        gathering.read_members(file)


def test_a_folder_that_is_not_there_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(Refused, match=r"login.json: cannot be written: No such file"):
        _write(tmp_path / "gone", monkeypatch)


def test_what_was_there_stays_when_the_new_one_cannot_be_written(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "login.json").write_text("old")
    monkeypatch.setattr(
        gathering.os, "fsync", lambda _: (_ for _ in ()).throw(OSError(28, "No space left on device"))
    )
    with pytest.raises(Refused, match="No space left"):
        _write(tmp_path, monkeypatch)
    assert [path.read_text() for path in tmp_path.iterdir()] == ["old"]
