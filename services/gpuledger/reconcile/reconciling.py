"""Every run of a record against the ledger, and what would make the ledger say the same."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

import msgspec
import sqlalchemy as sa

from gpuledger.database.engine import Reader, reading
from gpuledger.events.envelope import Event, make
from gpuledger.events.workload import Submitted
from gpuledger.ledger.claims import claimed, installed
from gpuledger.ledger.facts import Known
from gpuledger.ledger.queries import running_workloads
from gpuledger.ledger.store import facts_of
from gpuledger.reconcile.comparison import Amounts, Bounds, Class, Difference, RunKey, compare
from gpuledger.reconcile.conflicts import conflicts
from gpuledger.reconcile.record import Record

PREFIX = "reconcile/"
"""Sources that begin so are believed above streams."""

BATCH = 1000

NO_RUN = RunKey("", "", "")


@dataclass(slots=True)
class Reconciliation:
    """What was compared, run by run; a run that several records list counts once.

    Args:
        amounts: GPU-time of every run on both sides.
        differences: Runs that are not the same on both sides.
        unreadable: Records that could not be read.
        mending: What to tell the ledger so that it says what the record says.
        conflicts: (Cluster, host) -> GPU-time that runs held there at once beyond what is installed.
        covered: Cluster -> from when to when records told of it.
    """

    amounts: dict[RunKey, Amounts] = field(default_factory=dict)
    differences: dict[RunKey, Difference] = field(default_factory=dict)
    unreadable: list[Difference] = field(default_factory=list)
    mending: dict[RunKey, list[tuple[Event, bytes]]] = field(default_factory=dict)
    conflicts: dict[tuple[str, str], int] = field(default_factory=dict)
    covered: dict[str, tuple[int, int]] = field(default_factory=dict)

    @property
    def found(self) -> list[Difference]:
        """Every difference, the unexplained ones first."""
        return sorted(
            [*self.differences.values(), *self.unreadable],
            key=lambda d: (d.klass.is_explained, d.klass, d.key),
        )

    @property
    def is_explained(self) -> bool:
        """Whether there is no difference, or a cause for each."""
        return all(difference.klass.is_explained for difference in self.found)

    def add(self, engine: sa.Engine, record: Record, cluster: str, speaker: str, bounds: Bounds) -> None:
        """Compare what a record says of one cluster.

        Args:
            engine: The database.
            record: The record.
            cluster: The cluster.
            speaker: The source of all facts about the scheduler's jobs; others may book to the cluster too.
            bounds: What the record covers.

        Raises:
            Unavailable: When the database cannot be reached.
        """
        with reading(engine) as reader:
            theirs = {
                workload: events for (book, workload), events in record.facts.items() if book == cluster
            }
            told_s = [event.at_s for events in theirs.values() for event in events]
            self._cover(cluster, min([bounds.from_s, *told_s]), min(bounds.to_s, bounds.taken_s))
            ours = set(running_workloads(reader, cluster, bounds.from_s, bounds.to_s))
            for workload, facts in _known(reader, cluster, sorted(theirs.keys() | ours)):
                told = theirs.get(workload, [])
                if not told and not any(fact.source.removeprefix(PREFIX) == speaker for fact in facts):
                    continue
                self._compare(cluster, workload, facts, told, bounds)

    def find_conflicts(self, engine: sa.Engine) -> None:
        """Find claims of runs that overlap on one GPU, over all that the records told of.

        Raises:
            Unavailable: When the database cannot be reached.
        """
        with reading(engine) as reader:
            for cluster, span in sorted(self.covered.items()):
                found = conflicts(claimed(reader, cluster, *span), installed(reader, cluster, *span))
                self.conflicts |= {(cluster, host): gpu_ms for host, gpu_ms in found.items()}

    def note_faults(self, record: Record) -> None:
        """Add the records that could not be read."""
        self.unreadable += [
            Difference(Class.UNREADABLE, NO_RUN, 0, 0, f"{fault.message}. {fault.hint}")
            for fault in record.faults
        ]

    def _cover(self, cluster: str, from_s: int, to_s: int) -> None:
        before_s, until_s = self.covered.get(cluster, (from_s, to_s))
        self.covered[cluster] = min(before_s, from_s), max(until_s, to_s)

    def _compare(
        self, cluster: str, workload: str, facts: Sequence[Known], told: Sequence[Event], bounds: Bounds
    ) -> None:
        record = [Known(event.data, event.at_s, event.source, event.digest) for event in told]
        for key, amounts, difference in compare(cluster, workload, facts, record, bounds):
            self.amounts[key] = amounts
            if difference is None:
                continue
            self.differences[key] = difference
            if difference.klass.is_mendable:
                self.mending[key] = list(mend(told, facts, key.run, bounds.taken_s))


def mend(
    told: Sequence[Event], facts: Sequence[Known], run: str, taken_s: int
) -> Iterator[tuple[Event, bytes]]:
    """Yield what the record says of a run, as a reconciliation says it: of several the newest counts."""
    is_submitted = any(isinstance(fact.data, Submitted) for fact in facts)
    for event in told:
        fact = event.data
        if isinstance(fact, Submitted):
            if is_submitted and fact.account in {getattr(f.data, "account", None) for f in facts}:
                continue
        elif getattr(fact, "run", None) not in {run, None}:
            continue
        if "version" in fact.__struct_fields__:
            fact = msgspec.structs.replace(fact, version=taken_s)
        yield make(id=event.id, source=PREFIX + event.source.removeprefix(PREFIX), at_s=event.at_s, data=fact)


def _known(reader: Reader, cluster: str, workloads: Iterable[str]) -> Iterator[tuple[str, list[Known]]]:
    """Yield the facts that the ledger has of each workload; none for one that it does not know."""
    names = iter(workloads)
    for batch in iter(lambda: list(islice(names, BATCH)), []):
        facts: dict[str, list[Known]] = {name: [] for name in batch}
        for name, known in facts_of(reader, cluster, batch):
            facts[name].append(known)
        yield from facts.items()
