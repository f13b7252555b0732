"""What every enforcer works from: a cycle read as orders, what it issued, and the ledger at the moment of acting."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import NamedTuple

from gpuledger.kernel.accounts import lineage
from gpuledger.policy.orders import Orders
from gpuledger.policy.published import milli_of
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts(Orders):
    """A cycle, and the ledger now.

    Args:
        draining: Hosts that are to take no new run, or False for those that are well.
        left_gpu_ms: Hard account -> what it has left to spend now, in physical gpu_ms.
    """

    draining: Mapping[str, bool] = field(default_factory=dict)
    left_gpu_ms: Mapping[str, int] = field(default_factory=dict)

    def issued(self) -> dict[str, Issued]:
        """Return what each account is issued, by path."""
        ppm = {one["account"]: int(one["share_ppm"]) for one in self.record["allocations"]}
        supply = milli_of(self.record["supply_gpus"])
        found = {}
        for one in self.record["allocations"]:
            path = one["account"]
            part = Fraction(supply)
            for node in lineage(path):
                part *= Fraction(ppm.get(node, PPM), PPM)
            found[path] = Issued(
                path, ppm[path], milli_of(one["issued_gpus"]), milli_of(one["demand_gpus"]), int(part)
            )
        return found
