"""The past of a cluster as the policy weighs it: use and healthy GPUs as sums over buckets, dated shares and accounts.

Use is not read bucket by bucket. What somebody used by the end of a segment is what all seconds up to its end weigh,
less what those up to its begin do; so the edges of segments are summed, by the bucket that they lie in.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

from gpuledger.database.engine import Reader
from gpuledger.ledger.as_of import said
from gpuledger.ledger.copying import driver


class Edge(NamedTuple):
    """Ends of segments less begins of segments, of one account in one bucket.

    Args:
        account: Whose use.
        klass: ``allocated`` or ``unallocated``.
        gpu_model: The model; None where it was not asked for.
        gpus_milli: The size of each of the segments where models were asked for, else 1.
        piece: The number of the piece of time that the edges belong to.
        bucket: Which bucket.
        number: How many end, less how many begin; by milli-GPU where models were not asked for.
        seconds: The same sum over how many seconds into the bucket each edge lies.
    """

    account: str
    klass: str
    gpu_model: str | None
    gpus_milli: int
    piece: int
    bucket: int
    number: int
    seconds: int


def use_edges(
    reader: Reader,
    cluster: str,
    pieces: Sequence[tuple[int, int]],
    *,
    bucket_s: int,
    by_model: bool,
    seq: int | None = None,
) -> list[Edge]:
    """Return the edges of what ran on a cluster.

    Args:
        reader: A snapshot.
        cluster: The cluster.
        pieces: ``[from, to)`` in seconds, ascending, each where the one before ends; what lies outside is left out.
        bucket_s: Seconds of a bucket, counted from the begin of the first piece.
        by_model: Whether each model and size has edges of its own.
        seq: The row of the book as of which it is read; now unless given.
    """
    rows = driver(reader).execute(
        f"""
        WITH used AS (
            SELECT account, class, CASE WHEN %(by_model)s THEN gpu_model END AS gpu_model,
                   CASE WHEN %(by_model)s THEN gpus_milli ELSE 1 END AS size,
                   CASE WHEN %(by_model)s THEN 1 ELSE gpus_milli END AS number, p.piece - 1 AS piece,
                   greatest(extract(epoch FROM from_at)::bigint, p.from_s) - %(start)s AS begin_s,
                   least(coalesce(extract(epoch FROM coalesce(to_at, capped_at))::bigint, p.to_s), p.to_s)
                       - %(start)s AS end_s
            FROM ledger.segments AS s,
                 unnest(%(from)s::bigint[], %(to)s::bigint[]) WITH ORDINALITY AS p (from_s, to_s, piece)
            WHERE book = %(book)s AND {said("s", seq)} AND from_at < to_timestamp(%(end)s)
              AND (coalesce(to_at, capped_at) IS NULL OR coalesce(to_at, capped_at) > to_timestamp(%(start)s))
        )
        SELECT account, class, gpu_model, size, piece, edge_s / %(bucket)s, sum(sign * number),
               sum(sign * number * (edge_s %% %(bucket)s))
        FROM used, LATERAL (VALUES (begin_s, -1), (end_s, 1)) AS edges (edge_s, sign)
        WHERE begin_s < end_s
        GROUP BY 1, 2, 3, 4, 5, 6
        """,
        {
            "book": cluster,
            "start": pieces[0][0],
            "end": pieces[-1][1],
            "from": [from_s for from_s, _ in pieces],
            "to": [to_s for _, to_s in pieces],
            "bucket": bucket_s,
            "by_model": by_model,
            "seq": seq,
        },
    )
    return [
        Edge(account, klass, model, size, piece, bucket, int(number), int(seconds))
        for account, klass, model, size, piece, bucket, number, seconds in rows
    ]


def capacity_changes(
    reader: Reader, cluster: str, start_s: int, end_s: int, *, seq: int | None = None
) -> list[tuple[int, str, int]]:
    """Return (when, GPU model, by how many GPUs) of every change of the healthy GPUs in ``[start_s, end_s)``.

    Those that are reserved are among them. What was healthy at ``start_s`` already counts as a change then.
    """
    rows = driver(reader).execute(
        f"""
        SELECT edge_s, gpu_model, sum(sign * gpus)::bigint
        FROM (SELECT gpu_model, gpus, greatest(extract(epoch FROM from_at)::bigint, %(start)s) AS begin_s,
                     least(coalesce(extract(epoch FROM to_at)::bigint, %(end)s), %(end)s) AS end_s
              FROM ledger.hosts AS h
              WHERE book = %(book)s AND {said("h", seq)} AND state IN ('healthy', 'reserved')
                AND from_at < to_timestamp(%(end)s)
                AND (to_at IS NULL OR to_at > to_timestamp(%(start)s))) AS healthy,
             LATERAL (VALUES (begin_s, 1), (end_s, -1)) AS edges (edge_s, sign)
        WHERE begin_s < end_s AND edge_s < %(end)s
        GROUP BY 1, 2 ORDER BY 1, 2
        """,
        {"book": cluster, "start": start_s, "end": end_s, "seq": seq},
    )
    return rows.fetchall()


def share_versions(
    reader: Reader, until_s: int, *, org_seq: int | None = None
) -> dict[str, list[tuple[int, int]]]:
    """Return account -> (from when, share) of every share that was in force up to an instant, ascending."""
    rows = driver(reader).execute(
        "SELECT DISTINCT ON (account, from_at) account, extract(epoch FROM from_at)::bigint, share"
        " FROM ledger.shares WHERE from_at <= to_timestamp(%s) AND (%s::bigint IS NULL OR set_seq <= %s)"
        " ORDER BY account, from_at, set_seq DESC",
        (until_s, org_seq, org_seq),
    )
    found: dict[str, list[tuple[int, int]]] = {}
    for account, from_s, share in rows:
        found.setdefault(account, []).append((from_s, share))
    return found


def created(reader: Reader, *, org_seq: int | None = None) -> dict[str, int]:
    """Return account -> the instant from which on it exists, as its creation says."""
    rows = driver(reader).execute(
        "SELECT a.path, extract(epoch FROM j.effective_at)::bigint FROM ledger.accounts AS a"
        " JOIN ledger.journal AS j ON j.book = '~org' AND j.seq = a.created_seq"
        " WHERE %s::bigint IS NULL OR a.created_seq <= %s",
        (org_seq, org_seq),
    )
    return dict(rows.fetchall())


def first_use(
    reader: Reader,
    clusters: Iterable[str],
    accounts: Iterable[str],
    *,
    vector: Mapping[str, int] | None = None,
) -> dict[str, int]:
    """Return account -> when it first ran anything on one of the clusters; accounts that never did are absent."""
    found: dict[str, int] = {}
    names = sorted(accounts)
    for cluster in sorted(clusters):
        seq = None if vector is None else vector.get(cluster, 0)
        rows = driver(reader).execute(
            "SELECT account, extract(epoch FROM min(from_at))::bigint FROM ledger.segments AS s"
            f" WHERE book = %(book)s AND {said('s', seq)} AND account = ANY(%(accounts)s) GROUP BY account",
            {"book": cluster, "accounts": names, "seq": seq},
        )
        for account, first_s in rows:
            found[account] = min(first_s, found.get(account, first_s))
    return found


class Credited(NamedTuple):
    """Seconds of a run that it was given back, on GPUs of one model and in one number.

    Args:
        account: Who was.
        gpu_model: The model.
        gpus_milli: How many.
        from_s: Their begin.
        to_s: Their end, exclusive.
    """

    account: str
    gpu_model: str | None
    gpus_milli: int
    from_s: int
    to_s: int


def credited(reader: Reader, cluster: str, start_s: int, *, seq: int | None = None) -> list[Credited]:
    """Return what was given back for failures of what ran after an instant, net of what was taken back again.

    It is the newest of what a run was charged for, through every size that it had there.
    """
    rows = driver(reader).execute(
        f"""
        WITH given AS (
            SELECT workload, run, CASE debit_pot WHEN 'spent' THEN debit_account ELSE credit_account END AS account,
                   sum(CASE debit_pot WHEN 'spent' THEN amount ELSE -amount END)::bigint AS gpu_ms
            FROM ledger.postings
            -- Days are those of the organisation's zone, which begin up to 14 hours before or after those of UTC.
            WHERE book = %(book)s AND effective_on >= (to_timestamp(%(start)s) AT TIME ZONE 'UTC')::date - 1
              AND code = 'credit' AND commodity = 'gpu_ms'
              AND (%(seq)s::bigint IS NULL OR seq <= %(seq)s::bigint)
              AND (debit_pot, credit_pot) IN (('spent', 'credited'), ('credited', 'spent'))
            GROUP BY 1, 2, 3
        )
        SELECT given.workload, given.run, given.account, given.gpu_ms, s.gpu_model, s.gpus_milli,
               extract(epoch FROM s.from_at)::bigint, extract(epoch FROM s.to_at)::bigint
        FROM given JOIN ledger.segments AS s
            ON s.book = %(book)s AND s.workload = given.workload AND s.run = given.run AND s.account = given.account
        WHERE given.gpu_ms > 0 AND {said("s", seq)} AND s.class = 'allocated' AND s.gpus_milli > 0
          AND s.to_at > to_timestamp(%(start)s)
        ORDER BY 1, 2, 3, s.from_at DESC
        """,
        {"book": cluster, "start": start_s, "seq": seq},
    )
    found = []
    for (_, _, account, gpu_ms), charged in groupby(rows, key=itemgetter(0, 1, 2, 3)):
        left = gpu_ms
        for *_, model, gpus_milli, from_s, to_s in charged:
            length_s = min(left // gpus_milli, to_s - from_s)
            if length_s:
                found.append(Credited(account, model, gpus_milli, to_s - length_s, to_s))
            left -= gpus_milli * length_s
    return found
