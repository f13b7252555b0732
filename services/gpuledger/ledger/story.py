"""What is read for the story of one workload, and for the calendar of a cluster: indexed rows of one book.

Nothing here grows with the queue: a story is told from the rows that name the workload.
"""

import datetime as dt
import difflib
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import msgspec

from gpuledger.database.engine import Reader
from gpuledger.events.words import ASIDE
from gpuledger.events.workload import Checkpointed
from gpuledger.kernel.amounts import WEIGHT_ONE
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.clock import seconds
from gpuledger.kernel.errors import NotFound
from gpuledger.ledger import queries, settlement, store
from gpuledger.ledger.as_of import Vector, said, seq_of
from gpuledger.ledger.copying import driver
from gpuledger.ledger.costs import Cost, add_up
from gpuledger.ledger.facts import Known
from gpuledger.ledger.mapping import Rules

_NEAR = 3
_LOOKED_AT = 2_000
"""Names that are compared with one that is not known."""


class Facts(NamedTuple):
    """What a book knows of one workload.

    Args:
        cluster: The book.
        known: Every fact up to the instant, in the order in which they were booked.
        rules: The mapping that the book reads them by.
    """

    cluster: str
    known: tuple[Known, ...]
    rules: Rules


class Context(NamedTuple):
    """What a recorded cycle says beside its decisions."""

    cycle: str
    at_s: int
    allocations: list[dict[str, Any]]
    reservations: list[dict[str, Any]]


class Used(NamedTuple):
    """A stretch of allocated use: from when to when, how many GPUs, and of which model."""

    from_s: int
    to_s: int
    gpus_milli: int
    gpu_model: str | None


class Lapse(NamedTuple):
    """A lot that has an end of its own."""

    account: str
    period: str
    name: str
    on: dt.date
    granted_gpu_ms: int


def facts_of(
    reader: Reader, workload: str, cluster: str | None, at_s: int, *, vector: Vector | None = None
) -> list[Facts]:
    """Return what every book that knows the workload knows of it up to an instant, by cluster.

    Args:
        reader: A snapshot.
        workload: The workload.
        cluster: One cluster, or all.
        at_s: The instant: facts of later ones do not count.
        vector: Book -> the row up to which it is read; now unless given.

    Raises:
        NotFound: When no book knows it, or none did by then; near names are named.
    """
    queries.require_cluster(reader, cluster)
    books = [cluster] if cluster is not None else queries.clusters(reader)
    found, later = [], False
    for book in books:
        seq = seq_of(vector, book)
        known = [fact for _, fact in store.facts_of(reader, book, [workload], seq=seq)]
        by_then = tuple(fact for fact in known if fact.at_s <= at_s)
        later = later or bool(known) or (seq is not None and is_known(reader, book, workload))
        if by_then:
            found.append(Facts(book, by_then, queries.mapping(reader, book, seq)))
    if found:
        return found
    if later:
        raise NotFound(
            f"nothing was known of workload {workload!r} by then",
            hint="ask for a later --at, or a later --as-of",
        )
    near = [name for book in books for name in near_names(reader, book, workload)]
    where = (
        f"cluster {cluster!r}" if cluster else f"any of the clusters {', '.join(books) or '(there are none)'}"
    )
    raise NotFound(
        f"workload {workload!r} is not known on {where}",
        hint=f"did you mean {', '.join(near[:_NEAR])}?"
        if near
        else "ids are those of the source, as it writes them",
    )


def restores(reader: Reader, known: Iterable[Known], book: str, workload: str) -> dict[bytes, str]:
    """Return digest of a checkpoint -> what its user needs to go on from it; what was erased is absent."""
    saved = [fact for fact in known if isinstance(fact.data, Checkpointed) and fact.data.restore is not None]
    found = {
        fact.digest: fact.data.restore
        for fact in saved
        if isinstance(fact.data, Checkpointed) and fact.data.restore and ASIDE not in fact.data.restore
    }
    if len(found) < len(saved):
        rows = driver(reader).execute(
            "SELECT j.digest, t.body FROM ledger.journal AS j JOIN side.texts AS t ON t.ref = j.extra_ref"
            " WHERE j.book = %s AND j.workload = %s AND j.type = 'workload.checkpointed'",
            (book, workload),
        )
        found |= {
            bytes(digest): text["restore"]
            for digest, body in rows
            if "restore" in (text := msgspec.json.decode(body))
        }
    return found


def is_known(reader: Reader, book: str, workload: str) -> bool:
    """Tell whether a book has any fact of a workload by now."""
    row = driver(reader).execute(
        "SELECT 1 FROM ledger.journal WHERE book = %s AND workload = %s LIMIT 1", (book, workload)
    ).fetchone()  # fmt: skip
    return row is not None


def near_names(reader: Reader, book: str, workload: str) -> list[str]:
    """Return workloads that are named nearly so, of those that begin alike, in capitals or not."""
    wanted = workload.lower()
    half = wanted[: max(len(wanted) // 2, 1)]
    rows = driver(reader).execute(
        "SELECT DISTINCT workload FROM (SELECT workload FROM ledger.segments WHERE book = %(book)s"
        " AND starts_with(lower(workload), %(half)s) UNION ALL SELECT workload FROM ledger.waits WHERE book = %(book)s"
        " AND starts_with(lower(workload), %(half)s)) AS named LIMIT %(most)s",
        {"book": book, "half": half, "most": _LOOKED_AT},
    )
    names = sorted(name for (name,) in rows)
    near = dict.fromkeys(difflib.get_close_matches(wanted, {name.lower() for name in names}, n=_NEAR))
    return [name for lowered in near for name in names if name.lower() == lowered][:_NEAR]


def cost_of(reader: Reader, cluster: str, workload: str, to: dt.date, *, seq: int | None = None) -> Cost:
    """Return what is booked for a workload for days up to one, in the organisation's zone, as of a row of the book."""
    posted = store.posted_of(reader, cluster, [workload], seq=seq)
    return add_up(((key, posted.amount) for _, key, posted in posted), to)


def context(reader: Reader, cluster: str, at_s: int, *, seq: int | None = None) -> Context | None:
    """Return allocations and reservations of the newest cycle up to an instant; None when there was none."""
    row = (
        driver(reader)
        .execute(
            "SELECT extract(epoch FROM effective_at)::bigint, body->>'cycle', (body->'record'->'allocations')::text,"
            " (body->'record'->'reservations')::text FROM ledger.journal"
            " WHERE book = %s AND workload IS NULL AND type = 'allocation.issued'"
            " AND effective_at <= to_timestamp(%s) AND (%s::bigint IS NULL OR seq <= %s)"
            " ORDER BY effective_at DESC, seq DESC LIMIT 1",
            (cluster, at_s, seq, seq),
        )
        .fetchone()
    )
    if row is None:
        return None
    decided_s, cycle, allocations, reservations = row
    return Context(
        cycle, decided_s, msgspec.json.decode(allocations), msgspec.json.decode(reservations or "[]")
    )


def window_use(
    reader: Reader, cluster: str, account: str, span: tuple[int, int], *, seq: int | None = None
) -> list[Used]:
    """Return the allocated use of an account in a window, stretch by stretch, the oldest first."""
    rows = driver(reader).execute(
        f"""
        SELECT greatest(extract(epoch FROM from_at)::bigint, %(start)s),
               least(coalesce(extract(epoch FROM coalesce(to_at, capped_at))::bigint, %(end)s), %(end)s),
               gpus_milli, gpu_model
        FROM ledger.segments AS s
        WHERE book = %(book)s AND {said("s", seq)} AND account = %(account)s AND class = 'allocated'
          AND from_at < to_timestamp(%(end)s)
          AND (coalesce(to_at, capped_at) IS NULL OR coalesce(to_at, capped_at) > to_timestamp(%(start)s))
        ORDER BY 1, 2
        """,
        {"book": cluster, "account": account, "start": span[0], "end": span[1], "seq": seq},
    )
    return [Used(*row) for row in rows]


def declared_limits(reader: Reader, cluster: str, at_s: int, *, seq: int | None = None) -> Mapping[str, int]:
    """Return workload -> the limit that it declared for its runs, of those that run or wait at an instant."""
    rows = driver(reader).execute(
        f"""
        SELECT DISTINCT ON (workload) workload, (body->>'time_limit_s')::bigint FROM ledger.journal
        WHERE book = %(book)s AND type = 'workload.submitted' AND body->>'time_limit_s' IS NOT NULL
          AND (%(seq)s::bigint IS NULL OR seq <= %(seq)s)
          AND workload IN (
            SELECT workload FROM ledger.segments AS s WHERE book = %(book)s AND {said("s", seq)}
              AND from_at <= to_timestamp(%(at)s) AND (to_at IS NULL OR to_at > to_timestamp(%(at)s))
            UNION SELECT workload FROM ledger.waits AS w WHERE book = %(book)s AND {said("w", seq)}
              AND from_at <= to_timestamp(%(at)s) AND (to_at IS NULL OR to_at > to_timestamp(%(at)s)))
        ORDER BY workload, seq DESC
        """,
        {"book": cluster, "at": at_s, "seq": seq},
    )
    return dict(rows.fetchall())


def lapses(
    reader: Reader, cluster: str, after: dt.date, calendar: Calendar, *, seq: int | None = None
) -> list[Lapse]:
    """Return the lots that are gone on a day after one, within their period or later; by day and account."""
    found = [
        Lapse(account, period, lot.name, lot.expires_on, lot.amount // WEIGHT_ONE)
        for (account, period), own in settlement.standing(reader, cluster, calendar, seq).items()
        for lot in own
        if lot.expires_on is not None and lot.expires_on > after and lot.amount > 0
    ]
    return sorted(found, key=lambda lapse: (lapse.on, lapse.account, lapse.name))


def unstarted_holds(
    reader: Reader, cluster: str, at_s: int, *, seq: int | None = None
) -> list[tuple[str, str, int, int]]:
    """Return (workload, account, GPUs in milli, expiry) of what is set aside and not started, by expiry."""
    rows = driver(reader).execute(
        f"SELECT workload, account, gpus_milli, expires_at FROM ledger.holds AS h"
        f" WHERE book = %(book)s AND {said('h', seq)} AND run IS NULL AND expires_at > to_timestamp(%(at)s)"
        " ORDER BY expires_at, workload",
        {"book": cluster, "at": at_s, "seq": seq},
    )
    return [(workload, account, milli, seconds(expires)) for workload, account, milli, expires in rows]
