"""The API with its bare endpoint as a process of its own."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
from tests.e2e.servers import free_port


@contextmanager
def serving(url: str, log: Path, **settings: str) -> Iterator[int]:
    """Run the server in a process of its own; yield its port."""
    port = free_port()
    environment = os.environ | {"GPULEDGER_API_RATE": "0", **settings}
    command = [sys.executable, "-m", "tests.bench.bare_server", url, str(port)]
    with (
        log.open("wb") as output,
        subprocess.Popen(command, env=environment, stdout=output, stderr=output) as server,
    ):
        try:
            until = time.monotonic() + 60
            while True:
                try:
                    if httpx2.get(f"http://127.0.0.1:{port}/readyz", trust_env=False).is_success:
                        break
                except httpx2.TransportError:
                    assert server.poll() is None, log.read_text()
                    assert time.monotonic() < until, log.read_text()
                time.sleep(0.1)
            yield port
        finally:
            server.terminate()
            server.wait(20)
