"""Chance that hangs on names: what is drawn for a job or a host is the same in whatever order things happen."""

import random
from hashlib import sha256

PER_MILLE = 1000


def stream(name: str) -> random.Random:
    """Return a stream of its own for a name."""
    return random.Random(name)  # noqa: S311 - chance, not secrets


def happens(name: str, permille: int) -> bool:
    """Say whether something happens that happens to so many of a thousand names."""
    return int.from_bytes(sha256(name.encode()).digest()[:8]) % PER_MILLE < permille


def length_s(rng: random.Random, mean_s: int) -> int:
    """Return whole seconds, at least one, of which nobody remembers how many have passed."""
    return max(1, round(rng.expovariate(1 / mean_s))) if mean_s > 0 else 1
