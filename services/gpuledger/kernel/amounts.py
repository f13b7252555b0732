"""The one amount: integer ``gpu_ms`` = milli-GPU x seconds, and its way to and from people.

One GPU-hour is 3 600 000 gpu_ms. No float enters or leaves this module.
"""

from decimal import ROUND_HALF_EVEN, Decimal

GPU_MILLI = 1000
"""Milli-GPU in one whole GPU."""

GPU_MS_PER_GPU_HOUR = 3_600_000
"""gpu_ms in one GPU-hour."""

WEIGHT_ONE = 1000
"""The weight, in per mille, of a GPU model without a rate card."""

_MILLIHOUR = Decimal("0.001")


def gpu_hours(gpu_ms: int) -> Decimal:
    """Return an amount as GPU-hours with three decimals, half to even."""
    return (Decimal(gpu_ms) / GPU_MS_PER_GPU_HOUR).quantize(_MILLIHOUR, rounding=ROUND_HALF_EVEN)


def from_gpu_hours(hours: Decimal) -> int:
    """Return GPU-hours as gpu_ms.

    Raises:
        ValueError: When the hours are not a whole number of gpu_ms.
    """
    amount = hours * GPU_MS_PER_GPU_HOUR
    if amount != amount.to_integral_value():
        raise ValueError(f"{hours} GPU-hours is not a whole number of gpu_ms (milli-GPU x seconds)")
    return int(amount)


def people_gpu_hours(gpu_ms: int) -> str:
    """Return an amount for people: GPU-hours, one decimal, thousands separated."""
    return f"{Decimal(gpu_ms) / GPU_MS_PER_GPU_HOUR:,.1f}"
