# noqa: INP001 - a script beside .ci/run, not a package
"""Run a command for at most some seconds, then end every process that descends from it.

Usage: contain.py SECONDS COMMAND [ARGUMENT ...]

Daemons leave their process group, so a group cannot hold them. This process declares itself the reaper
of its orphans instead (Linux): whatever the command leaves behind becomes a child of this one.
"""

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

PR_SET_CHILD_SUBREAPER = 36
GRACE_S = 10
TIMED_OUT = 124


def main(arguments: list[str]) -> int:
    """Run the command and return its exit status, or 124 when its time was up."""
    limit_s, command = int(arguments[0]), arguments[1:]
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _stop)
    try:
        status = _wait(subprocess.Popen(command).pid, time.monotonic() + limit_s)
        if status is None:
            sys.stderr.write(f"{' '.join(command)}: stopped after {limit_s} s\n")
        return TIMED_OUT if status is None else status
    finally:
        end_descendants()


def _wait(command: int, deadline: float) -> int | None:
    """Return the exit status of the command, or None at the deadline.

    Orphans that end meanwhile are reaped, as the first process of a machine does: a daemon that was
    killed must not look alive to those who ask for it.
    """
    while time.monotonic() < deadline:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == command:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code
        if not pid:
            time.sleep(0.2)
    return None


def end_descendants() -> None:
    """Ask every descendant to stop, and kill those that have not after the grace period."""
    for number, wait_s in ((signal.SIGTERM, GRACE_S), (signal.SIGKILL, GRACE_S)):
        for pid in descendants():
            _send(pid, number)
        deadline = time.monotonic() + wait_s
        while descendants() and time.monotonic() < deadline:
            time.sleep(0.1)


def descendants() -> list[int]:
    """Return the living descendants of this process, and reap its dead children."""
    _reap()
    parents = dict(filter(None, map(_parent_of, Path("/proc").glob("[0-9]*/stat"))))
    found: list[int] = []
    generation = {os.getpid()}
    while generation:
        generation = {pid for pid, parent in parents.items() if parent in generation}
        found.extend(generation)
    return found


def _parent_of(stat: Path) -> tuple[int, int] | None:
    try:
        state, parent, *_ = stat.read_text().rpartition(")")[2].split()
    except OSError:
        return None  # it ended between the listing and the reading
    return None if state == "Z" else (int(stat.parent.name), int(parent))


def _reap() -> None:
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _send(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def _stop(number: int, _frame: object) -> None:
    sys.exit(128 + number)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
