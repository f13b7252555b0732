"""Which handles a run has: what lets samples find their run, whichever of the two is known first.

``telemetry.handles`` is a projection of the journal: each start adds the handles that follow from it, a source may
tell of more (``workload.located``), and nothing takes one away, so the table is a function of the set of facts. That a
number or a name is used again is no contradiction: the view ``telemetry.run_buckets`` chooses by time.
"""

from collections.abc import Iterable, Iterator

from gpuledger.database.engine import Writer
from gpuledger.events.registry import Fact
from gpuledger.events.workload import Located, Started
from gpuledger.kernel import handles
from gpuledger.ledger.copying import driver

TELL = frozenset({Started, Located})
"""Facts that handles follow from."""

Row = tuple[str, str, str, str]
"""Book, handle, workload, run."""


def handles_of(source: str, fact: Started) -> tuple[str, ...]:
    """Return what hosts call a run, by how the source that tells of its start names runs.

    Args:
        source: The event's, such as ``slurm/west``; sources that no sampler can see runs of give none.
        fact: The start.
    """
    scheduler, _, _ = source.removeprefix("reconcile/").partition("/")
    if scheduler == "slurm":
        return (handles.slurm_job(fact.workload.rpartition("-")[0]),)
    if scheduler == "kubernetes":
        namespace, _, rest = fact.workload.partition("/")
        pod, _, uid = rest.partition("/")
        if not uid:  # a pod of a group: the group is the workload, the pod the run
            return (handles.pod_uid(fact.run),)
        return handles.pod_uid(uid), handles.pod_name(namespace, pod)
    return ()


def rows(told: Iterable[tuple[str, str, Fact]]) -> Iterator[Row]:
    """Yield what follows from (book, source, fact); what is told twice comes twice."""
    for book, source, fact in told:
        if isinstance(fact, Started):
            found: Iterable[str] = handles_of(source, fact)
        elif isinstance(fact, Located):
            found = fact.handles
        else:
            continue
        for handle in found:
            yield book, handle, fact.workload, fact.run


def write(writer: Writer, found: Iterable[Row]) -> None:
    """Keep handles; those that are known already change nothing."""
    if fresh := set(found):
        driver(writer).execute(
            "INSERT INTO telemetry.handles (book, handle, workload, run)"
            " SELECT * FROM unnest(%s::text[], %s::text[], %s::text[], %s::text[]) ON CONFLICT DO NOTHING",
            [list(column) for column in zip(*fresh, strict=True)],
        )
