"""The real ``gpuledger`` command, run as people run it: a process of its own."""

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PROGRAM = Path(sys.executable).with_name("gpuledger")
PATIENCE_S = 300


@dataclass(frozen=True, slots=True)
class Ran:
    """What a command left behind."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:  # noqa: ANN401 - any JSON document
        """The one document on stdout; anything beside it fails."""
        return json.loads(self.out)

    @property
    def problem(self) -> dict[str, Any]:
        """The JSON error, which is the last line on stderr."""
        document: dict[str, Any] = json.loads(self.err.splitlines()[-1])
        return document


def environment(settings: Mapping[str, str]) -> dict[str, str]:
    """Return this process's environment without its GPULEDGER_ settings, and with the given ones."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GPULEDGER_")}
    return {**kept, **settings}


def start(*arguments: object, settings: Mapping[str, str]) -> "subprocess.Popen[str]":
    """Start a command in a session of its own, so that a signal reaches nobody else."""
    return subprocess.Popen(
        [PROGRAM, *map(str, arguments)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(settings),
        start_new_session=True,
        preexec_fn=heed_interrupts,  # noqa: PLW1509 - it sets a signal's disposition, nothing else
    )


def heed_interrupts() -> None:
    """Undo what a shell does to commands in the background, tests among them: they ignore Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def finish(process: "subprocess.Popen[str]", *, within_s: float = PATIENCE_S) -> Ran:
    """Wait for a command and return what it printed; one that does not end in time is killed and fails."""
    try:
        out, err = process.communicate(timeout=within_s)
    except subprocess.TimeoutExpired:
        kill(process)
        raise
    return Ran(process.returncode, out, err)


class Quick:
    """Runs commands, one after the other, in forks of a process that has imported everything already."""

    def __init__(self) -> None:
        self._parent: subprocess.Popen[str] | None = None

    def __call__(self, *arguments: object, settings: Mapping[str, str]) -> Ran:
        """Run a command to its end."""
        parent = self._started()
        assert parent.stdin is not None
        assert parent.stdout is not None
        with tempfile.TemporaryDirectory() as folder:
            out, err = Path(folder, "out"), Path(folder, "err")
            request = {
                "arguments": [str(argument) for argument in arguments],
                "environment": environment(settings),
                "out": str(out),
                "err": str(err),
            }
            print(json.dumps(request), file=parent.stdin, flush=True)
            status = int(parent.stdout.readline())
            return Ran(status, out.read_text(), err.read_text())

    def _started(self) -> "subprocess.Popen[str]":
        if self._parent is None:
            self._parent = subprocess.Popen(
                [sys.executable, Path(__file__).with_name("zygote.py")],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                env=environment({}),
                start_new_session=True,
            )
        return self._parent


quick = Quick()
"""For what is about the ledger rather than about the process."""


def gpuledger(*arguments: object, settings: Mapping[str, str], within_s: float = PATIENCE_S) -> Ran:
    """Run a command to its end, in a process of its own."""
    return finish(start(*arguments, settings=settings), within_s=within_s)


def kill(process: "subprocess.Popen[str]") -> Ran:
    """Kill a command without warning; return how it ended, which may have been before."""
    if process.poll() is None:
        process.send_signal(signal.SIGKILL)
    out, err = process.communicate()
    return Ran(process.returncode, out, err)
