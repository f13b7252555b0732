"""Claims that overlap on one GPU: each of them is charged, and what two had at once is told here. Pure."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from itertools import pairwise

from gpuledger.ledger.claims import Claim


def conflicts(claimed: Iterable[Claim], installed: Iterable[Claim]) -> Mapping[str, int]:
    """Return host -> GPU-time in gpu_ms that runs held there beyond what was installed; hosts without any are left out.

    While nothing is known to be installed in a host, nobody can say whether its claims overlap.
    """
    changes: dict[str, dict[int, tuple[int, int]]] = defaultdict(dict)
    for claims, (holds, is_there) in ((claimed, (1, 0)), (installed, (0, 1))):
        for host, milli, from_s, to_s in claims:
            for at_s, sign in ((from_s, milli), (to_s, -milli)):
                held, there = changes[host].get(at_s, (0, 0))
                changes[host][at_s] = held + holds * sign, there + is_there * sign
    found: Counter[str] = Counter()
    for host, edges in changes.items():
        held = there = 0
        for (at_s, (more_held, more_there)), (next_s, _) in pairwise(sorted(edges.items())):
            held, there = held + more_held, there + more_there
            if there and held > there:
                found[host] += (held - there) * (next_s - at_s)
    return dict(sorted(found.items()))
