"""What stood earlier: versions that are over, held against what the journal said then.

A batch writes one version of what follows from its facts, a rebuild one a fact; a report as of a recorded time sees
what stood after whole batches. So versions are not compared row by row: whatever stands must say what the journal
says at every row where it changes, and at the end of each batch.

Where a batch ends follows from ``recorded_at``: rows of one are a microsecond apart, and the next begins later,
unless the clock stood still meanwhile. Then batches count as one, and only the rows where what stands changes count.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby, pairwise
from typing import NamedTuple

from gpuledger.database.engine import Reader
from gpuledger.ledger import projections, replay
from gpuledger.ledger.copying import Texts, driver
from gpuledger.ledger.holds import Hold
from gpuledger.ledger.inventory import HostFact, intervals
from gpuledger.ledger.lines import line
from gpuledger.ledger.mapping import Rules
from gpuledger.ledger.segments import Segment

KINDS = {
    "run": ("ledger.segments", projections.SEGMENT_COLUMNS),
    "wait": ("ledger.waits", projections.WAIT_COLUMNS),
    "hold": ("ledger.holds", projections.HOLD_COLUMNS),
}
"""What is kept in versions of each workload: where, and in which columns."""


class Version(NamedTuple):
    """What stood from one row of the book until another.

    Args:
        text: What it says.
        since: The row from which on it was in force.
        until: The row from which on it no longer was; None while it is.
    """

    text: str
    since: int
    until: int | None


class Unlike(NamedTuple):
    """Where versions say something else than the journal."""

    seq: int
    is_missing: bool
    text: str

    def told(self, kind: str) -> str:
        """Return it as a difference is told."""
        return f"{kind} as of row {self.seq} {'missing' if self.is_missing else 'not in the journal'}: {self.text}"


def unlike(stored: Sequence[Version], followed: Sequence[Version], starts: Sequence[int]) -> Iterator[Unlike]:
    """Yield each text that stood when it did not follow, or followed and did not stand, once: where it first did. Pure.

    What is in force now is not looked at: it is compared elsewhere, row by row.

    Args:
        stored: The versions that stand.
        followed: What followed from the facts after each of them.
        starts: The rows with which a batch begins, ascending; further ones may begin within.
    """
    if set(stored) == set(followed) and len(stored) == len(followed):
        return
    changes = sorted({seq for version in (*stored, *followed) for seq in version[1:] if seq is not None})
    looked_at = {seq for version in stored for seq in version[1:] if seq is not None}
    for seq, following in pairwise(changes):
        place = bisect_right(starts, seq)
        if place < len(starts) and starts[place] <= following:  # its batch ended before the next change
            looked_at.add(starts[place] - 1)
    told = set()
    for seq in sorted(looked_at):
        if seq >= changes[-1]:
            return
        have, want = (Counter(v.text for v in of if _is_in_force(v, seq)) for of in (stored, followed))
        for is_missing, texts in ((True, want - have), (False, have - want)):
            for text in sorted(texts):
                if (is_missing, text) not in told:
                    told.add((is_missing, text))
                    yield Unlike(seq, is_missing, text)


def _is_in_force(version: Version, seq: int) -> bool:
    return version.since <= seq and (version.until is None or version.until > seq)


def batch_starts(reader: Reader) -> dict[str, list[int]]:
    """Return book -> the rows with which a batch began for certain, and the one with which the next will begin."""
    rows = driver(reader).execute(
        "SELECT book, seq FROM (SELECT book, seq, recorded_at - lag(recorded_at) OVER (PARTITION BY book ORDER BY seq)"
        " AS after FROM ledger.journal) AS j WHERE after <> interval '1 microsecond'"
        " UNION SELECT book, max(seq) + 1 FROM ledger.journal GROUP BY book ORDER BY book, seq"
    )
    return {book: [seq for _, seq in of] for book, of in groupby(rows.fetchall(), key=lambda row: row[0])}


def of_workloads(
    reader: Reader,
    workloads: Sequence[replay.WorkloadFacts],
    mappings: Mapping[str, Sequence[tuple[int, Rules]]],
    starts: Mapping[str, Sequence[int]],
) -> Iterator[tuple[str, str]]:
    """Yield (kind, difference) of what stood of some workloads.

    Args:
        reader: A snapshot.
        workloads: All facts of each.
        mappings: Book -> (row, what foreign names mean from it on), in sequence.
        starts: Book -> the rows with which a batch begins.
    """
    stood = {kind: _stood(reader, kind, workloads) for kind in KINDS}
    for book, workload, facts in workloads:
        followed: dict[str, list[Version]] = {kind: [] for kind in KINDS}
        for item, since, until in replay.history_versions(facts, mappings.get(book, ())):
            kind, row = _row(item)
            followed[kind].append(Version(line((book, *row)), since, until))
        for kind in KINDS:
            for found in unlike(stood[kind].get((book, workload), ()), followed[kind], starts.get(book, ())):
                yield kind, found.told(kind)


def of_nothing(reader: Reader) -> Iterator[tuple[str, str]]:
    """Yield (kind, difference) of versions that are over of workloads that no fact speaks of."""
    for kind, (table, columns) in KINDS.items():
        rows = driver(reader).execute(
            f"SELECT since_seq, book, {', '.join(columns)} FROM {table} AS t WHERE until_seq IS NOT NULL"
            " AND NOT EXISTS (SELECT FROM ledger.journal AS j WHERE j.book = t.book AND j.workload = t.workload)"
        )
        for since, *row in rows:
            yield kind, Unlike(since, is_missing=False, text=line(row)).told(kind)


def of_hosts(
    reader: Reader, hosts: Iterable[replay.HostFacts], starts: Mapping[str, Sequence[int]]
) -> Iterator[str]:
    """Yield the differences of what stood of the hosts of all books."""
    stood: dict[tuple[str, str], list[Version]] = {}
    rows = driver(reader).execute(
        f"SELECT since_seq, until_seq, book, {', '.join(projections.HOST_COLUMNS)} FROM ledger.hosts"
    )
    for since, until, book, *row in rows:
        stood.setdefault((book, row[0]), []).append(Version(line((book, *row)), since, until))

    def texts(book: str, facts: Sequence[HostFact]) -> list[str]:
        return [line((book, *projections.host_row(i))) for i in intervals(list(facts))]

    for book, host, facts in hosts:
        followed = [Version(*found) for found in replay.versions(facts, partial(texts, book))]
        for found in unlike(stood.pop((book, host), ()), followed, starts.get(book, ())):
            yield found.told("host")
    for versions in stood.values():
        yield from (Unlike(v.since, is_missing=False, text=v.text).told("host") for v in versions if v.until)


def _stood(
    reader: Reader, kind: str, workloads: Sequence[replay.WorkloadFacts]
) -> dict[tuple[str, str], list[Version]]:
    table, columns = KINDS[kind]
    found: dict[tuple[str, str], list[Version]] = {}
    for book, of in groupby(workloads, key=lambda facts: facts.book):
        rows = driver(reader).execute(
            f"SELECT since_seq, until_seq, {', '.join(columns)} FROM {table} WHERE book = %s AND workload = ANY(%s)",
            (book, Texts(facts.workload for facts in of)),
        )
        for since, until, *row in rows:
            found.setdefault((book, row[0]), []).append(Version(line((book, *row)), since, until))
    return found


def _row(item: projections.Item) -> tuple[str, tuple[object, ...]]:
    if isinstance(item, Segment):
        return "run", projections.segment_row(item)
    if isinstance(item, Hold):
        return "hold", projections.hold_row(item)
    return "wait", projections.wait_row(item)
