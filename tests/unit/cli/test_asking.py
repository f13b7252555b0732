"""A person is asked on a terminal only; somebody without a name is still somebody."""

import getpass
import sys

import pytest
import typer

from gpuledger.cli.asking import agreed, who


def terminal(monkeypatch: pytest.MonkeyPatch, *, answer: bool) -> list[str]:
    asked: list[str] = []

    def confirm(text: str, **_: object) -> bool:
        asked.append(text)
        return answer

    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(typer, "confirm", confirm)
    return asked


@pytest.mark.parametrize("answer", [True, False])
@pytest.mark.parametrize(("changes", "question"), [(1, "apply 1 change?"), (3, "apply 3 changes?")])
def test_on_a_terminal_the_answer_counts(
    monkeypatch: pytest.MonkeyPatch, *, answer: bool, changes: int, question: str
) -> None:
    asked = terminal(monkeypatch, answer=answer)
    assert agreed(changes, yes=False) is answer
    assert asked == [question]


def test_nobody_is_asked_about_nothing_or_after_a_yes(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = terminal(monkeypatch, answer=False)
    assert agreed(0, yes=False)
    assert agreed(5, yes=True)
    assert asked == []


def test_without_a_terminal_nobody_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stdin, "isatty", lambda: False, raising=False)
    assert agreed(5, yes=False)


@pytest.mark.parametrize("error", [KeyError, OSError])
def test_a_container_user_without_a_name_is_unknown(
    monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    def nobody() -> str:
        raise error

    monkeypatch.setattr(getpass, "getuser", nobody)
    assert who() == "unknown"
