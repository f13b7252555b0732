"""How the policy's service is: the newest cycle of each cluster in figures, and who leads."""

import datetime as dt
from collections.abc import Mapping
from typing import Any, NamedTuple

from psycopg.types.json import Jsonb

from gpuledger.database.engine import Reader, Writer
from gpuledger.events.envelope import ORG_BOOK
from gpuledger.ledger.copying import driver

APPLICATION = "gpuledger policy"
"""Sessions that lead, or stand by to, are known to the database by this name and where they run."""

LEADERS = "policy leader of "
"""What stands before the name of a cluster in the text whose hash is the leader's lock."""


class Newest(NamedTuple):
    """The newest cycle of a cluster.

    Args:
        cycle: Its id.
        decided_at: The instant that it decided for.
        recorded_at: When it was recorded.
        took_ms: From reading the state to its record.
    """

    cycle: str
    decided_at: dt.datetime
    recorded_at: dt.datetime
    took_ms: int


class Status(NamedTuple):
    """What is known of the policy's service for a cluster.

    Args:
        leader: Where the process runs that leads; None when nobody does.
        newest: The newest cycle; None before the first.
        cycles: How many were recorded.
        amendments: How many amendments of cycles were.
        figures: What the newest cycle counted: ``waiting``, ``owed_gpu_ms``, ``over_service_gpu_ms``, ``orders``.
    """

    cluster: str
    leader: str | None
    newest: Newest | None
    cycles: int
    amendments: int
    figures: Mapping[str, Any]


def write(writer: Writer, book: str, newest: Newest, figures: Mapping[str, Any]) -> None:
    """Say what the newest cycle of a cluster came to; one of an earlier instant is only counted."""
    driver(writer).execute(
        """
        INSERT INTO ledger.policy_status AS s (book, cycle, decided_at, recorded_at, took_ms, cycles, figures)
        VALUES (%(book)s, %(cycle)s, %(decided)s, %(recorded)s, %(took)s, 1, %(figures)s)
        ON CONFLICT (book) DO UPDATE SET cycles = s.cycles + 1
        """,
        values := {
            "book": book,
            "cycle": newest.cycle,
            "decided": newest.decided_at,
            "recorded": newest.recorded_at,
            "took": newest.took_ms,
            "figures": Jsonb(dict(figures)),
        },
    )
    driver(writer).execute(
        "UPDATE ledger.policy_status SET cycle = %(cycle)s, decided_at = %(decided)s, recorded_at = %(recorded)s,"
        " took_ms = %(took)s, figures = %(figures)s WHERE book = %(book)s AND decided_at <= %(decided)s",
        values,
    )


def count_amendment(writer: Writer, book: str) -> None:
    """Count an amendment of the newest cycle of a cluster."""
    driver(writer).execute(
        "UPDATE ledger.policy_status SET amendments = amendments + 1 WHERE book = %s", (book,)
    )


class Counted(NamedTuple):
    """How often the policy has spoken of a cluster: a newer word makes one of the two larger."""

    cycles: int
    amendments: int


def counted(reader: Reader) -> dict[str, Counted]:
    """Return cluster -> how often the policy has spoken of it."""
    rows = driver(reader).execute("SELECT book, cycles, amendments FROM ledger.policy_status")
    return {book: Counted(cycles, amendments) for book, cycles, amendments in rows}


def read(reader: Reader) -> list[Status]:
    """Return how the policy's service is for every cluster, by name."""
    rows = driver(reader).execute(
        """
        SELECT b.book, l.leader, s.cycle, s.decided_at, s.recorded_at, s.took_ms, s.cycles, s.amendments, s.figures
        FROM ledger.books AS b
        LEFT JOIN ledger.policy_status AS s ON s.book = b.book
        LEFT JOIN LATERAL (
            SELECT coalesce(a.application_name, '') AS leader
            FROM pg_locks AS l LEFT JOIN pg_stat_activity AS a ON a.pid = l.pid
            WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1
              AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
              AND (l.classid::bigint << 32 | l.objid::bigint) = hashtextextended(%(leaders)s || b.book, 0)
            LIMIT 1) AS l ON true
        WHERE b.book <> %(org)s ORDER BY b.book
        """,
        {"leaders": LEADERS, "org": ORG_BOOK},
    )
    found = []
    for book, leader, cycle, decided_at, recorded_at, took_ms, cycles, amendments, figures in rows:
        newest = None if cycle is None else Newest(cycle, decided_at, recorded_at, took_ms)
        where = None if leader is None else leader.removeprefix(APPLICATION).strip()
        found.append(Status(book, where, newest, cycles or 0, amendments or 0, figures or {}))
    return found


def forged(reader: Reader) -> list[tuple[str, str]]:
    """Return (book, cycle) that are said to be the newest and are no cycle of the journal for that instant.

    Or counted as one of more than there are. How long a cycle took, and its figures, no row of the journal tells.
    """
    rows = driver(reader).execute(
        """
        SELECT s.book, s.cycle FROM ledger.policy_status AS s
        WHERE NOT EXISTS (
            SELECT FROM ledger.journal AS j
            WHERE j.book = s.book AND j.type = 'allocation.issued' AND j.effective_at = s.decided_at
              AND j.body->>'cycle' = s.cycle)
           OR s.cycles > (SELECT count(*) FROM ledger.journal AS j WHERE j.book = s.book AND j.workload IS NULL
                          AND j.type = 'allocation.issued')
           OR s.amendments > (SELECT count(*) FROM ledger.journal AS j WHERE j.book = s.book AND j.workload IS NULL
                              AND j.type = 'allocation.amended')
        ORDER BY 1
        """
    )
    return rows.fetchall()


def lead(connection: Reader | Writer, book: str) -> bool:
    """Take a cluster's lock of leaders for the session, unless another session has it; return whether it is ours."""
    row = driver(connection).execute(
        "SELECT pg_try_advisory_lock(hashtextextended(%s, 0))", (LEADERS + book,)
    ).fetchone()  # fmt: skip
    return bool(row and row[0])


def leads(connection: Reader | Writer, book: str) -> bool:
    """Tell whether this very session has a cluster's lock of leaders."""
    row = driver(connection).execute(
        "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND granted AND objsubid = 1 AND pid = pg_backend_pid()"
        " AND (classid::bigint << 32 | objid::bigint) = hashtextextended(%s, 0)",
        (LEADERS + book,),
    ).fetchone()  # fmt: skip
    return row is not None
