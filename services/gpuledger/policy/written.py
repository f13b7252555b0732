"""The decisions of a cycle, each written down once: for the digest, for who keeps them, and counted."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

import msgspec

from gpuledger.kernel.collecting import without_cycles
from gpuledger.ledger.cycle_decisions import Digest, Said
from gpuledger.policy.decisions import Action, Decision, Shared
from gpuledger.policy.published import decision_json

_AT_ONCE = 256

_decode = msgspec.json.Decoder().decode


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """Every decision of a cycle under its published keys.

    Args:
        said: Them, in their order.
        digest: Of all of them, as it is journalled.
        waiting_milli: Milli-GPU -> how many wait for so many.
    """

    said: tuple[Said, ...]
    digest: str
    waiting_milli: Mapping[int, int]

    def read(self) -> list[dict[str, Any]]:
        """Return them as values again."""
        return [_decode(one.json) for one in self.said]


def write(decisions: Iterable[Decision | Shared]) -> Written:
    """Write decisions down.

    What some are made of is gone before the next are made: a hundred thousand of them would lie all over the memory,
    and take longer to be read again than they took to be made.
    """
    digest = Digest()
    said: list[Said] = []
    waiting: Counter[int] = Counter()
    following = iter(decisions)
    with without_cycles():  # nothing that is published refers to itself
        while some := [decision_json(decision) for decision in islice(following, _AT_ONCE)]:
            digest.add(some)
            said += map(Said.of, some)
            waiting.update(
                one["numbers"].get("gpus_milli", 0) for one in some if one["action"] == Action.WAIT
            )
    return Written(said=tuple(said), digest=digest.hex(), waiting_milli=waiting)
