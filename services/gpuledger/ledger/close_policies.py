"""Which versions of policy data, shares and sources a close was made under (law 12)."""

import datetime as dt
from typing import NamedTuple

from gpuledger.database.engine import Reader, Writer
from gpuledger.events.envelope import ORG_BOOK
from gpuledger.ledger.copying import driver
from gpuledger.ledger.watermarks import HEARTBEAT


class PolicyVersion(NamedTuple):
    """A version that was in force at some time within a period.

    Args:
        book: The book whose row set it: ``~org``, or the cluster's, which took a version over.
        policy: Which policy, such as ``rate_card``; ``shares`` for the shares of all accounts together.
        seq: The row; for shares the newest that set one.
        effective_at: From when on.
        digest: SHA-256 of what it says, in hexadecimal.
    """

    book: str
    policy: str
    seq: int
    effective_at: dt.datetime
    digest: str


class ToldUntil(NamedTuple):
    """Up to when a source had told the book all it knew."""

    source: str
    told_until_at: dt.datetime


_VERSIONS = """
    SELECT book, policy, seq, effective_at, encode(sha256(convert_to(body, 'UTF8')), 'hex') FROM (
        SELECT book, body->>'policy' AS policy, seq, effective_at, body::text AS body,
               lead(effective_at) OVER (PARTITION BY book, body->>'policy' ORDER BY effective_at, seq) AS next_at
        FROM ledger.journal
        WHERE workload IS NULL AND (book = %(org)s AND type = 'policy.changed' AND seq <= %(org_seq)s
              OR book = %(book)s AND type = 'policy.applied' AND seq <= %(seq)s)) AS version
    WHERE effective_at < %(end)s AND (next_at IS NULL OR next_at > %(start)s)
    ORDER BY book COLLATE "C", policy COLLATE "C", effective_at, seq
"""
_SHARES = """
    SELECT max(seq), max(effective_at),
           encode(sha256(convert_to(string_agg(body::text, E'\\n' ORDER BY seq), 'UTF8')), 'hex')
    FROM ledger.journal WHERE book = %(org)s AND workload IS NULL AND seq <= %(org_seq)s AND effective_at < %(end)s
      AND type = 'budget.share_set'
"""


def policy_versions(
    connection: Reader | Writer, cluster: str, *, seq: int, org_seq: int, start: dt.datetime, end: dt.datetime
) -> list[PolicyVersion]:
    """Return the versions that were in force within ``[start, end)``, as the books said up to a row of each.

    Args:
        connection: A transaction.
        cluster: The cluster, which is also the book.
        seq: Its newest row.
        org_seq: The newest row of ``~org``.
        start: The period's first instant.
        end: Its end, exclusive.
    """
    values = {"org": ORG_BOOK, "book": cluster, "seq": seq, "org_seq": org_seq, "start": start, "end": end}
    found = [PolicyVersion(*row) for row in driver(connection).execute(_VERSIONS, values)]
    row = driver(connection).execute(_SHARES, values).fetchone()
    if row is not None and row[0] is not None:
        found.append(PolicyVersion(ORG_BOOK, "shares", *row))
    return found


def told_until(connection: Reader | Writer, cluster: str, seq: int | None = None) -> list[ToldUntil]:
    """Return up to when each source had told a book all it knew, as of one of its rows; now unless given."""
    rows = driver(connection).execute(
        "SELECT source, max(effective_at) FROM ledger.journal WHERE book = %s AND workload IS NULL AND type = %s"
        ' AND seq <= coalesce(%s, seq) GROUP BY source ORDER BY source COLLATE "C"',
        (cluster, HEARTBEAT, seq),
    )
    return [ToldUntil(*row) for row in rows]
