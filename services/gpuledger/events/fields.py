"""Field types that facts share: what a value may be, checked while it is decoded."""

import datetime as dt
from decimal import Decimal
from typing import Annotated

import msgspec

Count = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
"""A whole number that cannot be negative."""

Instant = Annotated[dt.datetime, msgspec.Meta(tz=True)]
"""A time with its offset; one without is refused, because nobody can say when it was."""

Name = Annotated[str, msgspec.Meta(min_length=1, max_length=1024)]
"""An identifier: present and of a sane length."""

Positive = Annotated[int, msgspec.Meta(ge=1, le=2**53)]
"""A whole number above zero."""

Percent = Decimal
"""0 to 100; values outside physical bounds are refused where they are used, with their place."""

END_OF_TIME_S = 4_133_980_800
"""2101-01-01T00:00:00Z: facts happen from 1970 up to here; all else is a broken clock or a wrong unit."""

PRIORITY_MAX = 10**9
"""Priorities of grants lie within this, on both sides of zero."""

WORKLOAD_PRIORITY_MAX = 2**53
"""Those of workloads: the largest whole number that every reader of JSON takes as it is."""

_MAGNITUDE = 30


def is_storable(number: Decimal) -> bool:
    """Say whether a measured number is finite and of a size that every store takes."""
    text = str(number)
    if len(text) <= _MAGNITUDE and "E" not in text and number.is_finite():
        return True  # as almost every number is written; taking it apart costs twice as much
    exponent = number.as_tuple().exponent
    return isinstance(exponent, int) and exponent >= -_MAGNITUDE and number.adjusted() <= _MAGNITUDE
