"""A recorded time is over: what will be said by one to come nobody knows."""

import datetime as dt

import pytest

from gpuledger.kernel.errors import Refused
from gpuledger.kernel.recorded import not_to_come

NOW = dt.datetime(2026, 11, 30, 12, tzinfo=dt.UTC)


@pytest.mark.parametrize("at", [NOW, NOW - dt.timedelta(days=400)])
def test_what_is_over_is_returned(at: dt.datetime) -> None:
    assert not_to_come(at, "as_of", NOW) == at


def test_what_is_to_come_is_refused_with_where_it_was_given() -> None:
    with pytest.raises(Refused, match=r"^--as-of: 'x' is still to come"):
        not_to_come(NOW + dt.timedelta.resolution, "--as-of: 'x'", NOW)
