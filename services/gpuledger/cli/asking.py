"""Who orders a change, and whether a person agrees to it."""

import getpass
import sys

import typer


def who() -> str:
    """Return the name of the person at the keyboard, as orders keep it."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user often has no name
        return "unknown"


def agreed(changes: int, *, yes: bool) -> bool:
    """Ask on a terminal; without one, applying is what the command was called for."""
    if changes == 0 or yes or not sys.stdin.isatty():
        return True
    return typer.confirm(f"apply {changes} change{'s' if changes > 1 else ''}?", err=True)
