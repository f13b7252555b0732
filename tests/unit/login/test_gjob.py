"""``gjob`` at the terminal."""

import json

import pytest
from tests.unit.login import scripted

from gpuledger.api.examples import EXAMPLES
from gpuledger.login.gjob import main

STORY = EXAMPLES["getWorkload"]


def test_the_story_is_told_as_the_ledger_tells_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    seen = scripted.answer_with(monkeypatch, {"/v1/workloads/8851": STORY})
    assert main(["8851", "-M", "philly", "--what-if"]) == 0
    assert capsys.readouterr().out == "\n".join(STORY["lines"]) + "\n"
    assert dict(seen[0].url.params) == {"cluster": "philly", "what_if": "true"}


def test_several_jobs_are_told_one_after_the_other(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    scripted.answer_with(monkeypatch, {"/v1/workloads/1": STORY, "/v1/workloads/2": STORY})
    assert main(["1", "2"]) == 0
    once = "\n".join(STORY["lines"])
    assert capsys.readouterr().out == f"{once}\n\n{once}\n"


def test_json_has_the_answers(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    scripted.answer_with(monkeypatch, {"/v1/workloads/8851": STORY})
    assert main(["8851", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["jobs"][0]["workload"] == "8851"


def test_a_job_that_nobody_knows(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    scripted.answer_with(monkeypatch, {})
    assert main(["7"]) == 4
    assert capsys.readouterr().err.startswith("gjob: no /v1/workloads/7")
