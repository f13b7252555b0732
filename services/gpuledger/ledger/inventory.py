"""Facts about a host -> the intervals in which it was installed, and its health in each. Pure.

Trouble of a device is trouble of its host, unless the inventory allows partial use: then it costs the devices that the
fact names, and the others are what was said of the whole host last (DESIGN section 5).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from gpuledger.events import host as events
from gpuledger.events.envelope import decode_data
from gpuledger.ledger.facts import Known, rank


@dataclass(frozen=True, slots=True)
class HostInterval:
    """GPUs of a host in one state over ``[from_s, to_s)``; ``to_s`` is None for "until now".

    Where some of its devices are in trouble and the others may be used there are two for the same time.
    """

    host: str
    gpus: int
    gpu_model: str
    state: str
    from_s: int
    to_s: int | None
    partial_use: bool = False


@dataclass(frozen=True, slots=True)
class HostFact:
    """A fact about a host as the ledger knows it."""

    data: events.HostFact
    known: Known

    @classmethod
    def read(cls, type_: str, body: str, at_s: int, source: str, digest: bytes) -> Self:
        """Read a journalled fact."""
        data = decode_data(type_, body)
        assert isinstance(data, events.HostFact)  # noqa: S101 - the caller selected host.*
        return cls(data, Known(data, at_s, source, digest))


def intervals(facts: Sequence[HostFact]) -> list[HostInterval]:
    """Return the host's intervals; of several facts for one instant the highest rank counts."""
    newest: dict[int, HostFact] = {}
    allowed: dict[int, bool] = {}
    for fact in sorted(facts, key=lambda f: rank(f.known)):
        newest[fact.known.at_s] = fact
        if isinstance(fact.data, events.Registered) and fact.data.partial_use is not None:
            # Whatever is concluded of the same instant: it speaks of health alone.
            allowed[fact.known.at_s] = fact.data.partial_use
    found: list[HostInterval] = []
    whole, partial = "healthy", False
    instants = sorted(newest)
    for at_s, until_s in zip(instants, [*instants[1:], None], strict=False):
        said = newest[at_s].data
        if isinstance(said, events.Retired):
            whole, partial = "healthy", False
            continue
        partial, state, bad = allowed.get(at_s, partial), said.state or "healthy", _in_trouble(said)
        if bad == said.gpus:
            whole = state
        good = said.gpus - bad if partial and state != whole else 0
        found += [
            HostInterval(said.host, gpus, said.gpu_model, of, at_s, until_s, partial)
            for gpus, of in ((good, whole), (said.gpus - good, state))
        ]
    return [i for i in found if i.gpus > 0]


def _in_trouble(said: events.HostFact) -> int:
    """Return of how many GPUs a fact tells the state: those that it names, or all of the host."""
    named = len(set(said.gpu_uuids or ()))
    return named if said.state in ("unhealthy", "draining") and 0 < named < said.gpus else said.gpus
