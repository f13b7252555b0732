"""What is read often, kept beside the journal and rebuilt from it at will.

Segments, waits and hosts keep their versions: a row is in force from ``since_seq`` until
``until_seq``, so that a report can be repeated as of an earlier sequence.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from gpuledger.database.engine import Writer
from gpuledger.events import budget, host
from gpuledger.events.envelope import ORG_BOOK
from gpuledger.events.registry import Fact
from gpuledger.kernel.clock import instant, seconds
from gpuledger.ledger.copying import copy_rows, driver
from gpuledger.ledger.inventory import HostFact, intervals
from gpuledger.ledger.segments import History, Segment, Wait

SEGMENT_COLUMNS = (
    "workload", "run", "from_at", "to_at", "account", "class", "user_token", "gpus_milli", "gpu_model", "hosts",
    "estimated",
)  # fmt: skip
WAIT_COLUMNS = (
    "workload", "from_at", "to_at", "account", "gpus_milli", "gpu_model", "minimum_runtime_s", "priority",
    "submitted_at",
)  # fmt: skip


class Journalled(NamedTuple):
    """A fact with its place in the book."""

    seq: int
    at_s: int
    fact: Fact


def write_histories(writer: Writer, book: str, histories: Sequence[tuple[int, bool, str, History]]) -> None:
    """Bring segments and waits up to date.

    Args:
        writer: The transaction that appends.
        book: The book.
        histories: (newest sequence, were there rows before, workload, what follows from its facts).
    """
    before = {workload: seq for seq, known_before, workload, _ in histories if known_before}
    wanted: set[Segment | Wait] = set()
    for *_, history in histories:
        wanted.update(history.segments, history.waits)
    kept: set[Segment | Wait] = set()
    if before:
        kept |= _supersede(writer, book, "segments", before, _segments_of, wanted)
        kept |= _supersede(writer, book, "waits", before, _waits_of, wanted)
    new_segments: list[tuple[object, ...]] = []
    new_waits: list[tuple[object, ...]] = []
    for seq, _, _, history in histories:
        segments, waits = set(history.segments) - kept, set(history.waits) - kept
        new_segments += [(book, seq, *segment_row(s)) for s in sorted(segments, key=_order)]
        new_waits += [(book, seq, *wait_row(w)) for w in sorted(waits, key=_order)]
    if new_segments:
        copy_rows(writer, "ledger.segments", ("book", "since_seq", *SEGMENT_COLUMNS), new_segments)
    if new_waits:
        copy_rows(writer, "ledger.waits", ("book", "since_seq", *WAIT_COLUMNS), new_waits)


def _order(item: Segment | Wait) -> tuple[str, int, str]:
    return (item.workload, item.from_s, getattr(item, "run", ""))


def segment_row(s: Segment) -> tuple[object, ...]:
    """Return a segment as the columns of its table."""
    to_at = None if s.to_s is None else instant(s.to_s)
    return (
        s.workload, s.run, instant(s.from_s), to_at, s.account, s.klass, s.user, s.gpus_milli, s.gpu_model,
        list(s.hosts), s.estimated,
    )  # fmt: skip


def wait_row(w: Wait) -> tuple[object, ...]:
    """Return a wait as the columns of its table."""
    to_at = None if w.to_s is None else instant(w.to_s)
    return (
        w.workload, instant(w.from_s), to_at, w.account, w.gpus_milli, w.gpu_model, w.minimum_runtime_s,
        w.priority, instant(w.submitted_s),
    )  # fmt: skip


def _supersede(
    writer: Writer,
    book: str,
    table: str,
    before: Mapping[str, int],
    read: Callable[[Writer, str, Sequence[str]], Iterator[tuple[int, Segment | Wait]]],
    wanted: Collection[Segment | Wait],
) -> set[Segment | Wait]:
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


def _segments_of(writer: Writer, book: str, workloads: Sequence[str]) -> Iterator[tuple[int, Segment]]:
    """Yield (id, segment) of what is in force."""
    rows = driver(writer).execute(
        f"SELECT id, {', '.join(SEGMENT_COLUMNS)} FROM ledger.segments"
        " WHERE book = %s AND workload = ANY(%s) AND until_seq IS NULL",
        (book, list(workloads)),
    )
    for row_id, name, run, from_at, to_at, account, klass, user, gpus_milli, model, hosts, estimated in rows:
        span = seconds(from_at), None if to_at is None else seconds(to_at)
        used = Segment(name, run, *span, account, klass, user, gpus_milli, model, tuple(hosts), estimated)
        yield row_id, used


def _waits_of(writer: Writer, book: str, workloads: Sequence[str]) -> Iterator[tuple[int, Wait]]:
    """Yield (id, wait) of what is in force."""
    rows = driver(writer).execute(
        f"SELECT id, {', '.join(WAIT_COLUMNS)} FROM ledger.waits"
        " WHERE book = %s AND workload = ANY(%s) AND until_seq IS NULL",
        (book, list(workloads)),
    )
    for row_id, name, from_at, to_at, account, gpus_milli, model, minimum, priority, submitted_at in rows:
        span = seconds(from_at), None if to_at is None else seconds(to_at)
        yield row_id, Wait(name, *span, account, gpus_milli, model, minimum, priority, seconds(submitted_at))


def write_others(writer: Writer, book: str, facts: Sequence[Journalled]) -> None:
    """Bring the inventory, accounts, shares, periods and the organisation up to date."""
    hosts = {item.fact.host for item in facts if isinstance(item.fact, host.HostFact)}
    if hosts:
        _rewrite_hosts(writer, book, sorted(hosts), max(item.seq for item in facts))
    connection = driver(writer)
    for seq, at_s, fact in facts:
        match fact:
            case budget.AccountCreated() if book == ORG_BOOK:
                connection.execute(
                    "INSERT INTO ledger.accounts (account, path, created_seq) VALUES (%s, %s, %s)"
                    " ON CONFLICT (account) DO NOTHING",
                    (fact.account, fact.account, seq),
                )
            case budget.ShareSet():
                connection.execute(
                    "INSERT INTO ledger.shares (account, from_at, share, set_seq) VALUES (%s, %s, %s, %s)",
                    (fact.account, instant(at_s), fact.share, seq),
                )
            case budget.PolicyChanged(policy="organisation"):
                connection.execute(
                    "INSERT INTO ledger.organisation (set_seq, timezone, period) VALUES (%s, %s, %s)",
                    (seq, fact.timezone, fact.period),
                )
            case budget.PeriodOpened():
                connection.execute(
                    "INSERT INTO ledger.periods (book, period, opened_seq, installed_gpu_ms)"
                    " VALUES (%s, %s, %s, %s) ON CONFLICT (book, period) DO NOTHING",
                    (book, fact.period, seq, fact.installed_gpu_ms),
                )
            case _:
                pass  # grants, allocations and host facts have no projection of their own here


def _rewrite_hosts(writer: Writer, book: str, names: Sequence[str], seq: int) -> None:
    """Derive the intervals of each host from all its journalled facts; end and add versions."""
    connection = driver(writer)
    rows = connection.execute(
        "SELECT type, body::text, effective_at, source, digest FROM ledger.journal"
        " WHERE book = %s AND workload IS NULL AND type LIKE 'host.%%' AND body->>'host' = ANY(%s)",
        (book, list(names)),
    ).fetchall()
    facts: dict[str, list[HostFact]] = {name: [] for name in names}
    for type_, body, effective_at, source, digest in rows:
        known = HostFact.read(type_, body, seconds(effective_at), source, bytes(digest))
        facts[known.data.host].append(known)
    connection.execute(
        "UPDATE ledger.hosts SET until_seq = %s WHERE book = %s AND host = ANY(%s) AND until_seq IS NULL",
        (seq, book, list(names)),
    )
    copy_rows(
        writer,
        "ledger.hosts",
        ("book", "since_seq", "host", "gpus", "gpu_model", "state", "from_at", "to_at"),
        [
            (
                book,
                seq,
                i.host,
                i.gpus,
                i.gpu_model,
                i.state,
                instant(i.from_s),
                None if i.to_s is None else instant(i.to_s),
            )
            for name in names
            for i in intervals(facts[name])
        ],
    )
