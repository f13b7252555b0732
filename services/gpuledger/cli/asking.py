"""Who orders a change, and whether a person agrees to it."""

import sys

import typer

from gpuledger.cli.output import counted


def who() -> str:
    """Return the name of the person at the keyboard, as orders keep it."""
    import getpass

    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user often has no name
        return "unknown"


def agreed(changes: int, *, yes: bool) -> bool:
    """Ask whether to apply changes, if there are any."""
    return changes == 0 or confirmed(f"apply {counted(changes, 'change')}?", yes=yes)


def confirmed(question: str, *, yes: bool) -> bool:
    """Ask on a terminal; without one, what the command was called for is what is wanted."""
    return yes or not sys.stdin.isatty() or typer.confirm(question, err=True)
