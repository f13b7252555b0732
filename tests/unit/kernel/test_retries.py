"""Attempts are bounded, and nothing tells of them but the last failure."""

import pytest
import stamina

from gpuledger.kernel.retries import retry_context


def fail(made: list[str]) -> None:
    for attempt in retry_context(on=OSError, attempts=9):
        with attempt:
            made.append(str(len(made) + 1))
            raise OSError(made[-1])


def test_nothing_is_told_of_an_attempt(capsys: pytest.CaptureFixture[str]) -> None:
    made: list[str] = []
    with stamina.set_testing(True, attempts=3), pytest.raises(OSError, match="3"):
        fail(made)
    assert stamina.instrumentation.get_on_retry_hooks() == ()
    assert made == ["1", "2", "3"]
    assert capsys.readouterr() == ("", "")
