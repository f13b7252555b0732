"""What runs claim of hosts, and what is installed there: for the reconciliation, which tells where claims overlap.

A run says how many GPUs it holds and on which hosts, and rarely which devices. Where it says how many on each, that is
what it claims (``ledger.spells``); else its GPUs are spread evenly over its hosts, the odd milli-GPUs to the first.
"""

from collections.abc import Sequence
from typing import NamedTuple

from gpuledger.database.engine import Reader
from gpuledger.ledger import spells
from gpuledger.ledger.copying import driver


class Claim(NamedTuple):
    """GPUs of a host over ``[from_s, to_s)``: held by a run, or installed."""

    host: str
    gpus_milli: int
    from_s: int
    to_s: int


def claimed(reader: Reader, cluster: str, from_s: int, to_s: int) -> Sequence[Claim]:
    """Return what runs held in ``[from_s, to_s)`` of the hosts that they named.

    One that holds them still does so up to its declared limit, beyond which nothing is charged, or to the end.
    """
    said = spells.table(spells.host_spells(reader, spells.Asked(cluster, from_s, to_s)))
    rows = driver(reader).execute(
        f"""
        WITH {said.sql}
        SELECT named.host,
               coalesce((said.said::json ->> named.host)::bigint, s.gpus_milli / cardinality(s.hosts)
                        + (named.position <= s.gpus_milli %% cardinality(s.hosts))::int),
               greatest(extract(epoch FROM s.from_at)::bigint, said.from_s, %(from)s),
               least(extract(epoch FROM coalesce(s.to_at, s.capped_at))::bigint, said.to_s, %(to)s)
        FROM ledger.segments AS s
        LEFT JOIN said ON said.book = s.book AND said.workload = s.workload AND said.run = s.run
            AND said.from_s < least(extract(epoch FROM coalesce(s.to_at, s.capped_at)), %(to)s)
            AND said.to_s > greatest(extract(epoch FROM s.from_at), %(from)s)
        CROSS JOIN LATERAL unnest(s.hosts) WITH ORDINALITY AS named (host, position)
        WHERE s.book = %(book)s AND s.until_seq IS NULL AND s.from_at < to_timestamp(%(to)s)
          AND (coalesce(s.to_at, s.capped_at) IS NULL OR coalesce(s.to_at, s.capped_at) > to_timestamp(%(from)s))
          -- A host that is named twice is claimed once, one that gives nothing not at all.
          AND (said.said IS NULL OR (array_position(s.hosts, named.host) = named.position
                                     AND (said.said::json ->> named.host)::bigint > 0))
        """,
        {"book": cluster, "from": from_s, "to": to_s, **said.values},
    )
    return [Claim(*row) for row in rows.fetchall()]


def installed(reader: Reader, cluster: str, from_s: int, to_s: int) -> Sequence[Claim]:
    """Return what was installed in ``[from_s, to_s)``, healthy or not."""
    rows = driver(reader).execute(
        """
        SELECT host, gpus * 1000, greatest(extract(epoch FROM from_at)::bigint, %(from)s),
               least(coalesce(extract(epoch FROM to_at)::bigint, %(to)s), %(to)s)
        FROM ledger.hosts
        WHERE book = %(book)s AND until_seq IS NULL AND from_at < to_timestamp(%(to)s)
          AND (to_at IS NULL OR to_at > to_timestamp(%(from)s))
        """,
        {"book": cluster, "from": from_s, "to": to_s},
    )
    return [Claim(*row) for row in rows.fetchall()]
