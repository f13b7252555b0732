"""What the commands that apply a file share: read it, show the difference, book it, tell what became of it."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from gpuledger.cli.asking import agreed
from gpuledger.cli.options import moment_or_now
from gpuledger.cli.output import counted, note, print_json

if TYPE_CHECKING:
    from gpuledger.database.engine import Reader
    from gpuledger.ingest.changes import Change
    from gpuledger.kernel.calendar import Calendar

File = TypeVar("File")


def apply_file(
    path: Path,
    read: Callable[[Path], File],
    plan: "Callable[[Reader, File, int, Calendar], list[Change]]",
    source: str,
    *,
    from_: str | None,
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Show what the file changes, and book it unless told otherwise.

    Raises:
        Refused: When the file is missing or wrong.
    """
    from gpuledger import settings
    from gpuledger.database.engine import reading
    from gpuledger.database.opening import open_database
    from gpuledger.ingest import changes as booking
    from gpuledger.ingest.intake import Intake
    from gpuledger.kernel.clock import SystemClock
    from gpuledger.ledger import queries

    file = read_file(path, read)
    config, clock = settings.load(), SystemClock()
    with open_database(config) as engine:
        with reading(engine) as reader:
            at_s = moment_or_now(from_, "--from", queries.calendar(reader, config.calendar))
            changes = plan(reader, file, at_s, config.calendar)
        for change in changes:
            note(change.shown)
        applied, opened = False, dict[str, list[str]]()
        if not dry_run and agreed(len(changes), yes=yes):
            opened = booking.apply(Intake(engine, clock, config.calendar), changes, at_s, source)
            applied = True
    for cluster, periods in opened.items():
        note(f"{cluster}: opened {', '.join(periods)}")
    tell([c.shown for c in changes], {"opened": opened}, applied=applied, as_json=as_json)


def read_file(path: Path, read: Callable[[Path], File]) -> File:
    """Read a file that a command names.

    Raises:
        Refused: When it is missing or wrong.
    """
    from gpuledger.kernel.errors import NotFound, Refused

    try:
        return read(path)
    except NotFound as error:  # a missing file is bad usage, not a missing account
        raise Refused(error.message, hint=error.hint) from error


def tell(changes: Sequence[str], more: Mapping[str, Any], *, applied: bool, as_json: bool) -> None:
    """Print what became of the changes; programs get ``more`` besides."""
    if as_json:
        print_json({"changes": changes, **more, "applied": applied})
    elif not changes:
        print("nothing to change")
    else:
        print(f"{counted(len(changes), 'change')} {'applied' if applied else 'not applied'}")
