"""The shapes of numbers in Slurm's JSON: plain up to 22.05, objects that say whether they are set since then."""

from collections.abc import Sequence

import msgspec

from gpuledger.events.fields import END_OF_TIME_S
from gpuledger.kernel.errors import BadRecord
from gpuledger.sources.values import GPU_LIMIT, instant_in_bounds, shown

UNSET = frozenset((0xFFFFFFFE, 0xFFFFFFFF, 0xFFFE, 0xFFFF, 0xFFFFFFFFFFFFFFFE, 0xFFFFFFFFFFFFFFFF))
"""What stands in Slurm for "no value" and "infinite", in each width."""


class Number(msgspec.Struct, frozen=True):
    """A number that may be unset or infinite."""

    set: bool = False
    infinite: bool = False
    number: int | float | None = None


Value = int | float | Number | None
"""A number in either shape."""

Words = str | list[str] | None
"""A word, or the list of words that later versions write in its place."""


def plain(value: Value) -> int | None:
    """Return a number in either shape as a whole one; None when it is not set, infinite, or stands for that."""
    if value is None:
        return None
    if isinstance(value, Number):
        value = value.number if value.set and not value.infinite else None
    if value is None or value in UNSET or value != value:  # noqa: PLR0124 - NaN is not itself
        return None
    return int(value) if abs(value) < 2**63 else None


def instant_of(field: str, value: Value) -> int | None:
    """Return seconds since the epoch; None when there is no time: 0 is none, 1970 never was one.

    Raises:
        BadRecord: When it lies outside the years 1970 to 2100.
    """
    at_s = plain(value)
    return None if not at_s else instant_in_bounds(field, at_s, str(at_s))


def count_of(field: str, value: Value) -> int:
    """Return a number of things, 0 when it is not set.

    Raises:
        BadRecord: When it is negative or more than there can be.
    """
    count = plain(value) or 0
    if not 0 <= count <= GPU_LIMIT:
        raise BadRecord(
            f"{field}: {count} is out of bounds", code="out-of-bounds", hint="look at the record in Slurm"
        )
    return count


def duration_of(field: str, value: Value) -> int | None:
    """Return seconds; None when they are not told.

    Raises:
        BadRecord: When they are more than all the years there are, or negative.
    """
    seconds = plain(value)
    if seconds is not None and not 0 <= seconds < END_OF_TIME_S:
        raise BadRecord(
            f"{field}: {seconds} seconds are out of bounds",
            code="out-of-bounds",
            hint="look at the record in Slurm",
        )
    return seconds


def small(value: Value) -> int | None:
    """Return a count of a few; None when it is not told, or no count."""
    number = plain(value)
    return number if number is not None and 0 <= number <= GPU_LIMIT else None


def limit_of(value: Value, unit_s: int) -> int | None:
    """Return a time limit in seconds; None when there is none, or one that no job could reach.

    Args:
        value: As Slurm tells it.
        unit_s: How many seconds one of its units has.
    """
    number = plain(value) or 0
    return number * unit_s if 0 < number * unit_s < END_OF_TIME_S else None


def bad_shape(raw: bytes, error: Exception) -> BadRecord:
    """Return the fault of a record whose JSON is of another shape than any version's that is known."""
    return BadRecord(
        f"{error}: {shown(raw[:60].decode('utf-8', 'replace'))}",
        code="bad-shape",
        hint="the record is kept: retry it with a version of gpuledger that reads this form",
    )


def gres(items: Sequence["TresItem"]) -> list[tuple[str, int]]:
    """Return the generic resources of a list of trackable ones, with their counts.

    Raises:
        BadRecord: When a count is out of bounds.
    """
    return [
        (item.name, count_of(f"tres {item.name}", item.count))
        for item in items
        if item.type == "gres" and item.name
    ]


class TresItem(msgspec.Struct, frozen=True):
    """A trackable resource and how much of it."""

    type: str = ""
    name: str | None = None
    count: Value = None


class Association(msgspec.Struct, frozen=True, gc=False):
    """Whose a job is, as accounting has it."""

    cluster: str | None = None
    account: str | None = None
    user: str | None = None


class Owner(msgspec.Struct, frozen=True, gc=False):
    """What of a record says whose it is."""

    cluster: str | None = None
    account: str | None = None
    association: Association = Association()


_owner_decoder = msgspec.json.Decoder(Owner)

UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What decoding raises."""


def decode_owner(raw: bytes) -> Owner:
    """Return whose a record is.

    Raises:
        BadRecord: When it is no JSON object, or these are no words.
    """
    try:
        return _owner_decoder.decode(raw)
    except UNREADABLE as error:
        raise bad_shape(raw, error) from error
