"""The mail at a job's end: Slurm's own, with the story below, whatever the ledger says."""

import io
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.unit.login import scripted

from gpuledger.api.examples import EXAMPLES
from gpuledger.kernel.errors import Unavailable
from gpuledger.login import asking, job_mail
from gpuledger.login.job_mail import job_of, main

STORY: dict[str, Any] = EXAMPLES["getWorkload"]
SUBJECT = "Slurm Job_id=8851 Name=train Ended, Run time 00:10:00, COMPLETED, ExitCode 0"


@pytest.fixture(autouse=True)
def _no_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("from Slurm\n"))
    monkeypatch.delenv("SLURM_CLUSTER_NAME", raising=False)
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)


@pytest.fixture
def mailer(tmp_path: Path) -> Path:
    """A mail program that writes down how it was called."""
    program = tmp_path / "mail"
    program.write_text(
        f"#!{sys.executable}\nimport json, sys\n"
        f"open({str(tmp_path / 'sent')!r}, 'w').write(json.dumps([sys.argv[1:], sys.stdin.read()]))\nsys.exit(3)\n"
    )
    program.chmod(0o755)
    return program


def _sent(mailer: Path) -> Any:  # noqa: ANN401 - what was written down
    return json.loads((mailer.parent / "sent").read_text())


@pytest.mark.parametrize(
    ("subject", "variables", "job"),
    [
        (SUBJECT, {}, "8851"),
        ("Slurm Job_id=8851_7 (8860) Name=x Began", {"SLURM_JOB_ID": "8860"}, "8851_7"),
        ("Slurm Array Summary Job_id=8851_* (8851) Name=x Ended", {}, "8851"),
        ("nothing", {"SLURM_JOB_ID": "5"}, "5"),
        ("nothing", {"SLURM_JOB_ID": "9", "SLURM_ARRAY_JOB_ID": "5", "SLURM_ARRAY_TASK_ID": "2"}, "5_2"),
        ("nothing", {}, None),
    ],
)
def test_which_job_a_mail_is_about(subject: str, variables: dict[str, str], job: str | None) -> None:
    assert job_of(subject, variables) == job


def test_nothing_is_sent_unless_that_is_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], mailer: Path
) -> None:
    scripted.answer_with(monkeypatch, {"/v1/workloads/8851": {**STORY, "state": "over"}})
    assert main(["-s", SUBJECT, "ines@example.org", "--mailer", str(mailer)]) == 0
    out = capsys.readouterr().out
    assert out.startswith(
        f"would be sent by {mailer} to ines@example.org; --send sends it\nSubject: {SUBJECT}\n"
    )
    assert not (mailer.parent / "sent").exists()


def test_the_story_stands_below_what_slurm_wrote(monkeypatch: pytest.MonkeyPatch, mailer: Path) -> None:
    monkeypatch.setenv("SLURM_CLUSTER_NAME", "philly")
    seen = scripted.answer_with(monkeypatch, {"/v1/workloads/8851": {**STORY, "state": "over"}})
    assert main(["--send", "--mailer", str(mailer), "-s", SUBJECT, "ines"]) == 3  # the mail program's own
    arguments, body = _sent(mailer)
    assert arguments == ["-s", SUBJECT, "ines"]
    assert body == "from Slurm\n\n" + "\n".join(STORY["lines"]) + "\n"
    assert seen[0].url.params["cluster"] == "philly"


def test_the_end_is_waited_for(monkeypatch: pytest.MonkeyPatch, mailer: Path) -> None:
    answers = iter([None, {**STORY, "state": "runs"}, {**STORY, "state": "over", "lines": ["over"]}])
    scripted.answer_with(monkeypatch, {"/v1/workloads/8851": lambda _: next(answers)})
    monkeypatch.setattr(job_mail, "_PAUSE_S", 0.0)
    main(["--send", "--mailer", str(mailer), "-s", SUBJECT, "ines"])
    assert _sent(mailer)[1].endswith("\nover\n")


def test_who_waits_too_long_gets_what_is_known(monkeypatch: pytest.MonkeyPatch, mailer: Path) -> None:
    scripted.answer_with(monkeypatch, {"/v1/workloads/8851": {**STORY, "state": "runs"}})
    main(["--send", "--mailer", str(mailer), "--wait", "0", "-s", SUBJECT, "ines"])
    assert STORY["lines"][0] in _sent(mailer)[1]


def test_the_mail_of_a_start_waits_for_no_end(monkeypatch: pytest.MonkeyPatch, mailer: Path) -> None:
    seen = scripted.answer_with(monkeypatch, {"/v1/workloads/8851": {**STORY, "state": "runs"}})
    main(["--send", "--mailer", str(mailer), "-s", "Slurm Job_id=8851 Name=x Began", "ines"])
    assert len(seen) == 1


def test_a_job_that_the_ledger_does_not_know_is_mailed_all_the_same(
    monkeypatch: pytest.MonkeyPatch, mailer: Path
) -> None:
    scripted.answer_with(monkeypatch, {})
    main(["--send", "--mailer", str(mailer), "--wait", "0", "-s", SUBJECT, "ines"])
    assert "has not heard of job 8851" in _sent(mailer)[1]


def test_a_ledger_that_is_away_holds_no_mail_up(monkeypatch: pytest.MonkeyPatch, mailer: Path) -> None:
    def away() -> Iterator[None]:
        raise Unavailable("nobody there")

    monkeypatch.setattr(asking, "open_client", away)
    main(["--send", "--mailer", str(mailer), "-s", SUBJECT, "ines"])
    assert "could not be asked: gjob 8851" in _sent(mailer)[1]


def test_a_mail_about_no_job_goes_through_as_it_is(mailer: Path) -> None:
    main(["--send", "--mailer", str(mailer), "-s", "hello", "ines"])
    assert _sent(mailer) == [["-s", "hello", "ines"], "from Slurm\n"]


def test_what_could_not_be_sent_is_told(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["--send", "--mailer", str(tmp_path / "none"), "-s", "hello", "ines"]) == 2
    assert "No such file" in capsys.readouterr().err
    assert main(["-s", "hello", "--", "-rroot"]) == 2
    assert "is no address" in capsys.readouterr().err
