"""A process that has imported what commands import, and forks itself for each of them.

Importing takes a second or two, longer than most commands work. A fork runs the same ``main`` with
arguments, environment, streams and exit status of its own, so it differs from a fresh process in nothing
but its imports. Requests come as JSON lines on stdin; each is answered with the exit status.
"""

import atexit
import importlib
import json
import os
import sys
import traceback
from typing import Any

COMMON = (
    "gpuledger.database.opening",
    "gpuledger.settings",
    "gpuledger.ingest.importer",
    "gpuledger.ingest.worker",
    "gpuledger.ingest.budgets",
    "gpuledger.ingest.relay",
    "gpuledger.ledger.audit",
    "gpuledger.ledger.rebuild",
    "gpuledger.ledger.balances",
    "gpuledger.ledger.usage",
    "gpuledger.policy.service",
    "gpuledger.sources.registry",
    "gpuledger.streams.opening",
    "gpuledger.streams.kafka",
    "psycopg",
    "sqlalchemy.dialects.postgresql",
    "rich.table",
)


def main() -> None:
    """Answer requests until stdin ends, which it does with the process that started this one."""
    os.environ["TYPER_USE_RICH"] = "0"  # as the command sets it for itself where there is no terminal
    command = importlib.import_module("gpuledger.cli").main
    importlib.import_module("gpuledger.cli.app")
    for name in COMMON:
        importlib.import_module(name)
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            os._exit(_run(command, json.loads(line)))
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


def _run(command: Any, request: dict[str, Any]) -> int:  # noqa: ANN401 - the entry point
    os.environ.clear()
    os.environ.update(request["environment"])
    os.setsid()
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(os.open(request["out"], os.O_WRONLY | os.O_CREAT), 1)
    os.dup2(os.open(request["err"], os.O_WRONLY | os.O_CREAT), 2)
    sys.argv = ["gpuledger", *request["arguments"]]
    try:
        command()
        status = 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:  # noqa: BLE001 - what the interpreter does with whatever comes out
        traceback.print_exc()
        status = 1
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    return status


if __name__ == "__main__":
    main()
