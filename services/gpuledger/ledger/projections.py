"""What is read often, kept beside the journal and rebuilt from it at will.

Segments, waits, holds and hosts keep their versions: a row is in force from ``since_seq`` until
``until_seq``, so that a report can be repeated as of an earlier sequence.
"""

import datetime as dt
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from psycopg import Cursor

from gpuledger.database.engine import Reader, Writer
from gpuledger.events import host
from gpuledger.events.registry import Fact
from gpuledger.kernel.clock import instant, seconds
from gpuledger.ledger.copying import Texts, copy_rows, driver
from gpuledger.ledger.holds import Hold
from gpuledger.ledger.inventory import HostFact, HostInterval, intervals
from gpuledger.ledger.segments import History, Segment
from gpuledger.ledger.waits import Wait

Item = Segment | Wait | Hold
"""What follows from the facts of a workload and is kept in versions."""

Told = TypeVar("Told", Segment, Wait)

SEGMENT_COLUMNS = (
    "workload", "run", "from_at", "to_at", "account", "class", "user_token", "gpus_milli", "gpu_model", "hosts",
    "estimated", "capped_at",
)  # fmt: skip
WAIT_COLUMNS = (
    "workload", "from_at", "to_at", "account", "gpus_milli", "gpu_model", "minimum_runtime_s", "priority",
    "submitted_at", "began_at",
)  # fmt: skip


HOLD_COLUMNS = (
    "workload", "attempt", "from_at", "to_at", "account", "gpus_milli", "gpu_model", "run", "expires_at",
)  # fmt: skip


class Journalled(NamedTuple):
    """A fact with its place in the book."""

    seq: int
    at_s: int
    fact: Fact


def write_histories(writer: Writer, book: str, histories: Sequence[tuple[int, bool, str, History]]) -> None:
    """Bring segments, waits and holds up to date.

    Args:
        writer: The transaction that appends.
        book: The book.
        histories: (newest sequence, were there rows before, workload, what follows from its facts).
    """
    kept: set[Item] = set()
    if before := {workload: seq for seq, known_before, workload, _ in histories if known_before}:
        wanted: set[Item] = set()
        for *_, history in histories:
            wanted.update(history.segments, history.waits, history.holds)
        kept |= _supersede(writer, book, "segments", before, _segments_of, wanted)
        kept |= _supersede(writer, book, "waits", before, _waits_of, wanted)
        if admitted := {w: seq for seq, known, w, history in histories if known and history.is_admitted}:
            kept |= _supersede(writer, book, "holds", admitted, _holds_of, wanted)
    new_segments: list[tuple[object, ...]] = []
    new_waits: list[tuple[object, ...]] = []
    new_holds: list[tuple[object, ...]] = []
    for seq, _, _, history in histories:
        new_segments += [(book, seq, *segment_row(s)) for s in _fresh(history.segments, kept)]
        new_waits += [(book, seq, *wait_row(w)) for w in _fresh(history.waits, kept)]
        new_holds += [(book, seq, *hold_row(h)) for h in history.holds if h not in kept]
    if new_segments:
        copy_rows(writer, "ledger.segments", ("book", "since_seq", *SEGMENT_COLUMNS), new_segments)
    if new_waits:
        copy_rows(writer, "ledger.waits", ("book", "since_seq", *WAIT_COLUMNS), new_waits)
    if new_holds:
        copy_rows(writer, "ledger.holds", ("book", "since_seq", *HOLD_COLUMNS), new_holds)


def _fresh(items: Sequence[Told], kept: Collection[Item]) -> Sequence[Told]:
    """Return what is not in force yet, each once, in the order of time."""
    if len(items) <= 1:
        return [item for item in items if item not in kept]
    return sorted({item for item in items if item not in kept}, key=_order)


def _order(item: Segment | Wait) -> tuple[str, int, str]:
    return (item.workload, item.from_s, getattr(item, "run", ""))


def segment_row(s: Segment) -> tuple[object, ...]:
    """Return a segment as the columns of its table."""
    return (
        s.workload, s.run, instant(s.from_s), _at(s.to_s), s.account, s.klass, s.user, s.gpus_milli, s.gpu_model,
        list(s.hosts), s.estimated, _at(s.capped_s),
    )  # fmt: skip


def wait_row(w: Wait) -> tuple[object, ...]:
    """Return a wait as the columns of its table."""
    return (
        w.workload, instant(w.from_s), _at(w.to_s), w.account, w.gpus_milli, w.gpu_model, w.minimum_runtime_s,
        w.priority, instant(w.submitted_s), _at(w.began_s),
    )  # fmt: skip


def hold_row(h: Hold) -> tuple[object, ...]:
    """Return a hold as the columns of its table."""
    return (
        h.workload, h.attempt, instant(h.from_s), instant(h.to_s), h.account, h.gpus_milli, h.gpu_model, h.run,
        _at(h.expires_s),
    )  # fmt: skip


def _at(second: int | None) -> dt.datetime | None:
    return None if second is None else instant(second)


def _supersede(
    writer: Writer,
    book: str,
    table: str,
    before: Mapping[str, int],
    read: Callable[[Writer, str, Sequence[str]], Iterator[tuple[int, Item]]],
    wanted: Collection[Item],
) -> set[Item]:
    """End the rows of the workloads that no longer hold, at their sequences; return those that still do."""
    kept, over = set(), []
    for row_id, item in read(writer, book, list(before)):
        if item in wanted:
            kept.add(item)
        else:
            over.append((row_id, before[item.workload]))
    if over:
        ids, seqs = zip(*over, strict=True)
        driver(writer).execute(
            f"UPDATE ledger.{table} AS t SET until_seq = o.seq"
            " FROM unnest(%s::bigint[], %s::bigint[]) AS o (id, seq) WHERE t.id = o.id",
            (list(ids), list(seqs)),
        )
    return kept


def _in_force(
    writer: Writer, book: str, table: str, columns: Sequence[str], workloads: Sequence[str]
) -> "Cursor[tuple[Any, ...]]":
    """Return id and columns of what is in force of workloads, looked up one by one.

    The planner is left no choice: before it has statistics it would rather read all that is in force in the book.
    """
    return driver(writer).execute(
        f"SELECT own.id, {', '.join('own.' + column for column in columns)}"
        " FROM unnest(%s::text[]) AS named (workload) CROSS JOIN LATERAL"
        f" (SELECT * FROM ledger.{table} AS t WHERE t.book = %s AND t.workload = named.workload OFFSET 0) AS own"
        " WHERE own.until_seq IS NULL",
        (Texts(workloads), book),
    )


def _segments_of(writer: Writer, book: str, workloads: Sequence[str]) -> Iterator[tuple[int, Segment]]:
    """Yield (id, segment) of what is in force."""
    for row_id, *columns in _in_force(writer, book, "segments", SEGMENT_COLUMNS, workloads):
        yield row_id, segment_of(columns)


def segment_of(columns: Sequence[Any]) -> Segment:
    """Read a segment from the columns of its table."""
    name, run, from_at, to_at, account, klass, user, gpus_milli, model, hosts, estimated, capped_at = columns
    return Segment(
        workload=name,
        run=run,
        from_s=seconds(from_at),
        to_s=_second(to_at),
        account=account,
        klass=klass,
        user=user,
        gpus_milli=gpus_milli,
        gpu_model=model,
        hosts=tuple(hosts),
        estimated=estimated,
        capped_s=_second(capped_at),
    )


def _waits_of(writer: Writer, book: str, workloads: Sequence[str]) -> Iterator[tuple[int, Wait]]:
    """Yield (id, wait) of what is in force."""
    rows = _in_force(writer, book, "waits", WAIT_COLUMNS, workloads)
    for (
        row_id,
        name,
        from_at,
        to_at,
        account,
        milli,
        model,
        minimum,
        priority,
        submitted_at,
        began_at,
    ) in rows:
        span, since = (seconds(from_at), _second(to_at)), (seconds(submitted_at), _second(began_at))
        yield row_id, Wait(name, *span, account, milli, model, minimum, priority, *since)


def _holds_of(writer: Writer, book: str, workloads: Sequence[str]) -> Iterator[tuple[int, Hold]]:
    """Yield (id, hold) of what is in force."""
    for row_id, *columns in _in_force(writer, book, "holds", HOLD_COLUMNS, workloads):
        yield row_id, hold_of(columns)


def hold_of(columns: Sequence[Any]) -> Hold:
    """Read a hold from the columns of its table."""
    workload, attempt, from_at, to_at, account, gpus_milli, model, run, expires_at = columns
    span = seconds(from_at), seconds(to_at)
    return Hold(workload, attempt, *span, account, gpus_milli, model, run, _second(expires_at))


def _second(at: dt.datetime | None) -> int | None:
    return None if at is None else seconds(at)


def write_hosts(writer: Writer, book: str, facts: Sequence[Journalled]) -> None:
    """Bring the inventory up to date with what a batch tells of hosts."""
    hosts = {item.fact.host for item in facts if isinstance(item.fact, host.HostFact)}
    if hosts:
        _rewrite_hosts(writer, book, sorted(hosts), max(item.seq for item in facts))


def host_facts(
    connection: Reader | Writer, book: str, names: Sequence[str] | None = None
) -> Iterator[HostFact]:
    """Yield every journalled fact of the hosts named, or of all, in sequence."""
    rows = driver(connection).execute(
        "SELECT type, body::text, effective_at, source, digest FROM ledger.journal"
        " WHERE book = %s AND workload IS NULL AND type LIKE 'host.%%'"
        " AND (%s::text[] IS NULL OR body->>'host' = ANY(%s::text[])) ORDER BY seq",
        (book, names, names),
    )
    for type_, body, effective_at, source, digest in rows:
        yield HostFact.read(type_, body, seconds(effective_at), source, bytes(digest))


HOST_COLUMNS = ("host", "gpus", "gpu_model", "state", "from_at", "to_at", "partial_use")


def host_row(i: HostInterval) -> tuple[object, ...]:
    """Return an interval of a host as the columns of its table."""
    return i.host, i.gpus, i.gpu_model, i.state, instant(i.from_s), _at(i.to_s), i.partial_use


def _rewrite_hosts(writer: Writer, book: str, names: Sequence[str], seq: int) -> None:
    """Derive the intervals of each host from all its journalled facts; end and add versions."""
    connection = driver(writer)
    facts: dict[str, list[HostFact]] = {name: [] for name in names}
    for known in host_facts(writer, book, list(names)):
        facts[known.data.host].append(known)
    connection.execute(
        "UPDATE ledger.hosts SET until_seq = %s WHERE book = %s AND host = ANY(%s) AND until_seq IS NULL",
        (seq, book, list(names)),
    )
    copy_rows(
        writer,
        "ledger.hosts",
        ("book", "since_seq", *HOST_COLUMNS),
        [(book, seq, *host_row(i)) for name in names for i in intervals(facts[name])],
    )
