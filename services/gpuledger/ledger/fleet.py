"""The hosts of clusters as the books have them: what each holds, how well it is, since when, and why."""

import datetime as dt
from dataclasses import dataclass
from typing import Any

from gpuledger.database.engine import Reader
from gpuledger.kernel.clock import iso
from gpuledger.ledger import queries
from gpuledger.ledger.as_of import said, seq_of, vector_of
from gpuledger.ledger.copying import driver


@dataclass(frozen=True, slots=True)
class InstalledHost:
    """A host that is installed at an instant.

    Args:
        gpus: Whole devices that it holds.
        usable_gpus: Those of them that may take new runs.
        state: The worst of its parts.
        since: When that state began.
        reason: The code that came with it, if any did.
        partial_use: Whether the other devices may be used while some are in trouble.
    """

    cluster: str
    host: str
    gpu_model: str
    gpus: int
    usable_gpus: int
    state: str
    since: dt.datetime
    reason: str | None
    partial_use: bool

    def as_json(self) -> dict[str, Any]:
        """Return the host under its published keys."""
        told = {name: getattr(self, name) for name in self.__slots__}
        return {**told, "since": iso(self.since)}


def installed_hosts(
    reader: Reader, cluster: str | None, at_s: int, as_of: dt.datetime | None = None
) -> list[InstalledHost]:
    """Return the hosts that are installed at an instant, by cluster and name.

    Args:
        reader: A snapshot.
        cluster: One cluster; all of them unless given.
        at_s: The instant.
        as_of: What the books said at this recorded time; now unless given.

    Raises:
        NotFound: When the cluster has no book.
    """
    queries.require_cluster(reader, cluster)
    vector = vector_of(reader, as_of)
    found: list[InstalledHost] = []
    for book in queries.clusters(reader) if cluster is None else [cluster]:
        found += _of_book(reader, book, at_s, seq_of(vector, book))
    return found


def _of_book(reader: Reader, book: str, at_s: int, seq: int | None) -> list[InstalledHost]:
    rows = driver(reader).execute(
        f"""
        SELECT h.host, min(h.gpu_model), sum(h.gpus)::bigint,
               coalesce(sum(h.gpus) FILTER (WHERE h.state IN ('healthy', 'reserved')), 0)::bigint,
               (array_agg(h.state ORDER BY array_position(
                   ARRAY['unhealthy', 'maintenance', 'draining', 'reserved', 'healthy'], h.state)))[1],
               max(h.from_at), bool_or(h.partial_use),
               (SELECT j.body ->> 'reason' FROM ledger.journal AS j
                WHERE j.book = %(book)s AND j.workload IS NULL
                  AND j.type IN ('host.registered', 'host.state_changed')
                  AND j.body ->> 'host' = h.host AND j.effective_at = max(h.from_at)
                  AND (%(seq)s::bigint IS NULL OR j.seq <= %(seq)s) ORDER BY j.seq DESC LIMIT 1)
        FROM ledger.hosts AS h
        WHERE h.book = %(book)s AND {said("h", seq)}
          AND h.from_at <= to_timestamp(%(at)s) AND (h.to_at IS NULL OR h.to_at > to_timestamp(%(at)s))
        GROUP BY h.host ORDER BY h.host
        """,
        {"book": book, "at": at_s, "seq": seq},
    )
    return [
        InstalledHost(book, host, model, gpus, usable, state, since, reason, partial)
        for host, model, gpus, usable, state, since, partial, reason in rows
    ]
