"""The journal read back in sequence, and what followed from it at each row.

Everything that is not journal or posting can be made again from here, its earlier versions included,
so that a report as of an earlier sequence says the same after a rebuild as before.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from heapq import merge
from itertools import chain, groupby
from operator import itemgetter
from typing import NamedTuple, TypeVar

import msgspec

from gpuledger.database.engine import Reader, Writer
from gpuledger.events import host as host_events
from gpuledger.events.envelope import decode_data
from gpuledger.events.registry import Fact
from gpuledger.kernel.clock import seconds
from gpuledger.kernel.errors import Corrupt
from gpuledger.ledger.copying import driver
from gpuledger.ledger.facts import Known
from gpuledger.ledger.inventory import HostFact
from gpuledger.ledger.mapping import AS_GIVEN, Rules
from gpuledger.ledger.projections import Item as Followed
from gpuledger.ledger.projections import Journalled
from gpuledger.ledger.segments import Unfolding

FETCHED_ROWS = 5000

Told = TypeVar("Told")
Item = TypeVar("Item", bound=Hashable)


class WorkloadFacts(NamedTuple):
    """All facts about one workload, each with its sequence, in sequence."""

    book: str
    workload: str
    facts: list[tuple[int, Known]]


class HostFacts(NamedTuple):
    """All facts about one host, each with its sequence, in sequence."""

    book: str
    host: str
    facts: list[tuple[int, HostFact]]


def versions(
    facts: Iterable[tuple[int, Told]], follows: Callable[[Sequence[Told]], Iterable[Item]]
) -> list[tuple[Item, int, int | None]]:
    """Return everything that ever followed from the facts: (item, since sequence, until sequence).

    Args:
        facts: (sequence, fact), in sequence.
        follows: What follows from the facts known so far; must not keep the list.
    """
    known: list[Told] = []

    def learn(fact: Told) -> Iterable[Item]:
        known.append(fact)
        return follows(known)

    return _versions(facts, learn)


def history_versions(
    facts: Sequence[tuple[int, Known]], mappings: Sequence[tuple[int, Rules]] = ()
) -> list[tuple[Followed, int, int | None]]:
    """Return every segment, wait and hold that ever followed from a workload's facts, as ``versions`` does.

    Args:
        facts: (sequence, fact), in sequence.
        mappings: (sequence, what foreign names mean from that row on), in sequence.
    """
    first = facts[0][0] if facts else 0
    unfolding = Unfolding(next((rules for seq, rules in reversed(mappings) if seq < first), AS_GIVEN))

    def learn(told: Known | Rules) -> Iterable[Followed]:
        if isinstance(told, Rules):
            unfolding.remap(told)
        else:
            unfolding.add(told)
        history = unfolding.history()
        return (*history.segments, *history.waits, *history.holds)

    later = [(seq, rules) for seq, rules in mappings if seq > first]
    told: Iterable[tuple[int, Known | Rules]] = merge(facts, later, key=itemgetter(0)) if later else facts
    return _versions(told, learn)


def _versions(
    facts: Iterable[tuple[int, Told]], learn: Callable[[Told], Iterable[Item]]
) -> list[tuple[Item, int, int | None]]:
    current: dict[Item, int] = {}
    past: list[tuple[Item, int, int | None]] = []
    for seq, fact in facts:
        now = dict.fromkeys(learn(fact), seq)
        for item, since in current.items():
            if item in now:
                now[item] = since
            else:
                past.append((item, since, seq))
        current = now
    return past + [(item, since, None) for item, since in current.items()]


def journalled(book: str, seq: int, type_: str, body: str) -> Fact:
    """Read the body of a row.

    Raises:
        Corrupt: When the row cannot be read; names it.
    """
    try:
        return decode_data(type_, body)
    except (KeyError, msgspec.MsgspecError) as error:
        raise Corrupt(
            f"row {seq} of book {book!r} cannot be read as {type_}: {error}",
            hint="gpuledger audit verify tells whether it was changed",
        ) from error


def iter_workloads(
    connection: Reader | Writer, book: str | None = None, *, vector: Mapping[str, int] | None = None
) -> Iterator[WorkloadFacts]:
    """Yield the facts of every workload of one book, or of all, ordered by book and workload.

    Up to the row that a vector names for each book; all unless given.
    """
    books = None if vector is None else list(vector)
    with driver(connection).cursor(name="replay_workloads") as cursor:
        cursor.execute(
            "SELECT book, workload, seq, type, body::text, extract(epoch FROM effective_at)::bigint, source, digest"
            " FROM ledger.journal WHERE workload IS NOT NULL AND (%s::text IS NULL OR book = %s)"
            " AND (%s::text[] IS NULL OR seq <= (%s::bigint[])[array_position(%s::text[], book)])"
            " ORDER BY book, workload, seq",
            (book, book, books, None if vector is None else list(vector.values()), books),
            binary=True,
        )
        fetched = chain.from_iterable(iter(partial(cursor.fetchmany, FETCHED_ROWS), []))
        for (of, workload), rows in groupby(fetched, key=itemgetter(0, 1)):
            facts = [
                (seq, Known(journalled(of, seq, type_, body), at_s, source, digest))
                for _, _, seq, type_, body, at_s, source, digest in rows
            ]
            yield WorkloadFacts(of, workload, facts)


def iter_hosts(connection: Reader | Writer) -> Iterator[HostFacts]:
    """Yield the facts of every host, ordered by book and host."""
    rows = driver(connection).execute(
        "SELECT book, body->>'host', seq, type, body::text, effective_at, source, digest FROM ledger.journal"
        " WHERE workload IS NULL AND type LIKE 'host.%' ORDER BY 1, 2, 3"
    )
    for (book, host), group in groupby(rows.fetchall(), key=lambda row: row[:2]):
        facts = [
            (
                seq,
                _host_fact(journalled(book, seq, type_, body), seconds(effective_at), source, bytes(digest)),
            )
            for _, _, seq, type_, body, effective_at, source, digest in group
        ]
        yield HostFacts(book, host, facts)


def _host_fact(data: Fact, at_s: int, source: str, digest: bytes) -> HostFact:
    assert isinstance(data, host_events.HostFact)  # noqa: S101 - the query selected host.*
    return HostFact(data, Known(data, at_s, source, digest))


_ORDERS = (
    "account.created", "budget.share_set", "budget.overdraft_set", "budget.granted", "budget.transferred",
    "adjustment.posted", "policy.changed", "period.opened", "period.closing", "period.closed", "period.reopened",
)  # fmt: skip


def ticks(connection: Reader | Writer) -> dict[str, int]:
    """Return book -> its newest tick, seconds since the epoch; books without one are absent."""
    rows = driver(connection).execute(
        "SELECT book, extract(epoch FROM max(effective_at))::bigint FROM ledger.journal"
        " WHERE workload IS NULL AND type = 'ledger.ticked' GROUP BY book"
    )
    return dict(rows.fetchall())


def commands(connection: Reader | Writer) -> list[tuple[str, Journalled]]:
    """Return (book, fact) of what people and policy ordered: accounts, shares, grants, periods, zones."""
    rows = driver(connection).execute(
        "SELECT book, seq, type, body::text, effective_at FROM ledger.journal WHERE workload IS NULL"
        " AND type = ANY(%s) ORDER BY book, seq",
        (list(_ORDERS),),
    )
    return [
        (book, Journalled(seq, seconds(effective_at), journalled(book, seq, type_, body)))
        for book, seq, type_, body, effective_at in rows.fetchall()
    ]
