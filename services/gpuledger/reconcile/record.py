"""A scheduler's own record, read as an import would read it."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from gpuledger.events.envelope import Event, book_of
from gpuledger.events.workload import WorkloadFact
from gpuledger.kernel.errors import Refused
from gpuledger.ledger.facts import STOPS
from gpuledger.reconcile.comparison import Bounds
from gpuledger.sources.protocol import Fault, ImportOptions, Source, Translated

Workload = tuple[str, str]
"""Cluster and workload."""


@dataclass(slots=True)
class Record:
    """What a record says.

    Args:
        facts: Everything about each workload.
        faults: What could not be read.
    """

    facts: dict[Workload, list[Event]] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)

    def add(self, items: Iterable[Translated | Fault]) -> None:
        """Take in what a source yields."""
        for item in items:
            if isinstance(item, Fault):
                self.faults.append(item)
                continue
            for event, _ in item.events:
                if isinstance(event.data, WorkloadFact):
                    self.facts.setdefault((book_of(event.data), event.data.workload), []).append(event)

    @property
    def clusters(self) -> list[str]:
        """The clusters that it speaks of, sorted."""
        return sorted({cluster for cluster, _ in self.facts})

    def bounds(self, cluster: str, grace_s: int, from_s: int | None = None) -> Bounds:
        """Return what the record covers of a cluster, by what it holds.

        A record that was asked for from some instant on lists every run that ended after it: so what ended after
        the first end in it must be there. It was taken after the last thing that it knows of.

        Args:
            cluster: The cluster.
            grace_s: What happened so shortly before may still be on its way to the ledger.
            from_s: From when on it was asked for, where that is known.
        """
        instants = [event.at_s for event in self._of(cluster)]
        ends = [e.at_s for e in self._of(cluster) if isinstance(e.data, STOPS) and e.data.run is not None]
        taken_s = max(instants, default=0) + 1
        return Bounds(min(ends, default=taken_s) if from_s is None else from_s, taken_s, taken_s, grace_s)

    def _of(self, cluster: str) -> Iterator[Event]:
        return (event for (book, _), events in self.facts.items() if book == cluster for event in events)


def read_record(path: Path, sources: Iterable[Source], options: ImportOptions) -> Record:
    """Read a file with the first of the sources that it is of the kind of.

    Raises:
        Refused: When it is of none, as the last of them says.
    """
    refusal: Refused | None = None
    for source in sources:
        record = Record()
        try:
            record.add(source.read(path, options))
        except Refused as error:
            refusal = error
            continue
        return record
    assert refusal is not None  # noqa: S101 - there is at least one source
    raise refusal
