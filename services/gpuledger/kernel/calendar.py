"""The organisation's days and periods: where intervals are cut, daylight saving included."""

import datetime as dt
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from gpuledger.kernel.clock import instant, seconds
from gpuledger.kernel.errors import Refused

_FIRST_PERIOD, _LAST_PERIOD = "1969-12", "2101-01"
"""A zone's calendar may be a day before or after UTC's at either end of the ledger's time."""

_ONE_DAY = dt.timedelta(days=1)
_PERIOD = re.compile(r"[0-9]{4}-[0-9]{2}")


class Slice(NamedTuple):
    """A part of an interval that lies in one day of the organisation's zone."""

    day: dt.date
    start_s: int
    end_s: int


@dataclass(frozen=True, slots=True)
class Calendar:
    """Days and monthly periods in one time zone.

    Args:
        timezone: An IANA name such as ``UTC`` or ``Europe/Berlin``.
    """

    timezone: str = "UTC"

    def __post_init__(self) -> None:
        """Refuse a zone that the time-zone data does not know."""
        _zone(self.timezone)

    def day_of(self, at_s: int) -> dt.date:
        """Return the organisation's day that holds the instant.

        Days follow each other without gaps: where clocks go back over midnight, the hour that is
        lived twice belongs to the new day from the first midnight on, whatever the wall shows.
        """
        day = instant(at_s).astimezone(_zone(self.timezone)).date()
        while at_s >= self.day_start_s(day + _ONE_DAY):
            day += _ONE_DAY
        return day

    def day_start_s(self, day: dt.date) -> int:
        """Return the first instant of the day, in seconds since the epoch."""
        return _day_start_s(self.timezone, day)

    def period_of(self, day: dt.date) -> str:
        """Return the key of the month that holds the day, such as ``2017-10``."""
        return day.isoformat()[:7]

    def period_bounds_s(self, period: str) -> tuple[int, int]:
        """Return the half-open interval of a period, in seconds since the epoch.

        Raises:
            Refused: When the period is not of the form ``YYYY-MM``.
        """
        return _period_bounds_s(self.timezone, period)

    def days_of(self, period: str) -> tuple[dt.date, dt.date]:
        """Return the first and the last day of a period.

        Raises:
            Refused: When the period is not of the form ``YYYY-MM``.
        """
        start_s, end_s = self.period_bounds_s(period)
        return self.day_of(start_s), self.day_of(end_s - 1)

    def following(self, period: str) -> str:
        """Return the key of the period after this one."""
        return self.period_of(self.days_of(period)[1] + _ONE_DAY)

    def periods_between(self, start_s: int, end_s: int) -> list[str]:
        """Return the keys of the periods that the half-open interval touches, in order."""
        if end_s <= start_s:
            return []
        keys = [self.period_of(self.day_of(start_s))]
        while (edge := self.period_bounds_s(keys[-1])[1]) < end_s:
            keys.append(self.period_of(self.day_of(edge)))
        return keys

    def slices(self, start_s: int, end_s: int) -> Iterator[Slice]:
        """Cut a half-open interval at the day edges; the slices cover it exactly."""
        day = self.day_of(start_s)
        while start_s < end_s:
            day += _ONE_DAY
            edge = min(self.day_start_s(day), end_s)
            if edge > start_s:  # a day that the zone skipped has no second
                yield Slice(day - _ONE_DAY, start_s, edge)
            start_s = edge


@lru_cache(maxsize=64)
def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError) as error:
        raise Refused(
            f"time zone {name!r} is not known",
            hint="use an IANA name such as Europe/Berlin",
        ) from error


@lru_cache(maxsize=65_536)
def _day_start_s(timezone: str, day: dt.date) -> int:
    # A zone that skips midnight (some do on DST days) starts its day at the first instant after the gap:
    # fold=0 maps the missing local time onto that instant.
    return seconds(dt.datetime.combine(day, dt.time(), tzinfo=_zone(timezone)).astimezone(dt.UTC))


@lru_cache(maxsize=4096)
def _period_bounds_s(timezone: str, period: str) -> tuple[int, int]:
    refused = Refused(f"period {period!r} is not of the form YYYY-MM", hint="such as 2017-10")
    if not _PERIOD.fullmatch(period):
        raise refused
    if not _FIRST_PERIOD <= period <= _LAST_PERIOD:
        raise Refused(
            f"period {period!r} is outside the years 1970 to 2100", hint="the ledger keeps time within them"
        )
    try:
        first = dt.date.fromisoformat(f"{period}-01")
        following = (first + dt.timedelta(days=32)).replace(day=1)
        return _day_start_s(timezone, first), _day_start_s(timezone, following)
    except (ValueError, OverflowError) as error:
        raise refused from error
