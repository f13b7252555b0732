"""Signals end a command, at whatever moment they come."""

import signal
import subprocess
import sys

import pytest

from gpuledger.cli.ending import asked_to_end

WITHIN_S = 10

SCRIPT = """
import signal, time
from gpuledger.cli.ending import heed_signals

class Dying:
    def __del__(self):
        {within}
        for _ in range(1000):
            pass

heed_signals()
Dying()
print("went on", flush=True)
{then}
"""


def _run(within: str, then: str = "time.sleep(60)") -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-c", SCRIPT.format(within=within, then=then)],
        capture_output=True,
        text=True,
        timeout=WITHIN_S,
        check=False,
    )


def test_a_signal_that_comes_within_a_finaliser_ends_the_command_all_the_same() -> None:
    ended = _run("signal.raise_signal(signal.SIGTERM)")

    assert (ended.returncode, ended.stdout, ended.stderr) == (143, "went on\n", "")


def test_so_does_ctrl_c() -> None:
    ended = _run("signal.raise_signal(signal.SIGINT)")

    assert ended.returncode == -signal.SIGINT
    assert "KeyboardInterrupt" in ended.stderr


def test_one_that_is_swallowed_again_and_again_is_asked_for_until_it_is_heard() -> None:
    ended = _run("signal.raise_signal(signal.SIGTERM)", then="for _ in range(5): Dying()\ntime.sleep(60)")

    assert ended.returncode == 143


def test_an_error_in_a_finaliser_is_printed() -> None:
    ended = _run("raise ValueError('lost')", then="")

    assert ended.returncode == 0
    assert "ValueError: lost" in ended.stderr


@pytest.mark.parametrize(
    ("asked", "status"), [(KeyboardInterrupt(), 130), (SystemExit(143), 143), (ValueError(), None)]
)
def test_an_error_that_takes_the_place_of_a_signal_is_that_signal(
    asked: BaseException, status: int | None
) -> None:
    """As psycopg raises it when the server is gone before the query could be cancelled."""
    lost, told = ConnectionError("lost"), OSError("try again")
    lost.__context__, told.__cause__ = asked, lost

    assert asked_to_end(told) == status
