"""Start the Dagster UI: ``python -m gpuledger_pipelines.ui --port 3000``, with ``DAGSTER_HOME`` set.

Dagster takes over this process, so whoever started it can stop it.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from gpuledger_pipelines.home import VARIABLE, prepare

HOST = "127.0.0.1"
DEFAULT_PORT = 3000
DEFINITIONS = "gpuledger_pipelines.definitions"


def command(port: int) -> list[str]:
    """Return the command that serves the UI on this machine only."""
    return [sys.executable, "-m", "dagster_webserver", "-h", HOST, "-p", str(port), "-m", DEFINITIONS]


def main(arguments: Sequence[str] | None = None) -> None:
    """Write ``dagster.yaml`` where it is missing (telemetry off, our event log) and become Dagster."""
    parser = argparse.ArgumentParser(description="Serve the Dagster UI.")
    parser.add_argument("--port", type=int, default=DEFAULT_PORT)
    options = parser.parse_args(arguments)
    prepare(Path(os.environ[VARIABLE]))
    program = command(options.port)
    os.execv(program[0], program)  # noqa: S606 - an argument list, no shell


if __name__ == "__main__":
    main()
