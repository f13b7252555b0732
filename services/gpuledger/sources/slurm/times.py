"""Times and durations as Slurm writes them for people, such as ``2026-11-29T14:53:49`` and ``1-02:03:04``."""

import re
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

from gpuledger.events.fields import END_OF_TIME_S
from gpuledger.kernel.errors import BadRecord
from gpuledger.sources.slurm.shapes import limit_of
from gpuledger.sources.values import LocalTimes, Odd, epoch_second, shown, whole_number

_DURATION = re.compile(r"(?:(\d{1,6})-)?(?:(\d{1,6}):)?(\d{1,6}):(\d{2})(?:\.\d+)?")
_SHIFT_S = 7200
"""No clock is moved by more."""

_REPEATED = 1 << 12
"""So many durations are remembered: few limits differ."""


ReadTime = Callable[[str, str], tuple[int | None, Odd | None]]
"""Reads the time of a field: seconds since the epoch, and what is odd about it."""


class Span(NamedTuple):
    """When a run started and ended, as far as it did."""

    start_s: int | None
    end_s: int | None
    oddities: tuple[Odd, ...] = ()


def read_time(times: LocalTimes, field: str, value: str) -> tuple[int | None, Odd | None]:
    """Return seconds since the epoch and what is odd about the time; None when there is no time.

    Times are read in the zone of the import, or as seconds, which sacct prints with ``SLURM_TIME_FORMAT=%s``.

    Raises:
        BadRecord: When it is no time, or outside the years 1970 to 2100.
    """
    if not value:
        return None, None
    if value.isdigit():
        return epoch_second(field, value) or None, None
    return times.read(field, value)


def span(read: ReadTime, start: str, end: str, length_s: int | None) -> Span:
    """Return start and end; of times that clocks showed twice, those that are as far apart as the run was long.

    Args:
        read: Reads a time of a field.
        start: Empty when there is none.
        end: Empty when there is none.
        length_s: For how long the run held its resources, where that is told.

    Raises:
        BadRecord: When one is no time.
    """
    (start_s, odd), (end_s, odd_too) = read("Start", start), read("End", end)
    if odd is None and odd_too is None:
        return Span(start_s, end_s)
    oddities = tuple(o for o in (odd, odd_too) if o is not None)
    if start_s is None or end_s is None or length_s is None:
        return Span(start_s, end_s, oddities)
    missing_s = length_s - (end_s - start_s)
    if odd_too is not None and 0 < missing_s <= _SHIFT_S:
        return Span(start_s, end_s + missing_s)
    if odd is not None and -_SHIFT_S <= missing_s < 0:
        return Span(start_s - missing_s, end_s)
    return Span(start_s, end_s, oddities)


@lru_cache(maxsize=_REPEATED)
def duration(field: str, value: str) -> int:
    """Return ``[days-][hours:]minutes:seconds`` in seconds, as Slurm prints them; 0 when there is none.

    Raises:
        BadRecord: When it is written otherwise, or longer than all the years there are.
    """
    if not value or value == "00:00:00":
        return 0
    found = _DURATION.fullmatch(value) if value.isascii() else None
    if found is None:
        raise BadRecord(
            f"{field}: {shown(value)} is no duration",
            code="not-a-number",
            hint="durations look like 1-02:03:04",
        )
    days, hours, minutes, seconds = (int(part or 0) for part in found.groups())
    total_s = ((days * 24 + hours) * 60 + minutes) * 60 + seconds
    if total_s >= END_OF_TIME_S:
        raise BadRecord(
            f"{field}: {shown(value)} is longer than all years",
            code="out-of-bounds",
            hint="look at the record in Slurm",
        )
    return total_s


@lru_cache(maxsize=_REPEATED)
def limit_seconds(raw: str, shown_limit: str) -> int | None:
    """Return a time limit in seconds, from its minutes or as people read it; None when there is none.

    Raises:
        BadRecord: When it is neither a limit nor the word for none.
    """
    if raw and raw.isdigit():
        return limit_of(whole_number("TimelimitRaw", raw), 60)
    if not shown_limit or not shown_limit[0].isdigit():  # UNLIMITED, Partition_Limit, INVALID
        return None
    return duration("Timelimit", shown_limit) or None
