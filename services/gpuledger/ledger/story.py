"""What is read for the story of one workload, and for the calendar of a cluster: indexed rows of one book.

Nothing here grows with the queue: a story is told from the rows that name the workload.
"""

import datetime as dt
import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from gpuledger.database.engine import Reader
from gpuledger.events.words import ASIDE
from gpuledger.events.workload import Checkpointed
from gpuledger.kernel.amounts import WEIGHT_ONE
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.errors import NotFound
from gpuledger.ledger import cycles, queries, settlement, store
from gpuledger.ledger.as_of import Vector, said, seq_of
from gpuledger.ledger.copying import driver
from gpuledger.ledger.facts import Known
from gpuledger.ledger.mapping import Rules
from gpuledger.ledger.requests import asked_at, requests_of
from gpuledger.ledger.segments import derive

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
    """What a recorded cycle says beside its decisions, with the reservations that stand by now."""

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
    """Return workloads that are named nearly so, of those that begin alike, in small letters or capitals.

    Each beginning is a range of an index on names; what is made of a name, such as its small letters, has none.
    """
    wanted, half = workload.lower(), workload[: max(len(workload) // 2, 1)]
    beginnings = sorted({half, half.lower(), half.upper(), half.capitalize()})
    alike = " OR ".join(["starts_with(workload, %s)"] * len(beginnings))
    rows = driver(reader).execute(
        f"SELECT DISTINCT workload FROM (SELECT workload FROM ledger.segments WHERE book = %s AND ({alike})"
        f" UNION ALL SELECT workload FROM ledger.waits WHERE book = %s AND ({alike})) AS named LIMIT %s",
        (book, *beginnings, book, *beginnings, _LOOKED_AT),
    )
    names = sorted(name for (name,) in rows)
    near = dict.fromkeys(difflib.get_close_matches(wanted, {name.lower() for name in names}, n=_NEAR))
    return [name for lowered in near for name in names if name.lower() == lowered][:_NEAR]


def context(reader: Reader, cluster: str, at_s: int, *, seq: int | None = None) -> Context | None:
    """Return allocations of the newest cycle up to an instant and the reservations of then; None before the first."""
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
    amended = cycles.amendments(reader, cycles.Place(cluster, cycle, decided_s), at_s=at_s, seq=seq)
    return Context(
        cycle,
        decided_s,
        msgspec.json.decode(allocations),
        amended[-1].amended.record["reservations"] if amended else msgspec.json.decode(reservations or "[]"),
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
    """Return workload -> the limit that it declared for its runs, of those that run or wait at an instant.

    Of several submissions the one counts that wins (law 3), as everywhere, whichever was booked last, with what was
    changed of it by then.
    """
    rows = (
        driver(reader)
        .execute(
            f"""
        SELECT workload, count(*) = 1 AND min(type) = 'workload.submitted', max((body->>'time_limit_s')::bigint)
        FROM ledger.journal
        WHERE book = %(book)s AND type IN ('workload.submitted', 'workload.updated')
          AND effective_at <= to_timestamp(%(at)s) AND (%(seq)s::bigint IS NULL OR seq <= %(seq)s)
          AND workload IN (
            SELECT workload FROM ledger.segments AS s WHERE book = %(book)s AND {said("s", seq)}
              AND from_at <= to_timestamp(%(at)s) AND (to_at IS NULL OR to_at > to_timestamp(%(at)s))
            UNION SELECT workload FROM ledger.waits AS w WHERE book = %(book)s AND {said("w", seq)}
              AND from_at <= to_timestamp(%(at)s) AND (to_at IS NULL OR to_at > to_timestamp(%(at)s)))
        GROUP BY workload HAVING max((body->>'time_limit_s')::bigint) IS NOT NULL
        """,
            {"book": cluster, "at": at_s, "seq": seq},
        )
        .fetchall()
    )
    limits: dict[str, int] = {workload: limit_s for workload, is_alone, limit_s in rows if is_alone}
    for workload, known in _known(reader, cluster, [name for name, alone, _ in rows if not alone], at_s, seq):
        asked = asked_at(requests_of(known), at_s)
        if asked is not None and asked.asked.time_limit_s is not None:
            limits[workload] = asked.asked.time_limit_s
    return limits


def _known(
    reader: Reader, cluster: str, workloads: Sequence[str], at_s: int, seq: int | None
) -> Iterator[tuple[str, list[Known]]]:
    """Yield each workload with its facts up to an instant, and up to a row of the book where one is given."""
    known: dict[str, list[Known]] = {name: [] for name in workloads}
    for name, fact in store.facts_of(reader, cluster, workloads, seq=seq):
        if fact.at_s <= at_s:
            known[name].append(fact)
    yield from known.items()


def lapses(
    reader: Reader, cluster: str, at_s: int, calendar: Calendar, *, seq: int | None = None
) -> list[Lapse]:
    """Return the lots that are gone on a day after that of an instant, of those given by then; by day and account."""
    after = calendar.day_of(at_s)
    lots = [
        (place, lot)
        for place, own in settlement.standing(reader, cluster, calendar, seq).items()
        for lot in own
        if lot.expires_on is not None and lot.expires_on > after and lot.amount > 0
    ]
    rows = driver(reader).execute(
        "SELECT seq FROM ledger.journal WHERE book = %s AND seq = ANY(%s) AND effective_at > to_timestamp(%s)",
        (cluster, [lot.created for _, lot in lots], at_s),
    )
    later = {created for (created,) in rows}
    found = [
        Lapse(account, period, lot.name, lot.expires_on, lot.amount // WEIGHT_ONE)
        for (account, period), lot in lots
        if lot.expires_on is not None and lot.created not in later
    ]
    return sorted(found, key=lambda lapse: (lapse.on, lapse.account, lapse.name))


def unstarted_holds(
    reader: Reader, cluster: str, at_s: int, *, seq: int | None = None
) -> list[tuple[str, str, int, int]]:
    """Return (workload, account, GPUs in milli, expiry) of what is set aside and not started at an instant, by expiry.

    A hold that was drained, given back or replaced since was set aside then all the same: it follows from the facts of
    then. Whatever set something aside by then has a row that says so, in force or not any more.
    """
    rows = driver(reader).execute(
        "SELECT DISTINCT h.workload FROM ledger.holds AS h"
        " WHERE h.book = %(book)s AND h.expires_at > to_timestamp(%(at)s) AND EXISTS ("
        "   SELECT FROM ledger.journal AS j WHERE j.book = h.book AND j.workload = h.workload"
        "     AND j.type = 'decision.made' AND j.effective_at <= to_timestamp(%(at)s))",
        {"book": cluster, "at": at_s},
    )
    rules = queries.mapping(reader, cluster, seq)
    found = [
        (hold.expires_s, workload, hold.account, hold.gpus_milli)
        for workload, known in _known(reader, cluster, [name for (name,) in rows], at_s, seq)
        for hold in derive(known, rules).holds
        if hold.run is None and hold.expires_s is not None and hold.expires_s > at_s
    ]
    return [(workload, account, milli, expires_s) for expires_s, workload, account, milli in sorted(found)]
