"""What accounts are owed and given, hour by hour (DESIGN section 5), in integers of gpu_ms.

For an account and an hour: E is its part of the healthy capacity, D what its funded work asked for, running or
eligible to run, W = min(E, D) what it is owed, and L the allocated GPU-time it got. Work whose GPUs x minimum runtime
exceed what the account is entitled to over the whole report can never be placed within it: whatever it asks for and
gets is told apart, as ``placeable`` is what is left without it. Whether that is so is known when the report ends;
what might turn out so is kept by itself until the entitlement so far has passed it.
"""

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from gpuledger.simulator.levels import Level
from gpuledger.simulator.portions import Entitlement

HOUR_S = 3_600
TRAILING_HOURS = 7 * 24


@dataclass(frozen=True, slots=True, kw_only=True)
class Hours:
    """Sums of one account by hour, in gpu_ms.

    Args:
        entitled: E.
        demand: D.
        delivered: L.
        unplaceable_demand: What of D is of work that cannot be placed in the report.
        unplaceable_delivered: What of L is.
    """

    entitled: "array[int]" = field(default_factory=lambda: array("q"))
    demand: "array[int]" = field(default_factory=lambda: array("q"))
    delivered: "array[int]" = field(default_factory=lambda: array("q"))
    unplaceable_demand: Mapping[int, int] = field(default_factory=dict)
    unplaceable_delivered: Mapping[int, int] = field(default_factory=dict)

    def rows(self, *, placeable: bool = False) -> Iterator[tuple[int, int, int]]:
        """Yield E, D and L of each hour, with or without work that cannot be placed."""
        for hour, (entitled, demand, delivered) in enumerate(
            zip(self.entitled, self.demand, self.delivered, strict=True)
        ):
            if placeable:
                yield (
                    entitled,
                    demand - self.unplaceable_demand.get(hour, 0),
                    delivered - self.unplaceable_delivered.get(hour, 0),
                )
            else:
                yield entitled, demand, delivered


@dataclass(slots=True)
class _Contested:
    """Work of one need (GPUs x minimum runtime) that may yet turn out never to be placeable."""

    waiting: Level
    running: Level
    demand: Counter[int] = field(default_factory=Counter)
    delivered: Counter[int] = field(default_factory=Counter)


@dataclass(slots=True)
class _Account:
    waiting: Level
    running: Level
    entitled: "array[int]" = field(default_factory=lambda: array("q"))
    demand: "array[int]" = field(default_factory=lambda: array("q"))
    delivered: "array[int]" = field(default_factory=lambda: array("q"))
    entitled_so_far: int = 0
    contested: dict[int, _Contested] = field(default_factory=dict)


class Owing:
    """Keeps demand and delivery of accounts as they change.

    Args:
        parts: Account -> its part of the cluster; work of other accounts is owed nothing.
        from_s: When the report begins; a full hour.
    """

    def __init__(self, parts: Mapping[str, Fraction], from_s: int) -> None:
        self._from_s = from_s
        self._entitlement = Entitlement(parts)
        self._hour = 0
        self._accounts = {path: self._new() for path in parts}

    def wait(self, at_s: int, account: str, gpus_milli: int, need_gpu_ms: int) -> None:
        """Work asks for GPUs from an instant on, or no longer (negative)."""
        found = self._of(account)
        found.waiting.move(at_s, gpus_milli)
        if need_gpu_ms > found.entitled_so_far:
            self._contested(found, need_gpu_ms).waiting.move(at_s, gpus_milli)

    def run(self, at_s: int, account: str, gpus_milli: int, need_gpu_ms: int) -> None:
        """Allocated work holds GPUs from an instant on, or no longer (negative)."""
        found = self._of(account)
        found.running.move(at_s, gpus_milli)
        if need_gpu_ms > found.entitled_so_far:
            self._contested(found, need_gpu_ms).running.move(at_s, gpus_milli)

    def end_hour(self, to_s: int, healthy_gpu_ms: int) -> None:
        """Note an hour that is over."""
        entitled = self._entitlement.of(healthy_gpu_ms)
        for path, account in self._accounts.items():
            delivered = account.running.take(to_s)
            account.entitled.append(entitled.get(path, 0))
            account.demand.append(account.waiting.take(to_s) + delivered)
            account.delivered.append(delivered)
            account.entitled_so_far += entitled.get(path, 0)
            for need, contested in list(account.contested.items()):
                self._note(contested, to_s)
                if need <= account.entitled_so_far or _is_over(contested):
                    del account.contested[need]
        self._hour += 1

    def hours(self) -> dict[str, Hours]:
        """Return what there was, by account in ascending order, with what turned out not to be placeable."""
        return {path: _hours(account) for path, account in sorted(self._accounts.items())}

    def _new(self) -> _Account:
        account = _Account(Level(self._from_s), Level(self._from_s))
        for hours in (account.entitled, account.demand, account.delivered):
            hours.extend([0] * self._hour)
        return account

    def _of(self, path: str) -> _Account:
        account = self._accounts.get(path)
        if account is None:
            account = self._accounts[path] = self._new()
        return account

    def _contested(self, account: _Account, need_gpu_ms: int) -> _Contested:
        found = account.contested.get(need_gpu_ms)
        if found is None:
            found = account.contested[need_gpu_ms] = _Contested(Level(self._from_s), Level(self._from_s))
        return found

    def _note(self, contested: _Contested, to_s: int) -> None:
        delivered = contested.running.take(to_s)
        if demand := contested.waiting.take(to_s) + delivered:
            contested.demand[self._hour] = demand
            contested.delivered[self._hour] = delivered


def _is_over(contested: _Contested) -> bool:
    return not (contested.demand or contested.waiting.amount or contested.running.amount)


def _hours(account: _Account) -> Hours:
    demand, delivered = Counter[int](), Counter[int]()
    for contested in account.contested.values():
        demand.update(contested.demand)
        delivered.update(contested.delivered)
    return Hours(
        entitled=account.entitled,
        demand=account.demand,
        delivered=account.delivered,
        unplaceable_demand=demand,
        unplaceable_delivered=delivered,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Owed:
    """Sums over hours, in gpu_ms.

    Args:
        entitled: Sum of E.
        demand: Sum of D.
        owed: Sum of W.
        delivered: Sum of L.
        met: Sum of min(L, W) by hour.
        unmet: Sum of what was asked for beyond E.
    """

    entitled: int = 0
    demand: int = 0
    owed: int = 0
    delivered: int = 0
    met: int = 0
    unmet: int = 0

    @property
    def in_window(self) -> int:
        """min(sum of L, sum of W)."""
        return min(self.delivered, self.owed)


def add_up(rows: Iterable[tuple[int, int, int]]) -> Owed:
    """Sum E, D, L of hours."""
    entitled = demand = owed = delivered = met = unmet = 0
    for e, d, given in rows:
        w = min(e, d)
        entitled, demand, owed, delivered = entitled + e, demand + d, owed + w, delivered + given
        met, unmet = met + min(given, w), unmet + d - w
    return Owed(entitled=entitled, demand=demand, owed=owed, delivered=delivered, met=met, unmet=unmet)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trailing:
    """The worst stretch of seven days in a row; of the whole report where that is shorter.

    Args:
        cluster: (sum of min(L, W) by account, sum of W) of the stretch with the lowest quotient; None without any.
        accounts: Account -> its own worst stretch, likewise; those that were owed something.
    """

    cluster: tuple[int, int] | None
    accounts: Mapping[str, tuple[int, int]]


def worst_trailing(accounts: Mapping[str, Hours], *, placeable: bool = False) -> Trailing:
    """Return the worst trailing stretches; they end at each full hour from the seventh day on."""
    together: dict[int, tuple[int, int]] = {}
    worst: dict[str, tuple[int, int]] = {}
    for path, hours in accounts.items():
        for end, (delivered, owed) in _stretches(hours, placeable=placeable):
            met = min(delivered, owed)
            seen_met, seen_owed = together.get(end, (0, 0))
            together[end] = (seen_met + met, seen_owed + owed)
            if owed:
                worst[path] = _worse(worst.get(path), (met, owed))
    cluster: tuple[int, int] | None = None
    for stretch in together.values():
        if stretch[1]:
            cluster = _worse(cluster, stretch)
    return Trailing(cluster=cluster, accounts=worst)


def _stretches(hours: Hours, *, placeable: bool) -> Iterator[tuple[int, tuple[int, int]]]:
    rows = [(given, min(e, d)) for e, d, given in hours.rows(placeable=placeable)]
    length = min(TRAILING_HOURS, len(rows))
    delivered = owed = 0
    for end, (given, w) in enumerate(rows, start=1):
        delivered, owed = delivered + given, owed + w
        if end > length:
            gone, gone_owed = rows[end - length - 1]
            delivered, owed = delivered - gone, owed - gone_owed
        if end >= length:
            yield end, (delivered, owed)


def _worse(a: tuple[int, int] | None, b: tuple[int, int]) -> tuple[int, int]:
    return b if a is None or b[0] * a[1] < a[0] * b[1] else a


__all__ = ["HOUR_S", "TRAILING_HOURS", "Hours", "Owed", "Owing", "Trailing", "add_up", "worst_trailing"]
