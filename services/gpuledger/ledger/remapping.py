"""What a mapping makes of a book: whose work it reads otherwise, what moves between accounts, what has no owner."""

import datetime as dt
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from gpuledger.database.engine import Reader, Writer
from gpuledger.kernel.accounts import SEPARATOR, UNMAPPED_ROOT
from gpuledger.kernel.calendar import Calendar
from gpuledger.ledger import queries, replay
from gpuledger.ledger.as_of import Vector
from gpuledger.ledger.copying import driver
from gpuledger.ledger.facts import Known
from gpuledger.ledger.mapping import AS_GIVEN, MAPPING, Matched, Rules, Version
from gpuledger.ledger.requests import LATEST_S, asked_at, requests_of
from gpuledger.ledger.segments import History, Unfolding


class Group(NamedTuple):
    """Work that a source says the same of.

    Args:
        foreign: The account as the source gave it; empty for runs that nobody submitted.
        labels: Label and value, as the source gave them.
        matched: The rule that decided; None for none.
        account: Who pays.
        klass: The class of the rule, or of what was asked for.
    """

    cluster: str
    foreign: str
    labels: tuple[tuple[str, str], ...]
    matched: Matched | None
    account: str
    klass: str


@dataclass(slots=True)
class Use:
    """How many workloads, and their GPU-time, physical, both classes, open runs so far."""

    workloads: int = 0
    gpu_ms: int = 0


class Payer(NamedTuple):
    """Whose GPU-time it is: allocated, which is charged, or unallocated, which is free."""

    cluster: str
    account: str
    klass: str


class Move(NamedTuple):
    """GPU-time before and after: physical, open runs so far."""

    before: int = 0
    after: int = 0


@dataclass(frozen=True, slots=True)
class Survey:
    """What a mapping makes of all that is known.

    Args:
        groups: What each group of workloads means, and how much that is.
        moves: What each account has now in each class, and would have; only what moves.
        periods: (cluster, period) -> GPU-time that other accounts or classes would have.
        restated: How many workloads mean something else.
        accounts: Everybody who would pay.
    """

    groups: Mapping[Group, Use]
    moves: Mapping[Payer, Move]
    periods: Mapping[tuple[str, str], int]
    restated: int
    accounts: frozenset[str]


class Unmapped(NamedTuple):
    """A foreign name that no rule matches, with its GPU-time: physical, both classes, open runs so far."""

    cluster: str
    account: str
    workloads: int
    gpu_ms: int

    @property
    def foreign(self) -> str:
        """The name as the source gave it, without the cluster."""
        return self.account.removeprefix(UNMAPPED_ROOT + SEPARATOR)


def read_otherwise(writer: Writer, book: str, before: Rules, after: Rules) -> list[str]:
    """Return the workloads of a book from which something else follows under other rules; few are held in memory."""
    if not (before or after):
        return []
    return [
        workload
        for _, workload, facts in replay.iter_workloads(writer, book)
        for stood, stands in [_readings(facts, before, after)]
        if stood != stands
    ]


def versions(connection: Reader | Writer, *, org_seq: int | None = None) -> list[Version]:
    """Return every version of the mapping that the organisation has set, in the order in which they were set.

    As of a row of ``~org``; now unless given.
    """
    set_ = queries.policy_versions(connection, MAPPING, org_seq=org_seq)
    return [Version(at_s, seq, changed.rules or ()) for seq, at_s, changed in set_]


def survey(
    reader: Reader,
    planned: Sequence[Version],
    now_s: int,
    calendar: Calendar,
    cluster: str | None = None,
    *,
    vector: Vector | None = None,
) -> Survey:
    """Return what versions of the mapping would make of all that is known, beside what stands.

    Args:
        reader: A snapshot.
        planned: All versions, those that are set already among them.
        now_s: Open runs count up to here.
        calendar: The organisation's days and periods.
        cluster: One cluster, or all.
        vector: Book -> the row up to which it is read; now unless given.
    """
    stands = queries.mappings(reader, vector)
    would = {book: Rules(planned, book) for book in queries.clusters(reader)}
    groups: dict[Group, Use] = {}
    moves: dict[Payer, Move] = {}
    periods: dict[tuple[str, str], int] = {}
    accounts, restated = set[str](), 0
    for book, _, facts in replay.iter_workloads(reader, cluster, vector=vector):
        before, after = _readings(facts, stands.get(book, AS_GIVEN), would[book])
        use = groups.setdefault(_group(book, facts, would[book], after), Use())
        use.workloads += 1
        use.gpu_ms += sum(_gpu_ms(after, now_s).values())
        accounts |= after.accounts
        if before != after:
            restated += 1
            _move(book, moves, _gpu_ms(before, now_s), _gpu_ms(after, now_s))
            for period, gpu_ms in _moved(before, after, now_s, calendar):
                periods[book, period] = periods.get((book, period), 0) + gpu_ms
    moved = {payer: move for payer, move in sorted(moves.items()) if move.before != move.after}
    return Survey(groups, moved, periods, restated, frozenset(accounts))


def unmapped(
    reader: Reader, now_s: int, cluster: str | None = None, *, as_of: dt.datetime | None = None
) -> list[Unmapped]:
    """Return the foreign names that no rule matches, the most GPU-time first: what ``gpuledger doctor`` shows too.

    Args:
        reader: A snapshot.
        now_s: Open runs count up to here, and to their declared limit at most.
        cluster: One cluster, or all.
        as_of: Recorded time: what the books said then; now unless given.
    """
    in_force, values = queries.in_force(reader, as_of)
    rows = driver(reader).execute(
        f"""
        SELECT book, account, count(DISTINCT workload)::bigint, coalesce(sum(gpu_ms), 0)::bigint FROM (
            SELECT book, account, workload, gpus_milli * greatest(0,
                coalesce(extract(epoch FROM to_at)::bigint, least(%(now)s, extract(epoch FROM capped_at)::bigint))
                - extract(epoch FROM from_at)::bigint) AS gpu_ms
            FROM ledger.segments AS s WHERE {in_force}
            UNION ALL
            SELECT book, account, workload, 0 FROM ledger.waits AS s WHERE {in_force}
        ) AS work
        WHERE starts_with(account, %(root)s) AND (%(cluster)s::text IS NULL OR book = %(cluster)s)
        GROUP BY book, account ORDER BY 4 DESC, book, account
        """,
        {"now": now_s, "root": UNMAPPED_ROOT + SEPARATOR, "cluster": cluster, **values},
    )
    return [Unmapped(*row) for row in rows]


def _readings(facts: Iterable[tuple[int, Known]], before: Rules, after: Rules) -> tuple[History, History]:
    """Return what follows from the facts of a workload under one mapping, and under another."""
    unfolding = Unfolding(before)
    for _, fact in facts:
        unfolding.add(fact)
    stood = unfolding.history()
    unfolding.remap(after)
    return stood, unfolding.history()


def _group(book: str, facts: Iterable[tuple[int, Known]], rules: Rules, history: History) -> Group:
    asked = asked_at(requests_of((fact for _, fact in facts), rules), LATEST_S)
    if asked is None:
        account = next((s.account for s in history.segments), UNMAPPED_ROOT)
        return Group(book, "", (), None, account, "allocated")
    klass = "allocated" if asked.minimum_runtime_s else "unallocated"
    labels = tuple(sorted((asked.asked.labels or {}).items()))
    return Group(book, asked.asked.account, labels, asked.meaning.matched, asked.meaning.account, klass)


def _gpu_ms(history: History, now_s: int) -> dict[tuple[str, str], int]:
    """Return (account, class) -> GPU-time."""
    found: dict[tuple[str, str], int] = {}
    for s in history.segments:
        key = s.account, s.klass
        found[key] = found.get(key, 0) + s.gpus_milli * max(0, s.until_s(now_s) - s.from_s)
    return found


def _move(
    book: str,
    moves: dict[Payer, Move],
    before: Mapping[tuple[str, str], int],
    after: Mapping[tuple[str, str], int],
) -> None:
    for account, klass in before.keys() | after.keys():
        payer, key = Payer(book, account, klass), (account, klass)
        had, gets = moves.get(payer, Move())
        moves[payer] = Move(had + before.get(key, 0), gets + after.get(key, 0))


def _moved(before: History, after: History, now_s: int, calendar: Calendar) -> Iterator[tuple[str, int]]:
    """Yield (period, GPU-time) of what leaves an account or class; the same arrives elsewhere."""
    stays = {(s.run, s.from_s, s.account, s.klass) for s in after.segments}
    for s in before.segments:
        if (s.run, s.from_s, s.account, s.klass) not in stays:
            until_s = max(s.from_s, s.until_s(now_s))
            for piece in calendar.slices(s.from_s, until_s):
                yield calendar.period_of(piece.day), s.gpus_milli * (piece.end_s - piece.start_s)
