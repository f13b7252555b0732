"""Powers of one half from a declared fixed-point table: integers alone, the same on any machine.

``table()[j]`` is 2^32 x 2^(-j / 65536), to the nearest unit. A power is its entry for the part of a half-life that is
left over, halved once for every whole one.
"""

from functools import cache
from math import isqrt

STEPS_BITS = 16
STEPS = 1 << STEPS_BITS
"""Entries of the table: the steps in which a half-life is counted."""

ONE_BITS = 32
ONE = 1 << ONE_BITS
"""What 1 is in units of the table."""

_GUARD_BITS = 64


@cache
def table() -> tuple[int, ...]:
    """Return the table.

    Its 16 roots of one half are integer square roots of one another in units of 2^-96; an entry is the product of
    those that its binary digits name.
    """
    bits = ONE_BITS + _GUARD_BITS
    entries = [1 << bits]
    root, roots = 1 << (bits - 1), []
    for _ in range(STEPS_BITS):
        root = isqrt(root << bits)
        roots.append(root)
    for power in reversed(roots):  # the smallest step first: each root doubles the entries
        entries += [entry * power >> bits for entry in entries]
    return tuple((entry + (1 << (_GUARD_BITS - 1))) >> _GUARD_BITS for entry in entries)


def decayed(age_s: int, half_life_s: int) -> int:
    """Return what is left of 1 after an age, in units of 2^-32: 2^(-age / half-life), by the nearest step.

    Args:
        age_s: Seconds, not below 0.
        half_life_s: Seconds, above 0.
    """
    steps = (age_s * STEPS + half_life_s // 2) // half_life_s
    return table()[steps % STEPS] >> (steps // STEPS)
