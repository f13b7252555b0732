"""Query parameters that need more than a type: instants, and names that are not understood."""

import datetime as dt
from typing import Annotated

from fastapi import Path, Query, Request
from fastapi.routing import APIRoute

from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.clock import seconds
from gpuledger.kernel.errors import Refused

PRINTABLE = r"^[^\x00-\x1f\x7f]+$"
PERIOD = r"^[0-9]{4}-(0[1-9]|1[0-2])$"
_YEARS = range(1970, 2200)

Cluster = Annotated[
    str | None,
    Query(description="One cluster; all of them unless given.", max_length=200, pattern=PRINTABLE),
]
RequiredCluster = Annotated[str, Query(description="The cluster.", max_length=200, pattern=PRINTABLE)]
Account = Annotated[
    str | None,
    Query(description="An account and everything below it.", max_length=1000, pattern=PRINTABLE),
]
AccountPath = Annotated[
    str,
    Path(
        description="An account path; slashes as they are.",
        max_length=1000,
        pattern=PRINTABLE,
        examples=["philly/ee9e8c"],
    ),
]
Period = Annotated[
    str | None,
    Query(description="A budget period, YYYY-MM.", pattern=PERIOD, examples=["2017-10"]),
]
From = Annotated[
    str | None,
    Query(
        alias="from",
        description="Start of the window: a day (YYYY-MM-DD) of the organisation's zone, or an instant.",
        examples=["2017-10-01"],
        max_length=40,
    ),
]
To = Annotated[
    str | None,
    Query(
        alias="to",
        description="End of the window, exclusive; same forms as `from`.",
        examples=["2017-11-01"],
        max_length=40,
    ),
]
AsOf = Annotated[
    str | None,
    Query(
        description="Recorded time: what the book said at that instant. Same forms as `from`.",
        examples=["2026-12-01T00:00:00Z"],
        max_length=40,
    ),
]


async def known_only(request: Request) -> None:
    """Refuse a query parameter that the path does not take: ignoring it would answer another question.

    Raises:
        Refused: Naming the parameter and those that are taken.
    """
    route = request.scope.get("route")
    if not isinstance(route, APIRoute):
        return
    known = {field.alias for field in route.dependant.query_params}
    unknown = [name for name in request.query_params if name not in known]
    if unknown:
        raise Refused(
            f"query parameter {unknown[0]!r} is not known here",
            hint=f"this path takes {', '.join(sorted(known))}" if known else "this path takes no parameter",
        )


def instant_of(name: str, text: str | None, calendar: Calendar) -> dt.datetime | None:
    """Return the instant that a parameter names, or None when it was not given.

    Args:
        name: The parameter, for the message.
        text: A day of the organisation's zone (its first instant is meant), or an instant with zone.
        calendar: The organisation's days.

    Raises:
        Refused: When the text is neither, has no zone, or lies outside the years 1970 to 2199.
    """
    if text is None:
        return None
    try:
        at = _read(text, calendar)
    except (ValueError, OverflowError) as error:
        raise Refused(
            f"{name}={text!r} is neither a day nor an instant",
            hint="write 2017-10-01, or 2017-10-01T00:00:00Z (a + in a zone must be sent as %2B)",
        ) from error
    if at.tzinfo is None:
        raise Refused(
            f"{name}={text!r} has no time zone", hint="add Z for UTC, or an offset sent as %2B01:00"
        )
    return at.astimezone(dt.UTC)


def seconds_of(name: str, text: str | None, calendar: Calendar) -> int | None:
    """Return the instant that a parameter names, as whole seconds since the epoch."""
    at = instant_of(name, text, calendar)
    return None if at is None else seconds(at)


def window_of(from_: str | None, to: str | None, calendar: Calendar) -> tuple[int | None, int | None]:
    """Return a half-open window as whole seconds.

    Raises:
        Refused: When an end is malformed, or the window is empty.
    """
    from_s, to_s = seconds_of("from", from_, calendar), seconds_of("to", to, calendar)
    if from_s is not None and to_s is not None and from_s >= to_s:
        raise Refused(f"the window from {from_} to {to} is empty", hint="`to` is exclusive and must be later")
    return from_s, to_s


def _read(text: str, calendar: Calendar) -> dt.datetime:
    if len(text) == len("2017-10-01"):
        day = dt.date.fromisoformat(text)
        _check_year(day.year)
        return dt.datetime.fromtimestamp(calendar.day_start_s(day), dt.UTC)
    at = dt.datetime.fromisoformat(text)
    _check_year(at.year)
    return at


def _check_year(year: int) -> None:
    if year not in _YEARS:
        raise ValueError(f"year {year} is outside {_YEARS.start} to {_YEARS.stop - 1}")
