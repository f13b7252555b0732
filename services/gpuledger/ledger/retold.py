"""The history of a cluster over a stretch of time, to be told again: workloads with all their facts, hosts, shares.

Every read can be repeated as of a row of the book (``seq``): what was booked later is not known.
"""

from collections.abc import Iterator, Sequence

from gpuledger.database.engine import Reader
from gpuledger.ledger import store
from gpuledger.ledger.as_of import said
from gpuledger.ledger.copying import driver
from gpuledger.ledger.facts import Known
from gpuledger.ledger.inventory import HostInterval

_AT_ONCE = 1_000
"""So many workloads are asked for together."""


def iter_workloads(
    reader: Reader, cluster: str, from_s: int, to_s: int, *, seq: int | None = None
) -> Iterator[tuple[str, list[Known]]]:
    """Yield each workload that ran or waited in ``[from_s, to_s)`` with all that is known of it.

    They come in the order in which the book first heard of them.
    """
    names = _names(reader, cluster, from_s, to_s, seq)
    for first in range(0, len(names), _AT_ONCE):
        some: dict[str, list[Known]] = {name: [] for name in names[first : first + _AT_ONCE]}
        for name, known in store.facts_of(reader, cluster, list(some), seq=seq):
            some[name].append(known)
        yield from some.items()


def _names(reader: Reader, cluster: str, from_s: int, to_s: int, seq: int | None) -> Sequence[str]:
    rows = driver(reader).execute(
        f"""
        WITH there AS (
            SELECT workload FROM ledger.segments AS s
            WHERE book = %(book)s AND {said("s", seq)} AND from_at < to_timestamp(%(to)s)
              AND (to_at IS NULL OR to_at > to_timestamp(%(from)s))
            UNION
            SELECT workload FROM ledger.waits AS w
            WHERE book = %(book)s AND {said("w", seq)} AND from_at < to_timestamp(%(to)s)
              AND (to_at IS NULL OR to_at > to_timestamp(%(from)s))
        )
        SELECT workload FROM ledger.journal JOIN there USING (workload)
        WHERE book = %(book)s AND (%(seq)s::bigint IS NULL OR seq <= %(seq)s)
        GROUP BY workload ORDER BY min(seq)
        """,
        {"book": cluster, "from": from_s, "to": to_s, "seq": seq},
    )
    return [name for (name,) in rows]


def host_intervals(
    reader: Reader, cluster: str, from_s: int, to_s: int, *, seq: int | None = None
) -> list[HostInterval]:
    """Return what was installed in ``[from_s, to_s)``, and its health; by host and time."""
    rows = driver(reader).execute(
        "SELECT host, gpus, gpu_model, state, extract(epoch FROM from_at)::bigint, extract(epoch FROM to_at)::bigint,"
        f" partial_use FROM ledger.hosts AS h WHERE book = %(book)s AND {said('h', seq)}"
        " AND from_at < to_timestamp(%(to)s) AND (to_at IS NULL OR to_at > to_timestamp(%(from)s))"
        " ORDER BY host, from_at, state",
        {"book": cluster, "from": from_s, "to": to_s, "seq": seq},
    )
    return [HostInterval(*row) for row in rows]


def begins_s(reader: Reader, cluster: str, *, seq: int | None = None) -> int | None:
    """Return the first instant of which the book tells anything: a host, a wait or a run; None for none."""
    row = (
        driver(reader)
        .execute(
            "SELECT extract(epoch FROM min(first_at))::bigint FROM ("
            f"SELECT min(from_at) AS first_at FROM ledger.segments AS s WHERE book = %(book)s AND {said('s', seq)}"
            f" UNION ALL SELECT min(from_at) FROM ledger.waits AS w WHERE book = %(book)s AND {said('w', seq)}"
            f" UNION ALL SELECT min(from_at) FROM ledger.hosts AS h WHERE book = %(book)s AND {said('h', seq)}) AS of",
            {"book": cluster, "seq": seq},
        )
        .fetchone()
    )
    return row[0] if row else None


__all__ = ["begins_s", "host_intervals", "iter_workloads"]
