"""When hosts break, and when somebody wants to repair them: drawn for each host by itself, or as it was.

What is drawn for a host depends on the seed and its name alone, not on what a world does: every world meets the same
faults at the same instants.
"""

from collections.abc import Iterator

from gpuledger.simulator.chance import happens, length_s, stream
from gpuledger.simulator.scenario import FaultModel, FaultRecord, Outage


def faults(model: FaultModel | FaultRecord, host: str, *, seed: int, start_s: int) -> Iterator[Outage]:
    """Yield the faults that take a host down at once; each comes after the one before is mended."""
    if isinstance(model, FaultRecord):
        yield from model.failed.get(host, ())
        return
    rng = stream(f"{seed}/faults/{host}")
    at_s = start_s
    while model.mtbf_s is not None:
        at_s += length_s(rng, model.mtbf_s)
        outage = Outage(at_s, length_s(rng, model.repair_s))
        yield outage
        at_s += outage.lasts_s


def wishes(model: FaultModel | FaultRecord, host: str, *, seed: int, start_s: int) -> Iterator[Outage]:
    """Yield the requests to repair a host once it is empty."""
    if isinstance(model, FaultRecord):
        yield from model.wanted.get(host, ())
        return
    rng = stream(f"{seed}/drains/{host}")
    at_s = start_s
    while model.drain_mtbf_s is not None:
        at_s += length_s(rng, model.drain_mtbf_s)
        yield Outage(at_s, length_s(rng, model.drain_repair_s))


def needs_hands(model: FaultModel | FaultRecord, host: str, at_s: int, *, seed: int) -> bool | None:
    """Say whether the repair that is asked for at an instant needs hands at the machine; None where nobody knows."""
    if isinstance(model, FaultRecord):
        return None
    return happens(f"{seed}/hands/{host}/{at_s}", model.hands_permille)


__all__ = ["Outage", "faults", "needs_hands", "wishes"]
