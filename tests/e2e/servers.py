"""The API and the pages as processes of their own, on free ports, ended by whoever started them."""

import contextlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx2

API = "import sys; from gpuledger.api.serve import run; run(sys.argv[1], port=int(sys.argv[2]))"
PATIENCE_S = 120
HOST = "127.0.0.1"


def free_port() -> int:
    """Return a port that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port


@contextlib.contextmanager
def api(database_url: str, log: Path) -> Iterator[str]:
    """Serve the API over a database; yield its address."""
    port = free_port()
    command = [sys.executable, "-c", API, database_url, str(port)]
    with _process(command, dict(os.environ), log):
        _wait(f"http://{HOST}:{port}/readyz", log)
        yield f"http://{HOST}:{port}"


@contextlib.contextmanager
def pages(api_url: str, log: Path) -> Iterator[str]:
    """Serve the pages over an API; yield their address."""
    port = free_port()
    command = [sys.executable, "-m", "gpuledger_dashboards.run", "--port", str(port), "--api", api_url]
    with _process(command, dict(os.environ), log):
        _wait(f"http://{HOST}:{port}/_stcore/health", log)
        yield f"http://{HOST}:{port}"


@contextlib.contextmanager
def _process(command: list[str], environment: dict[str, str], log: Path) -> Iterator[None]:
    with (
        log.open("wb") as output,
        subprocess.Popen(command, env=environment, stdout=output, stderr=subprocess.STDOUT) as process,
    ):
        try:
            yield
        finally:
            process.terminate()
            try:
                process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                process.kill()


def _wait(url: str, log: Path) -> None:
    give_up_at = time.monotonic() + PATIENCE_S
    while time.monotonic() < give_up_at:
        with contextlib.suppress(httpx2.TransportError):
            if httpx2.get(url, trust_env=False).is_success:
                return
        time.sleep(0.2)
    raise AssertionError(f"{url} does not answer; its log says:\n{log.read_text(errors='replace')[-4000:]}")
