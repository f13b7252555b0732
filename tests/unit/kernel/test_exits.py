"""Errors become exit statuses by what the caller can do about them."""

import pytest

from gpuledger.kernel.errors import (
    BadRecord,
    Conflict,
    Corrupt,
    Fenced,
    GpuledgerError,
    NotFound,
    Refused,
    Unavailable,
)
from gpuledger.kernel.exits import exit_status
from gpuledger.streams.protocol import PositionLost


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (Refused("x"), 2),
        (BadRecord("x", code="y"), 2),
        (NotFound("x"), 4),
        (Unavailable("x"), 75),
        (Conflict("x"), 75),
        (Fenced("x"), 75),
        (Corrupt("x"), 1),
        (PositionLost("x"), 1),
        (GpuledgerError("x"), 1),
    ],
)
def test_each_error_has_its_status(error: GpuledgerError, status: int) -> None:
    assert exit_status(error) == status
