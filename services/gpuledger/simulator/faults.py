"""When hosts break, and when somebody wants to repair them: drawn for each host by itself.

What is drawn for a host depends on the seed and its name alone, not on what a world does: every world meets the same
faults at the same instants.
"""

from collections.abc import Iterator
from typing import NamedTuple

from gpuledger.simulator.chance import length_s, stream
from gpuledger.simulator.scenario import FaultModel


class Outage(NamedTuple):
    """A fault, or a wish to repair.

    Args:
        at_s: When.
        lasts_s: How long the host is down: from the fault, or from when it is empty.
    """

    at_s: int
    lasts_s: int


def faults(model: FaultModel, host: str, *, seed: int, start_s: int) -> Iterator[Outage]:
    """Yield the faults that take a host down at once, for ever; each comes after the one before is mended."""
    rng = stream(f"{seed}/faults/{host}")
    at_s = start_s
    while model.mtbf_s is not None:
        at_s += length_s(rng, model.mtbf_s)
        outage = Outage(at_s, length_s(rng, model.repair_s))
        yield outage
        at_s += outage.lasts_s


def wishes(model: FaultModel, host: str, *, seed: int, start_s: int) -> Iterator[Outage]:
    """Yield the requests to repair a host once it is empty, for ever."""
    rng = stream(f"{seed}/drains/{host}")
    at_s = start_s
    while model.drain_mtbf_s is not None:
        at_s += length_s(rng, model.drain_mtbf_s)
        yield Outage(at_s, length_s(rng, model.drain_repair_s))
