"""Errors for people and programs: a message, a hint, an exit status."""

import json
import sys
from typing import Protocol

from gpuledger.kernel.errors import GpuledgerError
from gpuledger.kernel.exits import exit_status


class UsageFault(Protocol):
    """What the command line's parser says about a wrong option or argument."""

    exit_code: int

    def format_message(self) -> str:
        """Return what was wrong."""
        ...

    def show(self) -> None:
        """Print it with the command's usage on stderr."""
        ...


def report(error: GpuledgerError, *, as_json: bool) -> int:
    """Print an error on stderr and return its exit status."""
    status = exit_status(error)
    if as_json:
        print(json.dumps({"error": error.message, "hint": error.hint, "exit": status}), file=sys.stderr)
    else:
        print(f"gpuledger: {error.message}", file=sys.stderr)
        if error.hint:
            print(f"  hint: {error.hint}", file=sys.stderr)
    return status


def report_usage(fault: UsageFault, *, as_json: bool) -> int:
    """Print what the parser refused on stderr and return the exit status."""
    if as_json:
        document = {
            "error": fault.format_message(),
            "hint": "add --help to see the options",
            "exit": fault.exit_code,
        }
        print(json.dumps(document), file=sys.stderr)
    else:
        fault.show()
    return fault.exit_code
