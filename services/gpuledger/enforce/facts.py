"""What every enforcer works from: a cycle, and the ledger at the moment of acting. Values only.

A cycle may be a minute old, or an hour. What it issued stands until the next; whom it told to leave is looked at
again in the ledger before anything is stopped.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, NamedTuple

from gpuledger.kernel.accounts import lineage
from gpuledger.kernel.amounts import GPU_MILLI
from gpuledger.policy.state import RunId, RunningRun
from gpuledger.policy.words import gpus_text

PPM = 1_000_000


class Issued(NamedTuple):
    """What one account is issued.

    Args:
        account: Its path.
        share_ppm: Its share of the parent, in parts per million.
        issued_milli: Milli-GPU issued now.
        demand_milli: Milli-GPU it asks for.
        entitled_milli: Its part of the supply by shares alone.
    """

    account: str
    share_ppm: int
    issued_milli: int
    demand_milli: int
    entitled_milli: int

    @property
    def weight(self) -> int:
        """What a scheduler is told to weigh it with, in milli-GPU.

        What is issued; for an account that asks for nothing, what it is entitled to, so that its next job does not
        find it last. At least 1 with a share, and 0 without.
        """
        if self.share_ppm == 0:
            return 0
        return max(self.issued_milli if self.demand_milli else self.entitled_milli, 1)

    @property
    def why(self) -> str:
        """Where the weight comes from."""
        if self.share_ppm == 0:
            return "its share is 0"
        if self.demand_milli:
            return f"{gpus_text(self.issued_milli)} GPUs are issued to {self.account}"
        return f"{self.account} asks for nothing and is entitled to {gpus_text(self.entitled_milli)} GPUs"


class Leaving(NamedTuple):
    """A run that the cycle told to leave.

    Args:
        id: Its workload and its name.
        reason: Why, as the cycle said it.
        spared: Why it stays all the same, as the ledger is now; empty when it has to go.
    """

    id: RunId
    reason: str
    spared: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """A cycle, and the ledger now.

    Args:
        record: The cycle under its published keys.
        cycle_at_s: The instant that it decided for.
        now_s: The present, in seconds since 1970.
        running: The runs that occupy GPUs now.
        draining: Hosts that are to take no new run, or False for those that are well.
        left_gpu_ms: Hard account -> what it has left to spend now, in physical gpu_ms.
        stale_after_s: A cycle older than this stops nothing and orders nothing.
    """

    record: Mapping[str, Any]
    cycle_at_s: int
    now_s: int
    running: Mapping[RunId, RunningRun] = field(default_factory=dict)
    draining: Mapping[str, bool] = field(default_factory=dict)
    left_gpu_ms: Mapping[str, int] = field(default_factory=dict)
    stale_after_s: int = 600

    @property
    def cycle(self) -> str:
        """The name of the cycle."""
        return str(self.record["cycle"])

    @property
    def stale(self) -> str:
        """Why nothing is stopped or ordered by this cycle; empty when it is fresh."""
        age_s = self.now_s - self.cycle_at_s
        if age_s <= self.stale_after_s:
            return ""
        return f"cycle {self.cycle} is {age_s} s old: nothing is stopped or ordered by it"

    def issued(self) -> dict[str, Issued]:
        """Return what each account is issued, by path."""
        ppm = {one["account"]: int(one["share_ppm"]) for one in self.record["allocations"]}
        supply = milli(self.record["supply_gpus"])
        found = {}
        for one in self.record["allocations"]:
            path = one["account"]
            part = Fraction(supply)
            for node in lineage(path):
                part *= Fraction(ppm.get(node, PPM), PPM)
            found[path] = Issued(
                path, ppm[path], milli(one["issued_gpus"]), milli(one["demand_gpus"]), int(part)
            )
        return found

    def order(self) -> Sequence[str]:
        """Return the workloads of the queue, next to be served first; those outside it have no place."""
        placed = [
            (decision["numbers"]["position"], decision["workload"])
            for decision in self.record["decisions"]
            if "position" in decision["numbers"] and decision["action"] in {"start", "wait"}
        ]
        return [workload for _, workload in sorted(placed)]

    def leaving(self) -> list[Leaving]:
        """Return the runs that were told to leave, each with why it may not yet, if so."""
        found = []
        for decision in self.record["decisions"]:
            if decision["action"] == "preempt":
                id_ = RunId(decision["workload"], decision["run"])
                found.append(Leaving(id_, decision["reason"], self._spared(id_)))
        return found

    def _spared(self, id_: RunId) -> str:
        run = self.running.get(id_)
        if run is None:
            return "the ledger knows no such run any more"
        if not run.is_preemptible(self.now_s):
            return f"it is within its minimum runtime for {run.protected_until_s - self.now_s} s more"
        return self.stale


def milli(published: int | str) -> int:
    """Return GPUs as published (an integer, or a string with three decimals) in milli-GPU."""
    whole, _, part = str(published).partition(".")
    return int(whole) * GPU_MILLI + int((part + "000")[:3])
