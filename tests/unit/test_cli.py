"""The entry point: whatever a command raises becomes a message and an exit status."""

import json
import sys
from collections.abc import Callable

import pytest
import typer
from sqlalchemy.exc import ProgrammingError

from gpuledger import cli
from gpuledger.cli import app as tree
from gpuledger.cli.options import Json
from gpuledger.kernel.errors import Refused, Unavailable

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a command of the test's own through the real entry point."""

    def once(command: Callable[..., None], *arguments: str) -> tuple[int, str, str]:
        own = typer.Typer(pretty_exceptions_enable=False)
        own.command("first")(command)
        own.command("second")(lambda: None)
        monkeypatch.setattr(tree, "app", own)
        monkeypatch.setattr(sys, "argv", ["gpuledger", "first", *arguments])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        captured = capsys.readouterr()
        code = ended.value.code
        return (code if isinstance(code, int) else 0), captured.out, captured.err

    return once


def test_a_command_that_returns_is_done(run: Run) -> None:
    assert run(lambda: print("data")) == (0, "data\n", "")


def test_an_error_has_its_message_and_hint(run: Run) -> None:
    def fails() -> None:
        raise Refused("that is wrong", hint="do this")

    assert run(fails) == (2, "", "gpuledger: that is wrong\n  hint: do this\n")


def test_an_error_is_json_when_json_was_asked_for(run: Run) -> None:
    def fails(as_json: Json = False) -> None:  # noqa: FBT002
        raise Unavailable("not now", hint="later")

    status, out, err = run(fails, "--json")
    assert (status, out) == (75, "")
    assert json.loads(err) == {"error": "not now", "hint": "later", "exit": 75}


def test_a_status_that_a_command_sets_is_kept(run: Run) -> None:
    def finds_problems() -> None:
        raise typer.Exit(3)

    assert run(finds_problems) == (3, "", "")


@pytest.mark.parametrize(("asked", "status"), [(SystemExit(143), 143), (KeyboardInterrupt(), 130)])
def test_a_complaint_of_a_driver_that_was_interrupted_hides_nothing(
    run: Run, asked: BaseException, status: int
) -> None:
    def interrupted() -> None:
        try:
            raise asked
        finally:
            raise ProgrammingError("COMMIT", {}, Exception("connection in transaction status ACTIVE"))

    assert run(interrupted)[0] == status


def test_a_fault_of_a_driver_that_nobody_interrupted_is_one(run: Run) -> None:
    def fails() -> None:
        raise ProgrammingError("COMMIT", {}, Exception("no such table"))

    with pytest.raises(ProgrammingError, match="no such table"):
        run(fails)


def test_an_interrupt_is_130(run: Run) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    assert run(interrupted)[0] == 130


def test_wrong_usage_is_told_with_the_usage(run: Run) -> None:
    status, out, err = run(lambda: None, "--nosuch")
    assert (status, out) == (2, "")
    assert "Usage: " in err
    assert "No such option: --nosuch" in err


def test_wrong_usage_is_json_when_json_was_asked_for(run: Run) -> None:
    status, out, err = run(lambda: None, "--json")
    assert (status, out) == (2, "")
    assert json.loads(err)["error"] == "No such option: --json"


def test_an_abandoned_question_is_a_failure(run: Run) -> None:
    def asks() -> None:
        raise typer.Abort

    assert run(asks)[0] == 1
