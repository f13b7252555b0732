"""Why a workload waits, as the cycle in force decided it: its place, the ratios that led there, its date. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gpuledger.kernel.accounts import lineage, parent
from gpuledger.policy.cadence import Cadence
from gpuledger.policy.published import milli_of, reservations_of
from gpuledger.policy.quotes import Certainty
from gpuledger.policy.state import PolicyConfig
from gpuledger.policy.words import moment


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """Where one account of the path stood among its siblings, at the beginning of the cycle.

    Args:
        account: The account.
        ratio: (used + open holds + par) / (entitled + par + ahead), six decimals; None when it is entitled to nothing.
        used_gpu_ms: Used in the window, open holds included.
        entitled_gpu_ms: Entitled over the window.
        par_gpu_ms: What the ratio counts as both, for the time before an account existed.
        before: The siblings that ask for GPUs and have a lower ratio, the lowest first, with their ratios; a share of
            0 comes after all others, whatever the ratios.
        share_ppm: Its share among the siblings, in parts per million.
    """

    account: str
    ratio: str | None
    used_gpu_ms: int
    entitled_gpu_ms: int
    before: tuple[tuple[str, str | None], ...]
    par_gpu_ms: int = 0
    share_ppm: int = 1_000_000

    def as_json(self) -> dict[str, Any]:
        """Return the level under its published keys."""
        return {
            "account": self.account,
            "share_ppm": self.share_ppm,
            "ratio": self.ratio,
            "used_gpu_ms": self.used_gpu_ms,
            "entitled_gpu_ms": self.entitled_gpu_ms,
            "par_gpu_ms": self.par_gpu_ms,
            "before": [{"account": account, "ratio": ratio} for account, ratio in self.before],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """What the cycle in force decided for a workload.

    Args:
        cycle: The cycle's id.
        at_s: The instant that it decided for.
        action: start, wait or preempt.
        reason: Its sentence: who was preferred and by which comparison, or what it waits for.
        numbers: The figures behind it.
        chain: From the root down to the account.
        starts_by_s: By when it starts, as far as GPUs are promised or reserved to it; None without a date.
        certainty: ``bound`` where there is a date.
        every_s: How often cycles come, as the leader that ran it recorded; None where none did.
        doubts: What has to be said beside the date.
    """

    cycle: str
    at_s: int
    action: str
    reason: str
    numbers: Mapping[str, int]
    chain: tuple[Level, ...] = ()
    starts_by_s: int | None = None
    certainty: Certainty | None = None
    every_s: int | None = None
    doubts: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Return the decision under its published keys."""
        return {
            "cycle": self.cycle,
            "at": moment(self.at_s),
            "action": self.action,
            "reason": self.reason,
            "numbers": dict(self.numbers),
            "place": self.numbers.get("position"),
            "chain": [level.as_json() for level in self.chain],
            "starts_by": None if self.starts_by_s is None else moment(self.starts_by_s),
            "certainty": self.certainty and self.certainty.value,
            "every_s": self.every_s,
        }


def chain_of(account: str, allocations: Sequence[Mapping[str, Any]]) -> tuple[Level, ...]:
    """Return the levels of an account's path in a recorded cycle; those that it does not know are left out."""
    by_path = {a["account"]: a for a in allocations}
    levels = []
    for node in lineage(account):
        mine = by_path.get(node)
        if mine is None:
            continue
        siblings = [a for path, a in by_path.items() if parent(path) == parent(node) and path != node]
        before = [a for a in siblings if milli_of(a["demand_gpus"]) and _is_before(a, mine)]
        before.sort(key=lambda a: (*_place(a), a["account"]))
        levels.append(
            Level(
                account=node,
                ratio=mine["ratio"],
                used_gpu_ms=mine["used_gpu_ms"],
                entitled_gpu_ms=mine["entitled_gpu_ms"],
                par_gpu_ms=mine.get("par_gpu_ms", 0),  # records of before there was any
                share_ppm=mine["share_ppm"],
                before=tuple((a["account"], a["ratio"]) for a in before),
            )
        )
    return tuple(levels)


def date_of(
    workload: str,
    reservations: Sequence[Mapping[str, Any]],
    cadence: Cadence,
    at_s: int,
    config: PolicyConfig,
) -> int | None:
    """Return by when a workload starts for which a recorded cycle keeps GPUs; None when it keeps none."""
    own = [kept for kept in reservations if kept["workload"] == workload]
    kept = next(iter(reservations_of({"reservations": own})), None)
    return None if kept is None else cadence.latest_start_s(kept, at_s, config)


def _is_before(theirs: Mapping[str, Any], mine: Mapping[str, Any]) -> bool:
    return theirs["ratio"] is not None and _place(theirs) < _place(mine)


def _place(allocation: Mapping[str, Any]) -> tuple[bool, int]:
    return not allocation["share_ppm"], _micro(allocation["ratio"])


def _micro(ratio: str | None) -> int:
    """Return a ratio of six decimals in millionths; one that does not exist comes after all others."""
    return 1 << 62 if ratio is None else int(ratio.replace(".", ""))
