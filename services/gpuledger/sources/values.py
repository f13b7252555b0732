"""Reading single fields: each check names the field, the value and what to do.

The functions raise ``BadRecord`` without the place; whoever knows file and line puts it in front.
"""

import datetime as dt
from collections.abc import Mapping, Sequence
from contextlib import suppress
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from itertools import repeat
from operator import add
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from gpuledger.events.fields import END_OF_TIME_S
from gpuledger.kernel.accounts import escape_part
from gpuledger.kernel.amounts import GPU_MILLI
from gpuledger.kernel.clock import instant, seconds
from gpuledger.kernel.errors import BadRecord, Refused

GPU_LIMIT = 1_000_000
"""No job and no host has more GPUs than this; a larger number is a slip."""

NAME_LIMIT_BYTES = 255
PART_LIMIT_BYTES = 128
DIGITS_LIMIT = 15

_UNREAD_S = -2 * END_OF_TIME_S  # whatever is added to it stays below zero

NOTHING = frozenset(("", "None", "NaN", "nan", "NaT", "null", "NULL"))
"""Words that programs write for no value."""

_SHOWN_CHARACTERS = 60
_DATE_CHARACTERS = 10
_FULL_PERCENT = 100
_HOUR_S = 3600
_HOUR_CHARACTERS = len("2017-10-09 07")
_TIME_CHARACTERS = len("2017-10-09 07:01:55")
_WITHIN_HOUR = {f":{second // 60:02}:{second % 60:02}": second for second in range(_HOUR_S)}
"""Minutes and seconds behind an hour, as times are usually written -> seconds."""

_HOURS_LIMIT = 1 << 14
_OFFSETS_KEPT = 8
_OFFSET_CHARACTERS = len("+00:00")
_CERTAIN_YEARS = range(1971, 2100)
"""Every instant of their local times lies within the bounds, whatever the zone."""

_REPEATED = 1 << 12
"""So many numbers are remembered: few numbers of GPUs differ."""

Odd = tuple[str, str]
"""Code and message of something odd in a record that is accepted."""


def shown(value: str) -> str:
    """Return a value as messages show it: quoted, and cut when it is long."""
    return repr(value if len(value) <= _SHOWN_CHARACTERS else value[:_SHOWN_CHARACTERS] + "…")


def whole_number(field: str, value: str) -> int:
    """Return a number written in digits.

    Raises:
        BadRecord: When it is missing or written otherwise.
    """
    if value.isdigit() and value.isascii() and len(value) <= DIGITS_LIMIT:
        return int(value)
    if not value:
        raise _missing(field)
    if value[0] == "-" and value[1:].isdigit():
        raise BadRecord(
            f"{field}: {shown(value)} is negative", code="out-of-bounds", hint="write a number from 0 up"
        )
    raise BadRecord(
        f"{field}: {shown(value)} is not a whole number",
        code="not-a-number",
        hint=f"write digits only, at most {DIGITS_LIMIT}",
    )


def present(value: str) -> str:
    """Return the value, or nothing when it is one of the words that programs write for no value."""
    return "" if value in NOTHING else value


def seconds_and_fraction(field: str, value: str) -> tuple[int, str]:
    """Return a duration as whole seconds and the digits after the point, without trailing zeros.

    Raises:
        BadRecord: When it is negative, missing or not written in digits.
    """
    if value.isdigit() and value.isascii() and len(value) <= DIGITS_LIMIT:
        return int(value), ""
    whole, _, fraction = value.partition(".")
    if fraction in {"", "0"} and whole.isdigit() and whole.isascii() and len(whole) <= DIGITS_LIMIT:
        return int(whole), ""
    if value.startswith("-") and value.strip("-.0"):
        raise BadRecord(
            f"{field}: {shown(value)} is negative: the end is before the start",
            code="end-before-start",
            hint="correct the duration in the file, or leave the row out",
        )
    if fraction and not (fraction.isdigit() and fraction.isascii()):
        raise BadRecord(
            f"{field}: {shown(value)} is not a number of seconds",
            code="not-a-number",
            hint="write seconds in digits, such as 66 or 66.5",
        )
    if not whole and fraction:
        whole = "0"
    return whole_number(field, whole if value != "." else value), fraction.rstrip("0")


@lru_cache(maxsize=_REPEATED)
def gpu_count(field: str, value: str) -> int:
    """Return a number of whole GPUs.

    Raises:
        BadRecord: When it is no number, or more than any job or host can have.
    """
    count = whole_number(field, value)
    if count > GPU_LIMIT:
        raise BadRecord(
            f"{field}: {count} GPUs are more than the limit of {GPU_LIMIT}",
            code="out-of-bounds",
            hint="correct the number of GPUs",
        )
    return count


def gpu_fraction(field: str, value: str) -> int:
    """Return a part of one GPU in milli-GPU, 0 to 1000.

    Raises:
        BadRecord: When it is no number or more than a whole GPU.
    """
    milli = whole_number(field, value)
    if milli > GPU_MILLI:
        raise BadRecord(
            f"{field}: {milli} milli-GPU is more than one GPU ({GPU_MILLI})",
            code="out-of-bounds",
            hint="write the part of each GPU, 0 to 1000",
        )
    return milli


@lru_cache(maxsize=_REPEATED)
def percent(field: str, value: str) -> Decimal:
    """Return a percentage exactly as written.

    Raises:
        BadRecord: When it is no number or outside 0 to 100.
    """
    try:
        number = Decimal(value) if value.isascii() and "_" not in value else None
    except InvalidOperation:
        number = None
    if number is None or not number.is_finite():
        raise BadRecord(
            f"{field}: {shown(value)} is not a number",
            code="not-a-number",
            hint="write a percentage such as 71.86, or leave it empty where nothing was measured",
        )
    exponent = number.as_tuple().exponent
    plain = isinstance(exponent, int) and -DIGITS_LIMIT <= exponent <= 2 and len(value) <= 2 * DIGITS_LIMIT  # noqa: PLR2004 - 1E+2 is 100
    if not (plain and 0 <= number <= _FULL_PERCENT):
        raise BadRecord(
            f"{field}: {shown(value)} is outside 0 to 100 percent",
            code="out-of-bounds",
            hint="correct the value, or leave it empty where nothing was measured",
        )
    return Decimal(f"{number.copy_abs():f}")


def epoch_second(field: str, value: str) -> int:
    """Return an instant written as seconds since the epoch.

    Raises:
        BadRecord: When it is no number or after the year 2100.
    """
    return instant_in_bounds(field, whole_number(field, value), value)


def epoch_floored(field: str, value: str) -> int:
    """Return an instant written as seconds since the epoch, with or without a fraction; floored.

    Raises:
        BadRecord: When it is no number or after the year 2100.
    """
    return instant_in_bounds(field, seconds_and_fraction(field, value)[0], value)


def gpus_of_percent(field: str, value: str) -> tuple[int, bool]:
    """Return GPUs written in percent of one GPU as milli-GPU, floored, and whether that is exact.

    Raises:
        BadRecord: When it is no number, or more than any job or host can have.
    """
    whole, fraction = seconds_and_fraction(field, value)
    gpu_count(field, str(whole // _FULL_PERCENT))
    return whole * 10 + int(fraction[:1] or 0), len(fraction) <= 1


def instant_in_bounds(field: str, at_s: int, value: str) -> int:
    """Return the instant when it lies in the years 1970 to 2100.

    Raises:
        BadRecord: When it does not.
    """
    if not 0 <= at_s < END_OF_TIME_S:
        raise BadRecord(
            f"{field}: {shown(value)} is outside the years 1970 to 2100",
            code="time-out-of-range",
            hint="correct the time, or its unit (seconds are expected)",
        )
    return at_s


def name(field: str, value: str, *, limit_bytes: int = NAME_LIMIT_BYTES) -> str:
    """Return an identifier: present, printable, of a sane length.

    Raises:
        BadRecord: When it is not.
    """
    if not value:
        raise _missing(field)
    if not value.isprintable():
        raise BadRecord(
            f"{field}: {shown(value)} holds a character that cannot be printed",
            code="bad-name",
            hint="look for a broken encoding or a stray control character",
        )
    if (len(value) if value.isascii() else len(value.encode())) > limit_bytes:
        raise BadRecord(
            f"{field}: {shown(value)} has more than {limit_bytes} bytes",
            code="bad-name",
            hint="shorten the name",
        )
    return value


word = lru_cache(maxsize=_REPEATED)(name)
"""Reads a name that repeats from record to record: of a user, a state, a team."""


def unknown_state(field: str, value: str) -> Odd:
    """Return what is odd about a state that nobody knows: what it ended is over all the same."""
    return "unknown-state", f"{field}: {shown(value)} is not known; booked as ended"


def cluster_name(value: str) -> str:
    """Return the name of a cluster, which is also its book and its root account.

    Raises:
        Refused: When it cannot be a part of an account path as it stands.
    """
    if not value or len(value) > PART_LIMIT_BYTES or escape_part(value) != value or value.startswith("~"):
        raise Refused(
            f"--cluster: {shown(value)} cannot name a cluster",
            hint="use lower-case letters, digits and - _ . only",
        )
    return value


class LocalTimes:
    """Times written for people, such as ``2017-10-09 07:01:55``.

    Args:
        timezone: IANA zone of times without an offset; UTC when None.

    Raises:
        Refused: When the zone is not known.
    """

    def __init__(self, timezone: str | None) -> None:
        self._zone: dt.tzinfo = dt.UTC if timezone is None else _zone(timezone)
        self._fixed = timezone is None
        self._hours: dict[str, int] = {}

    def known(self, value: str) -> int | None:
        """Return seconds since the epoch where a time of the same hour was read before, in which no clock was set."""
        try:
            hour_s = self._hours[value[:_HOUR_CHARACTERS] + value[_TIME_CHARACTERS:]]
            return hour_s + _WITHIN_HOUR[value[_HOUR_CHARACTERS:_TIME_CHARACTERS]]
        except KeyError:
            return None

    def column(self, values: Sequence[str]) -> list[int]:
        """Return seconds since the epoch where ``read`` would find nothing odd; below zero where it must decide.

        Args:
            values: Times, as a rule all written alike and few hours apart.
        """
        offset = next(filter(None, values), "")[_TIME_CHARACTERS:][:_OFFSET_CHARACTERS]
        begun = [value[:_HOUR_CHARACTERS] for value in values]
        hours = {}
        for hour, value in dict(zip(begun, values, strict=True)).items():
            if hour + offset not in self._hours:
                with suppress(BadRecord):
                    self.read("", value)
            hours[hour] = self._hours.get(hour + offset, _UNREAD_S)
        ends = [value[_HOUR_CHARACTERS:] for value in values]
        within = map(_within_hour(offset).get, ends, repeat(_UNREAD_S))
        return [*map(add, map(hours.__getitem__, begun), within)]

    def read(self, field: str, value: str) -> tuple[int, Odd | None]:
        """Return seconds since the epoch, floored, and what is odd about the time, if anything.

        Raises:
            BadRecord: When it is no time with a date, or outside the years 1970 to 2100.
        """
        known_s = self.known(value)
        if known_s is not None:
            return known_s, None
        rest, within_s = value[_TIME_CHARACTERS:], _WITHIN_HOUR.get(value[_HOUR_CHARACTERS:_TIME_CHARACTERS])
        local = _parsed(field, value)
        odd: Odd | None = None
        if local.tzinfo is None:
            local = local.replace(tzinfo=self._zone)
            odd = None if self._fixed else _doubt(field, value, local)
        elif not rest or rest[0] in ".,":
            within_s = None  # what looks like minutes may be those of an offset, as in 2017W41T07+01:01:55
        if within_s is not None:
            self._remember(value[:_HOUR_CHARACTERS] + rest, local)
        try:
            at_s = seconds(local)
        except OverflowError:
            at_s = -1
        return instant_in_bounds(field, at_s, value), odd

    def following_midnight(self, at_s: int) -> int:
        """Return the first instant of the day after the one that holds the instant."""
        day = instant(at_s).astimezone(self._zone).date() + dt.timedelta(days=1)
        return seconds(dt.datetime.combine(day, dt.time(), tzinfo=self._zone))

    def _remember(self, hour: str, local: dt.datetime) -> None:
        """Keep when the hour of a time began, unless clocks were set in it."""
        if local.year not in _CERTAIN_YEARS:
            return
        first, last = local.replace(minute=0, second=0), local.replace(minute=59, second=59)
        ends = (
            () if isinstance(local.tzinfo, dt.timezone) else (first, last)
        )  # others have one offset for ever
        if len({at.replace(fold=fold).utcoffset() for at in ends for fold in (0, 1)}) <= 1:
            if len(self._hours) >= _HOURS_LIMIT:
                self._hours.clear()
            self._hours[hour] = seconds(first)


@lru_cache(maxsize=_OFFSETS_KEPT)
def _within_hour(offset: str) -> Mapping[str, int]:
    """Return the seconds of each minute and second with an offset behind them."""
    return {end + offset: within_s for end, within_s in _WITHIN_HOUR.items()}


def _parsed(field: str, value: str) -> dt.datetime:
    try:
        local = dt.datetime.fromisoformat(value)
    except ValueError:
        local = None
    if local is None or len(value) <= _DATE_CHARACTERS:
        raise BadRecord(
            f"{field}: {shown(value)} is not a time" if value else f"{field}: is missing",
            code="not-a-time" if value else "missing-value",
            hint="write YYYY-MM-DD HH:MM:SS; without an offset it is read in the zone of --tz, or UTC",
        )
    return local


def _doubt(field: str, value: str, local: dt.datetime) -> Odd | None:
    """Say so when clocks showed the time twice or never."""
    first, second = local.utcoffset(), local.replace(fold=1).utcoffset()
    if first is None or second is None or first == second:
        return None
    if first > second:
        return (
            "ambiguous-time",
            f"{field}: {shown(value)} came twice as clocks went back; the first is taken",
        )
    return (
        "nonexistent-time",
        f"{field}: {shown(value)} was skipped as clocks went forward",
    )


@lru_cache(maxsize=16)
def _zone(timezone: str) -> ZoneInfo:
    try:
        return ZoneInfo(timezone)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise Refused(
            f"--tz: time zone {timezone!r} is not known", hint="use an IANA name such as Europe/Berlin"
        ) from error


def _missing(field: str) -> BadRecord:
    return BadRecord(
        f"{field}: is missing", code="missing-value", hint=f"fill in {field}, or leave the row out"
    )
