"""Options that commands share, and how their values are read."""

import datetime as dt
import re
from typing import TYPE_CHECKING, Annotated

import typer

from gpuledger.kernel.clock import SystemClock, instant, seconds
from gpuledger.kernel.errors import Refused

if TYPE_CHECKING:
    from gpuledger.kernel.calendar import Calendar

Json = Annotated[bool, typer.Option("--json", help="One JSON document on stdout.")]
Cluster = Annotated[str | None, typer.Option("--cluster", help="One cluster; all unless given.")]
AnyCluster = Annotated[
    str | None, typer.Option("--cluster", help="The cluster; needed where there are several.")
]
OneCluster = Annotated[str, typer.Option("--cluster", help="The cluster.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask.")]
From = Annotated[
    str | None,
    typer.Option(
        "--from", help="Start: 2017-10-01, 2017-10-01T06:00:00Z, or seconds since 1970 (the trace's origin)."
    ),
]
To = Annotated[str | None, typer.Option("--to", help="End, exclusive; like --from.")]
AsOf = Annotated[
    str | None,
    typer.Option("--as-of", help="What the ledger said at this recorded time (2026-11-29T12:00:00Z)."),
]
"""Every command that reads the books takes it; a house test holds the commands to that."""


def moment(text: str | None, option: str, calendar: "Calendar") -> int | None:
    """Read an instant: whole seconds, a day in the organisation's zone, or RFC 3339 with an offset.

    Raises:
        Refused: When it is none of these; a time without a zone is not guessed.
    """
    if text is None:
        return None
    try:
        if re.fullmatch(r"-?[0-9]+", text):
            return seconds(instant(int(text)))
        if len(text) == len("2017-10-01"):
            return calendar.day_start_s(dt.date.fromisoformat(text))
        given = dt.datetime.fromisoformat(text)
    except (ValueError, OverflowError) as error:
        raise Refused(
            f"{option}: {text!r} is not a time",
            hint="write 2017-10-01, 2017-10-01T06:00:00Z, or whole seconds",
        ) from error
    if given.tzinfo is None:
        raise Refused(f"{option}: {text!r} has no zone", hint="add Z for UTC, or an offset such as +08:00")
    return seconds(given.astimezone(dt.UTC))


def moment_or_now(
    text: str | None, option: str, calendar: "Calendar", as_of: dt.datetime | None = None
) -> int:
    """Read an instant as ``moment`` does; the present unless given, which was another when the books said so.

    Raises:
        Refused: As ``moment``.
    """
    at_s = moment(text, option, calendar)
    return seconds(as_of or SystemClock().now()) if at_s is None else at_s


def window(from_: str | None, to: str | None, calendar: "Calendar") -> tuple[int | None, int | None]:
    """Read ``--from`` and ``--to``.

    Raises:
        Refused: As ``moment``, or when the end lies before the start.
    """
    start_s, end_s = moment(from_, "--from", calendar), moment(to, "--to", calendar)
    if start_s is not None and end_s is not None and end_s < start_s:
        raise Refused(
            f"--to: {to!r} lies before --from {from_!r}", hint="--to is exclusive, and comes after --from"
        )
    return start_s, end_s


def one_cluster(named: str | None, known: list[str]) -> str:
    """Return the cluster that is named; where none is, the only one there is.

    Raises:
        Refused: When there is not exactly one.
    """
    if named is None and len(known) != 1:
        raise Refused("--cluster: name one", hint=f"known clusters: {', '.join(known) or 'none yet'}")
    return known[0] if named is None else named


def recorded_window(
    from_: str | None, to: str | None, calendar: "Calendar"
) -> tuple[dt.datetime | None, dt.datetime | None]:
    """Read ``--from`` and ``--to`` where they are of recorded time.

    Raises:
        Refused: As ``window``.
    """
    start_s, end_s = window(from_, to, calendar)
    return None if start_s is None else instant(start_s), None if end_s is None else instant(end_s)


def recorded(text: str | None, option: str = "--as-of") -> dt.datetime | None:
    """Read a recorded time; for one that is still to come the present, which is all that anybody knows.

    Raises:
        Refused: When it is no RFC 3339 time with an offset.
    """
    if text is None:
        return None
    try:
        given = dt.datetime.fromisoformat(text)
    except ValueError as error:
        raise Refused(f"{option}: {text!r} is not a time", hint="write 2026-11-29T12:00:00Z") from error
    if given.tzinfo is None:
        raise Refused(f"{option}: {text!r} has no zone", hint="add Z for UTC, or an offset such as +08:00")
    return min(given.astimezone(dt.UTC), SystemClock().now())
