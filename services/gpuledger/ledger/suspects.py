"""Which runs may have lost their end since it was looked for last: a search reads the facts of these, and of no others.

A run loses its end by what is new: its limit passes, another run or fact comes to its hosts, its devices are sampled
without it. Where none of that is so an earlier search has said all there is to say. Whoever is named here may be alive.
"""

from typing import NamedTuple

from gpuledger.database.engine import Reader, Writer
from gpuledger.kernel.clock import instant
from gpuledger.ledger.copying import driver
from gpuledger.ledger.lost_ends import GRACE_S, SILENCE_S
from gpuledger.ledger.sealing import BUCKET_S


class Looked(NamedTuple):
    """How far an earlier search had looked.

    Args:
        seq: The newest row of the book that it knew.
        at_s: The instant that it asked for.
    """

    seq: int
    at_s: int


NOWHERE = Looked(0, 0)
"""Nobody has looked yet: every run is a suspect."""


def suspects(
    connection: Reader | Writer, cluster: str, as_of_s: int, since_s: int, looked: Looked
) -> list[str]:
    """Return workloads with a run that is open, or that an estimate closed, and of which something is new; sorted.

    Args:
        connection: Where everything is read.
        cluster: The cluster, which is also the book.
        as_of_s: The instant that is asked for, in seconds since the epoch.
        since_s: Estimates of ends before it are not revised any more.
        looked: How far an earlier search had looked.
    """
    values = {
        "book": cluster,
        "as_of": instant(as_of_s),
        "since": instant(since_s),
        "seq": looked.seq,
        "looked": instant(looked.at_s),
        "overdue": instant(max(0, as_of_s - GRACE_S)),
        "silent": instant(max(0, as_of_s - SILENCE_S - BUCKET_S)),
    }
    changed = _changed_hosts(connection, values)
    rows = driver(connection).execute(
        """
        SELECT s.workload, s.hosts, s.since_seq > %(seq)s OR s.capped_at <= %(overdue)s OR named.at <= %(silent)s
               OR (named.is_shared AND named.at IS NOT NULL)
        FROM ledger.segments AS s CROSS JOIN LATERAL (
            -- A handle that other runs have too may have been theirs when it was sampled last.
            SELECT max(at) AS at, bool_or(is_shared) AS is_shared FROM (
                SELECT (SELECT max(b.bucket_at) FROM telemetry.buckets AS b
                        WHERE b.book = s.book AND b.workload = s.workload AND b.run = s.run AND b.run <> '') AS at,
                       false AS is_shared
                UNION ALL
                SELECT (SELECT max(b.bucket_at) FROM telemetry.buckets AS b
                        WHERE b.book = s.book AND b.workload = '' AND b.run = h.handle AND b.run <> ''),
                       EXISTS (SELECT FROM telemetry.handles AS o WHERE o.book = h.book AND o.handle = h.handle
                               AND (o.workload, o.run) <> (h.workload, h.run))
                FROM telemetry.handles AS h
                WHERE h.book = s.book AND h.workload = s.workload AND h.run = s.run) AS each_name) AS named
        WHERE s.book = %(book)s AND s.until_seq IS NULL AND s.to_at IS NULL AND s.from_at < %(as_of)s
        """,
        values,
    )
    found = {workload for workload, hosts, is_due in rows if is_due or not changed.isdisjoint(hosts)}
    return sorted(found | _revisable(connection, values))


def _changed_hosts(connection: Reader | Writer, values: dict[str, object]) -> set[str]:
    """Return the hosts that a run came to, or a fact speaks of, as far as that is new."""
    rows = driver(connection).execute(
        """
        SELECT DISTINCT unnest(hosts) FROM ledger.segments
        WHERE book = %(book)s AND until_seq IS NULL AND from_at <= %(as_of)s AND since_seq > %(seq)s
        UNION
        SELECT DISTINCT unnest(hosts) FROM ledger.segments
        WHERE book = %(book)s AND until_seq IS NULL AND from_at <= %(as_of)s AND from_at > %(looked)s
        UNION
        SELECT body->>'host' FROM ledger.journal
        WHERE book = %(book)s AND workload IS NULL
          AND type LIKE 'host.%%'
          AND (seq > %(seq)s OR effective_at > %(looked)s)
        """,
        values,
    )
    return {host for (host,) in rows}


def _revisable(connection: Reader | Writer, values: dict[str, object]) -> set[str]:
    """Return the workloads with an estimated end of which something is new: a fact, or a sample after it."""
    rows = driver(connection).execute(
        """
        SELECT s.workload FROM ledger.segments AS s
        WHERE s.book = %(book)s AND s.until_seq IS NULL AND s.estimated AND s.from_at < %(as_of)s
          AND s.to_at >= %(since)s
          AND (EXISTS (SELECT FROM ledger.journal AS j
                       WHERE j.book = s.book AND j.workload = s.workload AND j.seq > %(seq)s)
               OR EXISTS (SELECT FROM telemetry.buckets AS b
                          WHERE b.book = s.book AND b.workload = s.workload AND b.run = s.run
                            AND b.run <> '' AND b.bucket_at >= s.to_at - interval '5 minutes')
               OR EXISTS (SELECT FROM telemetry.handles AS h JOIN telemetry.buckets AS b
                              ON b.book = h.book AND b.workload = '' AND b.run = h.handle AND b.run <> ''
                          WHERE h.book = s.book AND h.workload = s.workload AND h.run = s.run
                            AND b.bucket_at >= s.to_at - interval '5 minutes'))
        """,
        values,
    )
    return {workload for (workload,) in rows}
