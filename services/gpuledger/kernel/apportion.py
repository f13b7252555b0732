"""Dividing an integer among weights without losing a unit (largest remainder)."""

from collections.abc import Sequence


def apportion(total: int, weights: Sequence[int]) -> list[int]:
    """Divide ``total`` in proportion to ``weights``; the parts sum to ``total`` exactly.

    Each part is its exact share rounded down or up. The units left after rounding down go to the
    largest remainders, earlier positions first (the Hamilton method). All weights zero gives zeros.

    Args:
        total: A non-negative integer.
        weights: Non-negative integers.

    Raises:
        ValueError: When the total or a weight is negative.
    """
    if total < 0 or any(weight < 0 for weight in weights):
        raise ValueError("apportion takes a non-negative total and non-negative weights")
    whole = sum(weights)
    if whole == 0:
        return [0] * len(weights)
    parts = [total * weight // whole for weight in weights]
    remainders = [total * weight % whole for weight in weights]
    left = total - sum(parts)
    for index in sorted(range(len(weights)), key=lambda i: (-remainders[i], i))[:left]:
        parts[index] += 1
    return parts
