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

GPU_MS_MAX = 10**15
"""The most that one order moves: 278 million GPU-hours. Sums of many stay within what a column holds."""

_DIGITS_MAX = 30
"""Before and after the point."""

_MILLIHOUR = Decimal("0.001")


def gpu_hours(gpu_ms: int) -> Decimal:
    """Return an amount as GPU-hours with three decimals, half to even."""
    return (Decimal(gpu_ms) / GPU_MS_PER_GPU_HOUR).quantize(_MILLIHOUR, rounding=ROUND_HALF_EVEN)


def from_gpu_hours(hours: Decimal) -> int:
    """Return GPU-hours as gpu_ms.

    Raises:
        ValueError: When the hours are not a whole number of gpu_ms.
    """
    if not hours.is_finite():
        raise ValueError(f"{hours} is not a number of GPU-hours")
    if abs(hours.adjusted()) > _DIGITS_MAX:  # as a fraction it would fill the memory
        raise ValueError(f"{hours} GPU-hours is out of all bounds")
    # As a fraction: decimal arithmetic would round a long number onto a whole one.
    numerator, denominator = hours.as_integer_ratio()
    amount, rest = divmod(numerator * GPU_MS_PER_GPU_HOUR, denominator)
    if rest:
        raise ValueError(f"{hours} GPU-hours is not a whole number of gpu_ms (milli-GPU x seconds)")
    return amount


def people_gpu_hours(gpu_ms: int | Decimal) -> str:
    """Return an amount for people: GPU-hours, one decimal, thousands separated; never a nothing below zero."""
    text = f"{Decimal(gpu_ms) / GPU_MS_PER_GPU_HOUR:,.1f}"
    return "0.0" if text == "-0.0" else text
