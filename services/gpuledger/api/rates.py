"""How often each caller may ask: a steady rate with a burst, reckoned from one instant for each (GCRA).

What is kept of a caller is when their debt of requests is paid off. Nothing runs in the background, and callers that
hash to different shelves never wait for one another. Each process reckons for itself: with several behind one
proxy a caller may have as many times the rate.
"""

import ipaddress
import threading
import time
from collections.abc import Callable
from typing import NamedTuple

_SHELVES = 64
_KEPT_MAX = 1024
"""Callers on a shelf before those whose debt is paid are forgotten."""


class Rate(NamedTuple):
    """What each caller may ask.

    Args:
        per_s: Requests per second in the long run.
        burst: Requests at once after a pause.
    """

    per_s: int
    burst: int


class Verdict(NamedTuple):
    """What becomes of a request.

    Args:
        allowed: Whether it is answered.
        left: How many more would be at this instant.
        wait_s: When the next one would be, in seconds; 0 for at once.
    """

    allowed: bool
    left: int
    wait_s: float


class Limiter:
    """Counts requests by caller.

    Args:
        rate: What each may ask.
        now_s: A clock that never goes back, in seconds.
    """

    def __init__(self, rate: Rate, now_s: Callable[[], float] = time.monotonic) -> None:
        self.rate = rate
        self._now_s = now_s
        self._step_s = 1 / rate.per_s
        self._patience_s = self._step_s * rate.burst
        self._shelves: list[dict[str, float]] = [{} for _ in range(_SHELVES)]
        self._turns = [threading.Lock() for _ in range(_SHELVES)]

    def take(self, caller: str) -> Verdict:
        """Count a request of a caller; one that is not allowed costs nothing."""
        at = hash(caller) % _SHELVES
        with self._turns[at]:
            shelf, now_s = self._shelves[at], self._now_s()
            if len(shelf) > _KEPT_MAX and caller not in shelf:
                for paid in [name for name, paid_s in shelf.items() if paid_s <= now_s]:
                    del shelf[paid]
            paid_s = max(shelf.get(caller, now_s), now_s)
            room_s = self._patience_s - (paid_s - now_s)
            # Half a step of tolerance: sums of fractions are not exact.
            if room_s < self._step_s / 2:
                return Verdict(allowed=False, left=0, wait_s=self._step_s - room_s)
            shelf[caller] = paid_s + self._step_s
            left = int((room_s - self._step_s / 2) / self._step_s)
            return Verdict(allowed=True, left=left, wait_s=0 if left else self._step_s)

    def headers(self, verdict: Verdict) -> dict[str, str]:
        """Return what a caller is told of their rate (the draft of RateLimit header fields)."""
        window_s = max(1, round(self._patience_s))
        return {
            "RateLimit-Policy": f'"caller";q={self.rate.burst};w={window_s}',
            "RateLimit": f'"caller";r={verdict.left};t={_whole(verdict.wait_s)}',
        }


def place_of(host: str | None) -> str:
    """Return whose an address is: of IPv6 the network of 64 bits, all of which whoever has one address has.

    An IPv4 address that is written as IPv6 is the IPv4 address.
    """
    try:
        address = ipaddress.ip_address((host or "").partition("%")[0])
    except ValueError:
        return str(host)
    if address.version == 4:  # noqa: PLR2004 - the version
        return str(address)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ipaddress.ip_network((int(address) >> 64 << 64, 64)))


def _whole(wait_s: float) -> int:
    """Return seconds to wait, rounded up: who waits that long is answered."""
    return int(-(-wait_s // 1))
