"""The servers that ``serve`` and ``demo`` start: each on a free port, none outlives its parent."""

import contextlib
import ctypes
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from gpuledger.kernel.errors import Unavailable

HOST = "127.0.0.1"
STOP_S = 10.0
_PR_SET_PDEATHSIG = 1


def free_port(wanted: int) -> int:
    """Return the wanted port, or the next free one above it.

    Raises:
        Unavailable: When a hundred ports in a row are busy.
    """
    for port in range(wanted, wanted + 100):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((HOST, port))
            except OSError:
                continue
            return port
    raise Unavailable(f"ports {wanted} to {wanted + 99} of {HOST} are all busy")


class Children:
    """Child processes that are stopped, with all they started, when the block ends."""

    def __init__(self, logs: Path) -> None:
        self.logs = logs
        logs.mkdir(parents=True, exist_ok=True)
        self._running: list[tuple[str, subprocess.Popen[bytes]]] = []

    def start(self, name: str, command: Sequence[str], env: dict[str, str], cwd: Path | None = None) -> None:
        """Start a server; what it prints goes to ``NAME.log`` in the logs folder."""
        with (self.logs / f"{name}.log").open("ab") as log:
            process = subprocess.Popen(
                command, env={**os.environ, **env}, cwd=cwd, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True, preexec_fn=_die_with_parent,  # noqa: PLW1509 - no threads at this point
            )  # fmt: skip
        self._running.append((name, process))

    def wait_for(self, name: str, url: str, timeout_s: float) -> None:
        """Wait until a server answers.

        Raises:
            Unavailable: When it ends or does not answer in time; names its log.
        """
        import ssl
        import urllib.request

        # Whether it answers is asked of our own process at an address of this machine, which no certificate names.
        anybody = ssl.create_default_context()
        anybody.check_hostname, anybody.verify_mode = False, ssl.CERT_NONE
        process = dict(self._running)[name]
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            if process.poll() is not None:
                break
            try:
                with urllib.request.urlopen(url, timeout=2, context=anybody):  # noqa: S310 - our own address
                    return
            except OSError:
                time.sleep(0.2)
        raise Unavailable(f"{name} does not answer at {url}", hint=f"read {self.logs / (name + '.log')}")

    def first_ended(self) -> str | None:
        """Return the name of a server that ended by itself, or None."""
        return next((name for name, process in self._running if process.poll() is not None), None)

    def __enter__(self) -> Self:
        """Return the group."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop every server: ask first, then insist."""
        for _, process in self._running:
            _signal(process, signal.SIGTERM)
        deadline = time.monotonic() + STOP_S
        for _, process in self._running:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(max(0.1, deadline - time.monotonic()))
            _signal(process, signal.SIGKILL)
            process.wait()


def _signal(process: "subprocess.Popen[bytes]", number: signal.Signals) -> None:
    try:
        os.killpg(process.pid, number)
    except ProcessLookupError:
        return


def _die_with_parent() -> None:
    """Ask the kernel to end this process with its parent, were that killed (Linux only)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
