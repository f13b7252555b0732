"""Telemetry of an hour -> its seal: sums, coverage and a digest, as evidence in the cluster's book.

Samples stay out of the ledger (they are the large stream); what the book keeps of them is one fact an hour.
Samples that come late make a further seal of their hour. Samples only ever add up, so of several seals of an
hour the one with the most sampled time counts, in whatever order they were journalled.
"""

import hashlib
from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from gpuledger.database.engine import Reader, Writer
from gpuledger.events.envelope import Event, decode_data, make
from gpuledger.events.telemetry import Sealed, SealedRung
from gpuledger.kernel.clock import instant, iso
from gpuledger.ledger.copying import driver

SOURCE = "gpuledger/ticks"

HOUR_S = 3600
BUCKET_S = 300
"""What samples are added up in: rows of ``telemetry.buckets`` are this long."""

LOOK_BACK_S = 7 * 86_400
"""How late a sample may come and still be sealed: a week, so that a long week-end without exporters heals."""

SHOWN_DIGITS = 12
"""Digits of the digest in an event's id: enough to tell the seals of one hour apart."""

Bucket = tuple[int, str, str, str, str, int, int]
"""Start second, GPU, workload, run, rung, sampled gpu_ms, used gpu_ms times parts per million."""


class Seal(NamedTuple):
    """A seal as the book has it.

    Args:
        end_s: The end of the hour, in seconds since the epoch.
        seq: The journal row.
        fact: What it says.
    """

    end_s: int
    seq: int
    fact: Sealed


def sealed(connection: Reader | Writer, cluster: str, end_s: int) -> Sealed | None:
    """Return what is known of the samples of ``[end_s - 3600, end_s)``; None when there are none.

    Args:
        connection: Where the buckets and segments are read.
        cluster: The cluster, which is also the book.
        end_s: The end of the hour, in seconds since the epoch.
    """
    rows = driver(connection).execute(
        "SELECT extract(epoch FROM bucket_at)::bigint, gpu, workload, run, rung, sampled_gpu_ms, used_gpu_upms"
        " FROM telemetry.buckets WHERE book = %s AND bucket_at >= %s AND bucket_at < %s"
        # The order is part of the digest, so it must not depend on the collation of a database.
        ' ORDER BY bucket_at, gpu COLLATE "C", workload COLLATE "C", run COLLATE "C", rung COLLATE "C"',
        (cluster, instant(end_s - HOUR_S), instant(end_s)),
    )
    buckets: list[Bucket] = rows.fetchall()
    if not buckets:
        return None
    return Sealed(
        cluster=cluster,
        gpus=len({bucket[1] for bucket in buckets}),
        sampled_gpu_ms=sum(bucket[5] for bucket in buckets),
        assigned_gpu_ms=assigned_gpu_ms(connection, cluster, end_s - HOUR_S, end_s),
        rungs=rungs(buckets),
        digest=digest(buckets),
    )


def rungs(buckets: Iterable[Bucket]) -> list[SealedRung]:
    """Add up, by rung, the buckets in which a run held the device; rungs nobody measured are left out."""
    sums: dict[str, tuple[int, int]] = {}
    for _, _, _, run, rung, sampled, used in buckets:
        if run:
            before = sums.get(rung, (0, 0))
            sums[rung] = (before[0] + sampled, before[1] + used)
    return [SealedRung(rung=r, sampled_gpu_ms=s, used_gpu_upms=u) for r, (s, u) in sorted(sums.items())]


def digest(buckets: Iterable[Bucket]) -> str:
    """Return SHA-256 over buckets in canonical order, a JSON array a line, in hex.

    The book's name is left out: two ledgers that hold the same samples agree, whatever they call the cluster.
    """
    hashed = hashlib.sha256()
    for bucket in buckets:
        hashed.update(msgspec.json.encode(bucket) + b"\n")
    return hashed.hexdigest()


def seal_event(fact: Sealed, end_s: int) -> Event:
    """Return the event that journals a seal: a further digest of an hour is a further row, the same one a repeat."""
    id_ = f"telemetry/{fact.cluster}/{iso(instant(end_s))}/{fact.digest[:SHOWN_DIGITS]}"
    return make(id=id_, source=SOURCE, at_s=end_s, data=fact)[0]


def assigned_gpu_ms(connection: Reader | Writer, cluster: str, start_s: int, end_s: int) -> int:
    """Return the GPU-time that runs held over ``[start_s, end_s)``, in gpu_ms.

    Open runs count up to the end, and not beyond their declared limit.
    """
    row = driver(connection).execute(
        """
        SELECT coalesce(sum(gpus_milli * extract(epoch FROM
                   least(coalesce(to_at, capped_at, %(end)s), %(end)s) - greatest(from_at, %(start)s)
               )::bigint), 0)::bigint
        FROM ledger.segments
        WHERE book = %(book)s AND until_seq IS NULL
          AND from_at < %(end)s AND coalesce(to_at, capped_at, %(end)s) > %(start)s
        """,
        {"book": cluster, "start": instant(start_s), "end": instant(end_s)},
    ).fetchone()  # fmt: skip
    return int(row[0]) if row else 0


def seals(connection: Reader | Writer, cluster: str, from_s: int, to_s: int) -> list[Seal]:
    """Return the newest seal of each hour that lies within ``[from_s, to_s)``, in order of time.

    The newest is the one that knows most: that with the most sampled time, and of equals the later row.
    """
    rows = driver(connection).execute(
        "SELECT DISTINCT ON (effective_at) extract(epoch FROM effective_at)::bigint, seq, body::text"
        " FROM ledger.journal WHERE book = %s AND workload IS NULL AND type = 'telemetry.sealed' AND source = %s"
        " AND effective_at >= %s AND effective_at <= %s"
        " ORDER BY effective_at, (body->>'sampled_gpu_ms')::bigint DESC, seq DESC",
        (cluster, SOURCE, instant(from_s + HOUR_S), instant(to_s)),
    )
    found = []
    for end_s, seq, body in rows:
        fact = decode_data("telemetry.sealed", body)
        assert isinstance(fact, Sealed)  # noqa: S101 - the query selected the type
        found.append(Seal(end_s, seq, fact))
    return found


def stale_hours(
    connection: Reader | Writer, cluster: str, upto_s: int, look_back_s: int = LOOK_BACK_S
) -> list[int]:
    """Return the ends of the hours that hold samples their seal does not know, or have no seal; in order.

    Args:
        connection: Where buckets and journal are read.
        cluster: The cluster, which is also the book.
        upto_s: Hours that end after it are not looked at.
        look_back_s: Nor those that begin more than so many seconds before it.
    """
    upto_s -= upto_s % HOUR_S
    from_s = max(0, upto_s - look_back_s)
    from_s += -from_s % HOUR_S
    rows = driver(connection).execute(
        """
        SELECT extract(epoch FROM bucket_at)::bigint / %(hour)s * %(hour)s + %(hour)s AS end_s,
               sum(sampled_gpu_ms)::bigint
        FROM telemetry.buckets
        WHERE book = %(book)s AND bucket_at >= %(start)s AND bucket_at < %(end)s
        GROUP BY end_s ORDER BY end_s
        """,
        {"hour": HOUR_S, "book": cluster, "start": instant(from_s), "end": instant(upto_s)},
    )
    held: list[tuple[int, int]] = rows.fetchall()
    known = {seal.end_s: seal.fact.sampled_gpu_ms for seal in seals(connection, cluster, from_s, upto_s)}
    return [end_s for end_s, sampled in held if end_s not in known or known[end_s] < sampled]
