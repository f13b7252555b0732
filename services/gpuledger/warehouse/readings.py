"""The readings of the four layers: exact ratios of sums, so that the API, the pages and a test agree.

Every function takes sums of integer gpu_ms and answers with a ``Decimal`` of four decimals, rounded half to
even, or with None where the denominator is zero: no data is neither 0 nor 100 %.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import NamedTuple

_PLACES = 4


class Owed(NamedTuple):
    """What one account was owed and was given in one hour.

    Args:
        owed_gpu_ms: W = min(entitlement, demand).
        delivered_gpu_ms: L, allocated GPU-time net of credits.
    """

    owed_gpu_ms: int
    delivered_gpu_ms: int


class Impact(NamedTuple):
    """The three readings of delivered / owed; ``window`` is the headline.

    Args:
        raw: sum of L / sum of W; above 1 where more was given than was owed.
        window: min(sum of L, sum of W) / sum of W.
        hourly: sum of min(L, W) / sum of W; shown, never gated.
    """

    raw: Decimal | None
    window: Decimal | None
    hourly: Decimal | None


NO_IMPACT = Impact(None, None, None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sums:
    """Sums of gpu_ms over any set of hours or days; capacity is None without inventory.

    Args:
        installed_gpu_ms: I.
        unhealthy_gpu_ms: Unhealthy and empty, as in the partition.
        unhealthy_occupied_gpu_ms: Unhealthy while a run held it; occupied in the partition.
        maintenance_gpu_ms: M, in planned maintenance or draining, and empty.
        allocated_gpu_ms: A.
        unallocated_gpu_ms: N.
        overhead_gpu_ms: O.
        sampled_gpu_ms: Assigned GPU-time with a sample.
        used_gpu_ms: Sampled GPU-time times the rung.
    """

    installed_gpu_ms: int | None
    unhealthy_gpu_ms: int | None
    unhealthy_occupied_gpu_ms: int | None
    maintenance_gpu_ms: int | None
    allocated_gpu_ms: int
    unallocated_gpu_ms: int
    overhead_gpu_ms: int | None
    sampled_gpu_ms: int
    used_gpu_ms: int

    @property
    def occupied_gpu_ms(self) -> int:
        """A + N: GPU-time that runs held."""
        return self.allocated_gpu_ms + self.unallocated_gpu_ms

    @property
    def healthy_gpu_ms(self) -> int | None:
        """H = I - U - M; U counts every unhealthy GPU, held by a run or not."""
        usable = self.usable_gpu_ms
        return None if usable is None else usable - (self.unhealthy_occupied_gpu_ms or 0)

    @property
    def usable_gpu_ms(self) -> int | None:
        """H and the unhealthy GPUs that runs held: what occupancy is a part of, so that it never passes 1."""
        if self.installed_gpu_ms is None:
            return None
        return self.installed_gpu_ms - (self.unhealthy_gpu_ms or 0) - (self.maintenance_gpu_ms or 0)

    def availability(self) -> Decimal | None:
        """Return H / I."""
        return ratio(self.healthy_gpu_ms, self.installed_gpu_ms)

    def availability_outside_maintenance(self) -> Decimal | None:
        """Return H / (I - M)."""
        if self.installed_gpu_ms is None:
            return None
        return ratio(self.healthy_gpu_ms, self.installed_gpu_ms - (self.maintenance_gpu_ms or 0))

    def occupancy(self) -> Decimal | None:
        """Return (A + N) / usable."""
        return ratio(self.occupied_gpu_ms, self.usable_gpu_ms)

    def occupancy_with_overhead(self) -> Decimal | None:
        """Return (A + N + O) / usable."""
        return ratio(self.occupied_gpu_ms + (self.overhead_gpu_ms or 0), self.usable_gpu_ms)

    def utilisation(self) -> Decimal | None:
        """Return used / sampled: None without a sample, for missing is unknown."""
        return ratio(self.used_gpu_ms, self.sampled_gpu_ms)

    def coverage(self) -> Decimal | None:
        """Return sampled / assigned, which stands beside every utilisation."""
        return ratio(self.sampled_gpu_ms, self.occupied_gpu_ms)


def ratio(numerator: int | None, denominator: int | None) -> Decimal | None:
    """Return the quotient with four decimals, half to even; None where a side is missing or the divisor 0."""
    if numerator is None or not denominator:
        return None
    # A Fraction rounds exactly; a Decimal quotient would be rounded twice.
    return Decimal(round(Fraction(numerator, denominator) * 10**_PLACES)).scaleb(-_PLACES)


def impact(rows: Iterable[Owed]) -> Impact:
    """Return the three readings of one account over its hours."""
    owed = delivered = met = 0
    for row in rows:
        owed += row.owed_gpu_ms
        delivered += row.delivered_gpu_ms
        met += min(row.owed_gpu_ms, row.delivered_gpu_ms)
    return Impact(ratio(delivered, owed), ratio(min(delivered, owed), owed), ratio(met, owed))


def cluster_impact(accounts: Iterable[Iterable[Owed]]) -> Impact:
    """Return a cluster's readings: each account is cut at what it was owed over the window, then summed."""
    owed = delivered = met = in_window = 0
    for rows in accounts:
        hours = list(rows)
        account_owed = sum(row.owed_gpu_ms for row in hours)
        account_delivered = sum(row.delivered_gpu_ms for row in hours)
        owed += account_owed
        delivered += account_delivered
        met += sum(min(row.owed_gpu_ms, row.delivered_gpu_ms) for row in hours)
        in_window += min(account_owed, account_delivered)
    return Impact(ratio(delivered, owed), ratio(in_window, owed), ratio(met, owed))


__all__ = ["NO_IMPACT", "Impact", "Owed", "Sums", "cluster_impact", "impact", "ratio"]
