# ruff: noqa: INP001 - infra holds no package; the command beside this file puts the repository on the path
"""Processes and ports: ending a group, tying it to its owner, knowing it again, asking who answers."""

import contextlib
import ctypes
import os
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

STOP_WAIT_S = 20.0

_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


def free_port() -> int:
    """Return a TCP port of 127.0.0.1 that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def answers(port: int) -> bool:
    """Tell whether a Kafka broker answers an ApiVersions request on a port of 127.0.0.1."""
    request = struct.pack(">hhih", 18, 0, 1, -1)
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=2) as connection:
            connection.sendall(struct.pack(">i", len(request)) + request)
            return len(connection.recv(4)) > 0
    except OSError:
        return False


def pid_file(folder: Path) -> Path:
    """Return where a broker in a folder notes its process."""
    return folder / "broker.pid"


def birth_of(pid: int) -> str:
    """Return when a process started, as its system writes it, or nothing when it has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return "" if fields[0] == "Z" else fields[19]
    except FileNotFoundError:
        if sys.platform == "linux":
            return ""
    listed = subprocess.run(
        ["/bin/ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, text=True, check=False
    )
    return "-".join(listed.stdout.split())


def signal_group(pid: int, how: signal.Signals) -> None:
    """Send a signal to a process and to all that it started; does nothing when they have ended."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, how)


def tie_to(owner: int, how: signal.Signals) -> Callable[[], None]:
    """Return what makes the calling process end when its owner does, even by kill -9 (Linux only)."""

    def tie() -> None:
        if _LIBC is not None:
            _LIBC.prctl(_PR_SET_PDEATHSIG, how)
            if os.getppid() != owner:  # it ended before it was asked for
                os.kill(os.getpid(), how)

    return tie


def is_running(folder: Path) -> bool:
    """Tell whether the process that a broker noted in a folder is alive."""
    pid, birth = _noted(folder)
    return pid > 0 and birth_of(pid) == birth


def stop_detached(folder: Path) -> bool:
    """Stop the broker that ``start`` left running in a folder; return whether there was one."""
    running = is_running(folder)
    for how in (signal.SIGTERM, signal.SIGKILL):
        deadline = time.monotonic() + STOP_WAIT_S
        if is_running(folder):
            signal_group(_noted(folder)[0], how)
        while is_running(folder) and time.monotonic() < deadline:
            time.sleep(0.05)
    pid_file(folder).unlink(missing_ok=True)
    return running


def _noted(folder: Path) -> tuple[int, str]:
    """Return the process and when it started: a number alone may belong to somebody else by now."""
    try:
        pid, birth = pid_file(folder).read_text().split()
    except (FileNotFoundError, ValueError):
        return 0, ""
    return int(pid), birth
