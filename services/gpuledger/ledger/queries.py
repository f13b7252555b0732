"""Small reads: what books, accounts and clusters there are, and where each book stands."""

import datetime as dt
from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache
from typing import NamedTuple

from gpuledger.database.engine import Reader, Writer
from gpuledger.events.budget import PolicyApplied, PolicyChanged
from gpuledger.events.envelope import ORG_BOOK, decode_data
from gpuledger.kernel.accounts import BOOK_POT_ACCOUNT, lineage, owner_of, parent
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.clock import instant, seconds
from gpuledger.kernel.errors import NotFound
from gpuledger.kernel.near import did_you_mean
from gpuledger.ledger.applied import Applied, card, rules
from gpuledger.ledger.copying import driver
from gpuledger.ledger.mapping import AS_GIVEN, Rules
from gpuledger.ledger.rates import RATE_CARD, Rates, Version

AsOf = dt.datetime | Mapping[str, int] | None
"""What is known: what was recorded by a time, or each book up to a row of it (book -> row); None for all."""


class BookStatus(NamedTuple):
    """Where a book stands.

    Args:
        collisions: Transactions that the database gave up for the sake of others, and that were made again.
    """

    book: str
    rows: int
    head: str
    last_recorded_at: dt.datetime
    collisions: int = 0


def clusters(reader: Reader | Writer) -> list[str]:
    """Return the clusters that have a book, sorted."""
    rows = driver(reader).execute("SELECT book FROM ledger.books WHERE book <> %s ORDER BY book", (ORG_BOOK,))
    return [book for (book,) in rows]


def book_heads(reader: Reader) -> list[BookStatus]:
    """Return every book with its number of rows and its head, sorted by name."""
    rows = driver(reader).execute(
        "SELECT book, last_seq, encode(head, 'hex'), last_recorded_at, collisions FROM ledger.books ORDER BY book"
    )
    return [BookStatus(*row) for row in rows]


def sequences(reader: Reader | Writer, as_of: AsOf = None) -> dict[str, int]:
    """Resolve a recorded time to a vector book -> sequence (law 6); now unless given."""
    if isinstance(as_of, Mapping):
        return dict(as_of)
    if as_of is None:
        rows = driver(reader).execute("SELECT book, last_seq FROM ledger.books ORDER BY book")
    else:
        rows = driver(reader).execute(
            "SELECT b.book, coalesce((SELECT max(j.seq) FROM ledger.journal AS j"
            " WHERE j.book = b.book AND j.recorded_at <= %s), 0) FROM ledger.books AS b ORDER BY b.book",
            (as_of,),
        )
    return dict(rows.fetchall())


def in_force(reader: Reader | Writer, as_of: AsOf) -> tuple[str, dict[str, object]]:
    """Return the condition on segments ``s`` that held at a recorded time, now unless given, and its values."""
    if as_of is None:
        return "s.until_seq IS NULL", {}
    vector = sequences(reader, as_of)
    clause = (
        "EXISTS (SELECT 1 FROM unnest(%(books)s::text[], %(seqs)s::bigint[]) AS v (book, seq)"
        " WHERE v.book = s.book AND s.since_seq <= v.seq AND (s.until_seq IS NULL OR s.until_seq > v.seq))"
    )
    return clause, {"books": list(vector), "seqs": list(vector.values())}


def open_workloads(reader: Reader | Writer, cluster: str) -> list[str]:
    """Return the workloads of a cluster that run or wait, as far as the ledger knows; sorted."""
    rows = driver(reader).execute(
        "SELECT workload FROM ledger.segments WHERE book = %(book)s AND until_seq IS NULL AND to_at IS NULL"
        " UNION SELECT workload FROM ledger.waits WHERE book = %(book)s AND until_seq IS NULL AND to_at IS NULL"
        " ORDER BY workload",
        {"book": cluster},
    )
    return [workload for (workload,) in rows]


def running_workloads(reader: Reader | Writer, cluster: str, from_s: int, to_s: int) -> list[str]:
    """Return the workloads of a cluster that held GPUs at some time in ``[from_s, to_s)``; sorted."""
    rows = driver(reader).execute(
        "SELECT DISTINCT workload FROM ledger.segments WHERE book = %(book)s AND until_seq IS NULL"
        " AND from_at < %(to)s AND (to_at IS NULL OR to_at > %(from)s) ORDER BY workload",
        {"book": cluster, "from": instant(from_s), "to": instant(to_s)},
    )
    return [workload for (workload,) in rows]


def ticks(reader: Reader | Writer, as_of: AsOf = None) -> dict[str, int]:
    """Return book -> its newest tick at a recorded time, now unless given; seconds since the epoch."""
    if as_of is None:
        rows = driver(reader).execute(
            "SELECT book, extract(epoch FROM ticked_at)::bigint FROM ledger.books WHERE ticked_at IS NOT NULL"
        )
        return dict(rows.fetchall())
    vector = sequences(reader, as_of)
    rows = driver(reader).execute(
        "SELECT j.book, extract(epoch FROM max(j.effective_at))::bigint FROM ledger.journal AS j"
        " JOIN unnest(%s::text[], %s::bigint[]) AS v (book, seq) ON v.book = j.book AND j.seq <= v.seq"
        " WHERE j.workload IS NULL AND j.type = 'ledger.ticked' GROUP BY j.book",
        (list(vector), list(vector.values())),
    )
    return dict(rows.fetchall())


def shut_periods(reader: Reader | Writer, as_of: AsOf = None) -> dict[str, frozenset[str]]:
    """Return book -> the periods that took no bookings at a recorded time, now unless given: closing or closed."""
    if as_of is None:
        rows = driver(reader).execute("SELECT book, period FROM ledger.periods WHERE state <> 'open'")
    else:
        vector = sequences(reader, as_of)
        rows = driver(reader).execute(
            "SELECT book, period FROM (SELECT DISTINCT ON (j.book, j.body->>'period')"
            " j.book, j.body->>'period' AS period, j.type FROM ledger.journal AS j"
            " JOIN unnest(%s::text[], %s::bigint[]) AS v (book, seq) ON v.book = j.book AND j.seq <= v.seq"
            " WHERE j.workload IS NULL AND j.type IN ('period.closing', 'period.reopened')"
            " ORDER BY j.book, j.body->>'period', j.seq DESC) AS newest WHERE type = 'period.closing'",
            (list(vector), list(vector.values())),
        )
    found: dict[str, set[str]] = {}
    for book, period in rows:
        found.setdefault(book, set()).add(period)
    return {book: frozenset(periods) for book, periods in found.items()}


class StreamStatus(NamedTuple):
    """How far a consumer has read a partition of a stream.

    Args:
        position: The next record to read.
        waiting: Records that waited when the worker looked last, less those read since; None before it looked.
        seen_at: When it looked.
        published_at: When the newest record that was read had been published; None where the broker does not say.
        takeovers: How many workers have claimed the partition.
    """

    consumer: str
    stream: str
    partition: int
    position: int
    waiting: int | None
    seen_at: dt.datetime | None
    published_at: dt.datetime | None
    takeovers: int


def streams(reader: Reader) -> list[StreamStatus]:
    """Return how far every consumer has read, by consumer, stream and partition."""
    rows = driver(reader).execute(
        # Not greatest alone, which leaves nulls out: what nobody looked at would be told as nothing.
        "SELECT consumer, stream, partition, position,"
        " CASE WHEN end_position IS NOT NULL THEN greatest(end_position - position, 0) END,"
        " seen_at, published_at, epoch"
        " FROM ledger.stream_offsets ORDER BY consumer, stream, partition"
    )
    return [StreamStatus(*row) for row in rows]


def writers_waiting(reader: Reader) -> dict[str, int]:
    """Return book -> how many transactions wait for its lock now; books that nobody waits for are there with 0."""
    rows = driver(reader).execute(
        """
        SELECT b.book, count(l.pid)
        FROM ledger.books AS b LEFT JOIN pg_locks AS l
          ON l.locktype = 'advisory' AND NOT l.granted AND l.objsubid = 1
             AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
             AND (l.classid::bigint << 32 | l.objid::bigint) = hashtextextended(b.book, 0)
        GROUP BY b.book
        """
    )
    return dict(rows.fetchall())


def dead_letter_count(reader: Reader, as_of: dt.datetime | None = None) -> int:
    """Return how many dead letters wait for a person, or waited at a recorded time."""
    row = driver(reader).execute(
        "SELECT count(*) FROM ledger.dead_letters WHERE received_at <= coalesce(%(at)s, received_at)"
        " AND (resolved_at IS NULL OR resolved_at > %(at)s) AND (discarded_at IS NULL OR discarded_at > %(at)s)",
        {"at": as_of},
    ).fetchone()  # fmt: skip
    return int(row[0]) if row else 0


def account_paths(reader: Reader | Writer, org_seq: int | None = None) -> list[str]:
    """Return the path of every account, sorted, as of a row of ``~org``; now unless given."""
    rows = driver(reader).execute(
        "SELECT path FROM ledger.accounts WHERE %s::bigint IS NULL OR created_seq <= %s ORDER BY path",
        (org_seq, org_seq),
    )
    return [path for (path,) in rows]


def booked_accounts(reader: Reader | Writer) -> set[str]:
    """Return every account that anything was ever booked to."""
    rows = driver(reader).execute(
        "SELECT DISTINCT account FROM ledger.balances WHERE account <> %s", (BOOK_POT_ACCOUNT,)
    )
    return {account for (account,) in rows}


def shares_at(reader: Reader | Writer, at: dt.datetime, org_seq: int | None = None) -> dict[str, int]:
    """Return the explicit shares in force at an instant, as of a row of ``~org``; accounts without one are absent."""
    rows = driver(reader).execute(
        "SELECT DISTINCT ON (account) account, share FROM ledger.shares WHERE from_at <= %s"
        " AND (%s::bigint IS NULL OR set_seq <= %s) ORDER BY account, from_at DESC, set_seq DESC",
        (at, org_seq, org_seq),
    )
    return dict(rows.fetchall())


def hard_accounts(reader: Reader | Writer, at: dt.datetime, org_seq: int | None = None) -> set[str]:
    """Return the accounts, leaves and inner nodes, whose overdraft is hard at an instant, as of a row of ``~org``."""
    rows = driver(reader).execute(
        "SELECT DISTINCT ON (account) account, overdraft FROM ledger.overdrafts WHERE from_at <= %s"
        " AND (%s::bigint IS NULL OR set_seq <= %s) ORDER BY account, from_at DESC, set_seq DESC",
        (at, org_seq, org_seq),
    )
    return {account for account, overdraft in rows if overdraft == "hard"}


def calendar(reader: Reader | Writer, default: Calendar, as_of: AsOf = None) -> Calendar:
    """Return the organisation's calendar as the book had it at a recorded time, or the default before it was set."""
    org_seq = None if as_of is None else sequences(reader, as_of).get(ORG_BOOK, 0)
    row = driver(reader).execute(
        "SELECT timezone FROM ledger.organisation WHERE %s::bigint IS NULL OR set_seq <= %s"
        " ORDER BY set_seq DESC LIMIT 1",
        (org_seq, org_seq),
    ).fetchone()  # fmt: skip
    return Calendar(row[0]) if row else default


def is_zone_set(reader: Reader | Writer) -> bool:
    """Tell whether the organisation has set its zone; else each process cuts days by its own settings."""
    return driver(reader).execute("SELECT 1 FROM ledger.organisation LIMIT 1").fetchone() is not None


def require_cluster(reader: Reader | Writer, cluster: str | None) -> None:
    """Check that a cluster, when one is named, has a book.

    Raises:
        NotFound: When it has none; names those that have.
    """
    if cluster is None:
        return
    check_cluster(cluster, clusters(reader))


def check_cluster(cluster: str, known: Collection[str]) -> None:
    """Check that a cluster is one of those that have a book; raises as ``require_cluster``. Pure."""
    if cluster not in known:
        names = ", ".join(known)
        hint = f"known clusters: {names}" if known else "gpuledger import SOURCE PATH brings the first one"
        raise NotFound(f"cluster {cluster!r} does not exist", hint=hint)


def inner_accounts(reader: Reader | Writer, org_seq: int | None = None) -> set[str]:
    """Return the accounts that have others below them, as of a row of ``~org``; now unless given."""
    return inner_of(account_paths(reader, org_seq))


def inner_of(paths: Iterable[str]) -> set[str]:
    """Return the accounts of a tree that have others below them. Pure."""
    return {above for path in paths for node in lineage(path) if (above := parent(node)) is not None}


def is_inner(reader: Reader | Writer, account: str) -> bool:
    """Tell whether an account has accounts below it."""
    row = driver(reader).execute(
        "SELECT 1 FROM ledger.accounts WHERE starts_with(path, %s) LIMIT 1", (account + "/",)
    ).fetchone()  # fmt: skip
    return row is not None


def require_account(reader: Reader | Writer, account: str) -> None:
    """Check that an account exists; raises NotFound with the nearest names when it does not."""
    check_account(account, account_paths(reader))


def check_account(account: str, known: Collection[str]) -> None:
    """Check that an account is one of those that exist, or lies above one; raises as ``require_account``. Pure."""
    owner = owner_of(account)
    if account in known or any(path.startswith((account + "/", owner + "/")) for path in known):
        return
    hint = did_you_mean(account, known, "gpuledger usage --by account lists the accounts", most=3)
    raise NotFound(f"account {account!r} does not exist", hint=hint)


def granted(reader: Reader | Writer) -> dict[tuple[str, str, str, bool], int]:
    """Return (account, cluster, period, whether as a limit) -> all that was ever granted explicitly, in gpu_ms."""
    return _given(reader, "type = 'budget.granted'")


def taken_back(reader: Reader | Writer) -> dict[tuple[str, str, str, bool], int]:
    """Return by the same keys how much of what was granted adjustments took back since, in gpu_ms."""
    adjusted = _given(reader, "type = 'adjustment.posted' AND body->>'code' = 'grant'")
    return {key: -amount for key, amount in adjusted.items()}


def _given(reader: Reader | Writer, of: str) -> dict[tuple[str, str, str, bool], int]:
    rows = driver(reader).execute(
        "SELECT body->>'account', book, body->>'period', coalesce((body->>'limit')::boolean, false),"
        " sum((body->>'gpu_ms')::bigint)::bigint"
        f" FROM ledger.journal WHERE workload IS NULL AND {of} GROUP BY 1, 2, 3, 4"
    )
    return {(account, book, period, limit): amount for account, book, period, limit, amount in rows}


def policy_versions(
    connection: Reader | Writer, *policies: str, after_seq: int = 0, org_seq: int | None = None
) -> list[tuple[int, int, PolicyChanged]]:
    """Return (row of ``~org``, from when, what was set) of every version of policies, in the order they were set.

    Those that were set after one row and up to another; now unless given.
    """
    rows = driver(connection).execute(
        "SELECT seq, effective_at, body::text FROM ledger.journal WHERE book = %s AND workload IS NULL"
        " AND type = 'policy.changed' AND body->>'policy' = ANY(%s) AND seq > %s"
        " AND (%s::bigint IS NULL OR seq <= %s) ORDER BY seq",
        (ORG_BOOK, list(policies), after_seq, org_seq, org_seq),
    )
    found = []
    for seq, effective_at, body in rows.fetchall():
        changed = decode_data("policy.changed", body)
        assert isinstance(changed, PolicyChanged)  # noqa: S101 - the query selected the type
        found.append((seq, seconds(effective_at), changed))
    return found


def policies_applied(
    connection: Reader | Writer, book: str | None = None, vector: Mapping[str, int] | None = None
) -> dict[str, list[Applied]]:
    """Return book -> the versions of policy data that it has taken over.

    Args:
        connection: A transaction.
        book: One book; all unless given.
        vector: Book -> sequence to read up to; now unless given.
    """
    rows = driver(connection).execute(
        "SELECT book, seq, effective_at, body::text FROM ledger.journal WHERE (%s::text IS NULL OR book = %s)"
        " AND workload IS NULL AND type = 'policy.applied'",
        (book, book),
    )
    found: dict[str, list[Applied]] = {}
    for name, seq, effective_at, body in rows.fetchall():
        if vector is None or seq <= vector.get(name, 0):
            found.setdefault(name, []).append(Applied(seq, seconds(effective_at), _policy_applied(body)))
    return found


@lru_cache(maxsize=256)
def _policy_applied(body: str) -> PolicyApplied:
    """Read what a book took over; every batch asks for it, and a mapping may be long."""
    applied = decode_data("policy.applied", body)
    assert isinstance(applied, PolicyApplied)  # noqa: S101 - the query selected the type
    return applied


def rate_cards(connection: Reader | Writer, as_of: AsOf = None, book: str | None = None) -> dict[str, Rates]:
    """Return book -> the rate card that its charges followed at a recorded time, now unless given; of one book or all.

    Books that followed none are absent.
    """
    vector = None if as_of is None else sequences(connection, as_of)
    applied = policies_applied(connection, book, vector)
    return {name: card(versions) for name, versions in applied.items()}


def mappings(connection: Reader | Writer, vector: Mapping[str, int] | None = None) -> dict[str, Rules]:
    """Return book -> the mapping that its workloads are read by; books that took over no policy data are absent."""
    applied = policies_applied(connection, vector=vector)
    return {book: rules(versions, book) for book, versions in applied.items()}


def mapping(connection: Reader | Writer, book: str, seq: int | None = None) -> Rules:
    """Return the mapping that a book reads its workloads by, as of one of its rows; now unless given."""
    applied = policies_applied(connection, book, None if seq is None else {book: seq}).get(book)
    return rules(applied, book) if applied else AS_GIVEN


def rate_card(connection: Reader | Writer, org_seq: int | None = None) -> Rates:
    """Return the organisation's rate card with all its versions, as of a row of ``~org``; now unless given."""
    versions = policy_versions(connection, RATE_CARD, org_seq=org_seq)
    return Rates.of([Version(at_s, seq, changed.weights or {}) for seq, at_s, changed in versions])
