"""``gbalance`` at the terminal, and at login."""

import json
import os
import pwd
import subprocess
import sys
from pathlib import Path

import pytest
from tests.unit.login import scripted

from gpuledger.login import kept
from gpuledger.login.gbalance import main

ANSWERS = {
    "/v1/balances": {
        "balances": [
            scripted.balance("org/a", held=5, available=55),
            scripted.balance("org/a", period="2026-11"),
            scripted.balance("org/b", available=-3),
        ],
        "as_of": scripted.AS_OF,
    }
}


def test_people_see_gpu_hours_of_the_newest_period(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    scripted.answer_with(monkeypatch, ANSWERS)
    assert main(["-A", "org/a"]) == 0
    header, _, row = capsys.readouterr().out.splitlines()
    assert header.split() == ["Account", "Period", "Given", "Charged", "Held", "Available", "Binding"]
    assert row.split() == ["org/a", "2026-12", "100.0", "40.0", "5.0", "55.0", "org/a"]


def test_balances_of_several_clusters_are_told_apart(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    both = [scripted.balance("org/a"), scripted.balance("org/a", cluster="beta")]
    scripted.answer_with(monkeypatch, {"/v1/balances": {"balances": both, "as_of": scripted.AS_OF}})
    assert main(["-nP"]) == 0
    rows = [line.split("|")[:2] for line in capsys.readouterr().out.splitlines()]
    assert rows == [["org/a", "alpha"], ["org/a", "beta"]]


def test_json_is_exact(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    scripted.answer_with(monkeypatch, ANSWERS)
    assert main(["--json", "-A", "org/b"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["balances"][0]["available_gpu_ms"] == -3 * scripted.HOUR
    assert document["as_of"] == scripted.AS_OF


def test_what_is_refused_is_told_with_its_status(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    scripted.answer_with(monkeypatch, {})
    assert main([]) == 4
    assert capsys.readouterr() == ("", "gbalance: no /v1/balances\n  hint: look elsewhere\n")
    assert main(["--json"]) == 4
    assert json.loads(capsys.readouterr().err)["exit"] == 4


def _kept(folder: Path) -> Path:
    me = pwd.getpwuid(os.getuid()).pw_name
    row = {
        "cluster": "alpha",
        "period": "2026-12",
        "given_gpu_ms": 7_200_000,
        "held_gpu_ms": 0,
        "available_gpu_ms": 0,
    }
    file = folder / "login.json"
    at = scripted.AS_OF.replace("Z", "+00:00")
    document = {
        "version": kept.VERSION,
        "written_at": at,
        "people": {me: ["org/a"]},
        "accounts": {"org/a": [row]},
    }
    file.write_text(json.dumps(document))
    return file


def test_a_login_shows_a_line_and_asks_nobody(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv(kept.FILE, str(_kept(tmp_path)))
    monkeypatch.setenv("GPULEDGER_API_URL", "http://nobody.invalid")
    assert main(["--login"]) == 0
    assert capsys.readouterr().out.startswith("org/a: 0.0 of 2.0 GPU-hours left on alpha in 2026-12\n")


@pytest.mark.parametrize(
    "content", [None, "", "{", '{"version": 2}', '{"version": 1}', "[]", '{"version": 1, "people": 3}']
)
def test_a_login_never_fails_and_never_complains(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path, content: str | None
) -> None:
    file = tmp_path / "login.json"
    if content is not None:
        file.write_text(content)
    monkeypatch.setenv(kept.FILE, str(file))
    assert main(["--login"]) == 0
    assert capfd.readouterr() == ("", "")


def test_a_login_waits_for_little_more_than_python(tmp_path: Path) -> None:
    environment = {**os.environ, kept.FILE: str(_kept(tmp_path))}
    program = "import sys; from gpuledger.login.gbalance import main; sys.exit(main(['--login']))"

    def once(code: str) -> float:
        before = os.times()
        subprocess.run([sys.executable, "-c", code], env=environment, check=True, capture_output=True)
        after = os.times()
        return (after.children_user - before.children_user) + (after.children_system - before.children_system)

    # Processor time of both in turns: what others do on this machine must not decide.
    pairs = [(once("import json, datetime, pathlib"), once(program)) for _ in range(5)]
    assert min(line for _, line in pairs) <= 3 * min(bare for bare, _ in pairs) + 0.02
