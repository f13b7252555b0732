"""The yardstick of a cycle: what it takes to write down as many decisions that nobody had to make."""

import time
from collections.abc import Sequence

from gpuledger.kernel.collecting import without_collecting
from gpuledger.policy.cycle import PendingWorkload

TIMES = 3


def seconds_of(pending: Sequence[PendingWorkload]) -> float:
    """Return the processor time of sorting keyed tuples and putting a sentence and figures beside each, of three."""
    with without_collecting():
        began = time.process_time()
        for _ in range(TIMES):
            _written(pending)
        return (time.process_time() - began) / TIMES


def _written(pending: Sequence[PendingWorkload]) -> list[dict[str, object]]:
    keyed = sorted((n * 7919 % 100_003, n, workload.workload) for n, workload in enumerate(pending))
    return [
        {
            "workload": name,
            "action": "wait",
            "reason": f"Waits at place {position}: of {key} GPUs {n} are missing, and account {name} comes before.",
            "numbers": {"position": position, "gpus_milli": key, "free_milli": n, "missing_milli": key - n},
        }
        for position, (key, n, name) in enumerate(keyed, start=1)
    ]
