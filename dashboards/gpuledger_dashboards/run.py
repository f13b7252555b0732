"""Start the pages: ``python -m gpuledger_dashboards.run --port 8501 --api http://127.0.0.1:8080``.

Streamlit takes over this process, so whoever started it can stop it.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

APP = Path(__file__).with_name("app.py")
HOST = "127.0.0.1"
DEFAULT_PORT = 8501


def command(port: int, host: str = HOST) -> list[str]:
    """Return the command that serves the pages at an address, sends nothing home and opens no browser."""
    flags = {
        "server.address": host,
        "server.port": str(port),
        "server.headless": "true",
        "server.fileWatcherType": "none",
        "server.showEmailPrompt": "false",
        "browser.gatherUsageStats": "false",
        "client.toolbarMode": "minimal",
        "client.showErrorDetails": "none",
    }
    return [
        sys.executable,
        "-m",
        "streamlit",
        "run",
        str(APP),
        *[f"--{name}={value}" for name, value in flags.items()],
    ]


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the options and become Streamlit."""
    parser = argparse.ArgumentParser(
        prog="python -m gpuledger_dashboards.run", description="Serve the pages."
    )
    parser.add_argument("--port", type=int, default=DEFAULT_PORT, help="port to bind")
    parser.add_argument(
        "--host", default=HOST, help="address to bind; another than 127.0.0.1 where viewers sign in"
    )
    parser.add_argument("--api", help="where the ledger API answers; GPULEDGER_API_URL unless given")
    options = parser.parse_args(arguments)
    environment = dict(os.environ)
    if options.api:
        environment["GPULEDGER_API_URL"] = options.api
    argv = command(options.port, options.host)
    os.execve(argv[0], argv, environment)  # noqa: S606 - a fixed list of arguments, no shell


if __name__ == "__main__":
    main()
