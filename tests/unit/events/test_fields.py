"""What a value of each field type may be."""

from decimal import Decimal
from typing import Any

import msgspec
import pytest

from gpuledger.events.fields import END_OF_TIME_S, Count, Instant, Name, Positive, is_storable
from gpuledger.kernel.clock import instant


@pytest.mark.parametrize(
    ("kind", "value"), [(Count, 0), (Count, 2**53), (Positive, 1), (Name, "x"), (Name, "x" * 1024)]
)
def test_the_ends_of_the_range_are_taken(kind: Any, value: object) -> None:  # noqa: ANN401 - a type form
    assert msgspec.convert(value, kind) == value


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (Count, -1),
        (Count, 2**53 + 1),
        (Count, "1"),
        (Positive, 0),
        (Name, ""),
        (Name, "x" * 1025),
        (Instant, "2017-10-09T07:01:55"),
    ],
)
def test_what_lies_beyond_is_refused(kind: Any, value: object) -> None:  # noqa: ANN401 - a type form
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(value, kind)


@pytest.mark.parametrize(
    ("number", "storable"),
    [
        ("0", True),
        ("71.86", True),
        ("1E+30", True),
        ("1E+31", False),
        ("1E-30", True),
        ("1E-31", False),
        ("NaN", False),
        ("sNaN", False),
        ("-Infinity", False),
    ],
)
def test_only_finite_numbers_of_a_sane_size_are_storable(number: str, *, storable: bool) -> None:
    assert is_storable(Decimal(number)) is storable


def test_time_ends_with_the_year_2100() -> None:
    assert instant(END_OF_TIME_S - 1).isoformat() == "2100-12-31T23:59:59+00:00"
