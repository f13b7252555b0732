"""Time as an argument: the one module that reads the wall clock."""

import datetime as dt
from functools import lru_cache
from typing import Protocol


class Clock(Protocol):
    """Anything that can say what time it is."""

    def now(self) -> dt.datetime:
        """Return the current instant, aware and in UTC."""
        ...


class SystemClock:
    """The machine's clock."""

    def now(self) -> dt.datetime:
        """Return the machine's current instant in UTC."""
        return dt.datetime.now(dt.UTC)  # noqa: TID251 - this is the Clock that others take


class FixedClock:
    """A clock that stands still until it is set, for tests and replays."""

    def __init__(self, at: dt.datetime) -> None:
        self.at = at

    def now(self) -> dt.datetime:
        """Return the instant it was set to."""
        return self.at


def seconds(instant: dt.datetime) -> int:
    """Return an aware instant as whole seconds since 1970-01-01T00:00:00Z, floored."""
    since = instant - EPOCH
    return since.days * 86_400 + since.seconds


@lru_cache(maxsize=16_384)
def instant(at_s: int) -> dt.datetime:
    """Return whole seconds since 1970-01-01T00:00:00Z as an aware UTC instant; a fact's is asked for several times."""
    return dt.datetime.fromtimestamp(at_s, dt.UTC)


def iso(at: dt.datetime) -> str:
    """Return an instant as ISO 8601 in UTC."""
    return at.astimezone(dt.UTC).isoformat().replace("+00:00", "Z")


EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
