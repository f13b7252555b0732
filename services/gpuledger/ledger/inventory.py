"""Facts about a host -> the intervals in which it was installed, and its health in each. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from gpuledger.events import host as events
from gpuledger.events.envelope import decode_data
from gpuledger.ledger.facts import Known, rank


@dataclass(frozen=True, slots=True)
class HostInterval:
    """A host with constant GPUs and health over ``[from_s, to_s)``; ``to_s`` is None for "until now"."""

    host: str
    gpus: int
    gpu_model: str
    state: str
    from_s: int
    to_s: int | None


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
    for fact in sorted(facts, key=lambda f: rank(f.known)):
        newest[fact.known.at_s] = fact
    found: list[HostInterval] = []
    current: tuple[int, events.HostFact, str] | None = None
    for at_s in sorted(newest):
        said = newest[at_s].data
        if current is not None:
            since, data, state = current
            found.append(HostInterval(data.host, data.gpus, data.gpu_model, state, since, at_s))
        retired = isinstance(said, events.Retired)
        current = None if retired else (at_s, said, said.state or "healthy")
    if current is not None:
        since, data, state = current
        found.append(HostInterval(data.host, data.gpus, data.gpu_model, state, since, None))
    return [i for i in found if i.gpus > 0]
