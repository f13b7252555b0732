"""The journal's and postings' SQL: what a batch reads before it is sealed, and writes after."""

import datetime as dt
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from psycopg import IntegrityError

from gpuledger.database.engine import Reader, Writer
from gpuledger.database.meanwhile import Ahead, working
from gpuledger.events.envelope import decode_data
from gpuledger.kernel.clock import EPOCH, seconds
from gpuledger.kernel.errors import Corrupt
from gpuledger.ledger.chain import GENESIS, JournalRow
from gpuledger.ledger.charges import HOLD, RELEASE, Key, Moved, Posted, Posting, Pot
from gpuledger.ledger.copying import Texts, copy_rows, driver
from gpuledger.ledger.facts import Known

JOURNAL_COLUMNS = (*JournalRow._fields, "row_hash")
IDENTITY_COLUMNS = ("book", "event_id", "source", "digest", "seq")
POSTING_COLUMNS = (
    "book", "seq", "n", "recorded_at", "code", "commodity", "amount",
    "debit_pot", "debit_account", "debit_period", "credit_pot", "credit_account", "credit_period",
    "workload", "run", "effective_on", "reverses_seq", "reason",
)  # fmt: skip


class BookHead(NamedTuple):
    """The end of a book's chain."""

    book: str
    last_seq: int
    head: bytes
    last_recorded_at: dt.datetime
    ticked_s: int | None = None
    """Where the book's own clock stands: the newest tick; None before the first."""


def lock_book(writer: Writer, book: str) -> BookHead:
    """Take the book's lock until the transaction ends and return its head; a new book begins at 0.

    Writers queue at an advisory lock of the book, where PostgreSQL serves them in the order in which they came and
    shows how many wait; the locked row gives the gapless number and holds off whoever writes without asking.
    """
    connection = driver(writer)
    connection.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", (book,))
    connection.execute(
        "INSERT INTO ledger.books (book, last_seq, head, last_recorded_at) VALUES (%s, 0, %s, %s)"
        " ON CONFLICT (book) DO NOTHING",
        (book, GENESIS, EPOCH),
    )
    row = connection.execute(
        "SELECT last_seq, head, last_recorded_at, extract(epoch FROM ticked_at)::bigint"
        " FROM ledger.books WHERE book = %s FOR UPDATE",
        (book,),
    ).fetchone()
    assert row is not None  # noqa: S101 - inserted above
    return BookHead(book, row[0], bytes(row[1]), row[2], row[3])


def write_head(writer: Writer, head: BookHead) -> None:
    """Record the new end of the chain."""
    driver(writer).execute(
        "UPDATE ledger.books SET last_seq = %s, head = %s, last_recorded_at = %s,"
        " ticked_at = to_timestamp(%s) WHERE book = %s",
        (head.last_seq, head.head, head.last_recorded_at, head.ticked_s, head.book),
    )


def note_collisions(writer: Writer, book: str, given_up: int) -> None:
    """Count the attempts at a transaction on a book that the database gave up before this one."""
    driver(writer).execute(
        "UPDATE ledger.books SET collisions = collisions + %s WHERE book = %s", (given_up, book)
    )


def known_identities(
    connection: Reader | Writer, book: str, ids: Sequence[str]
) -> set[tuple[str, str, bytes]]:
    """Return (id, source, digest) of the journal's rows that carry one of the ids."""
    rows = driver(connection).execute(
        "SELECT event_id, source, digest FROM ledger.identities WHERE book = %s AND event_id = ANY(%s)",
        (book, Texts(ids)),
    )
    return {(event_id, source, bytes(digest)) for event_id, source, digest in rows}


def facts_of(
    connection: Reader | Writer, book: str, workloads: Sequence[str], *, seq: int | None = None
) -> Iterator[tuple[str, Known]]:
    """Yield every journalled fact of the workloads, in sequence, up to a row of the book where one is given."""
    if not workloads:
        return
    rows = driver(connection).execute(
        "SELECT workload, type, body::text, effective_at, source, digest FROM ledger.journal"
        " WHERE book = %s AND workload = ANY(%s) AND (%s::bigint IS NULL OR seq <= %s) ORDER BY seq",
        (book, Texts(workloads), seq, seq),
    )
    for name, type_, body, effective_at, source, digest in rows:
        yield name, Known(decode_data(type_, body), seconds(effective_at), source, bytes(digest))


def numbered_facts_of(reader: Reader, book: str, workload: str) -> Iterator[tuple[int, Known]]:
    """Yield every journalled fact of a workload with its row, in sequence."""
    rows = driver(reader).execute(
        "SELECT seq, type, body::text, effective_at, source, digest FROM ledger.journal"
        " WHERE book = %s AND workload = %s ORDER BY seq",
        (book, workload),
    )
    for seq, type_, body, effective_at, source, digest in rows:
        yield seq, Known(decode_data(type_, body), seconds(effective_at), source, bytes(digest))


def sequence_of(connection: Reader | Writer, book: str, digest: bytes) -> int:
    """Return the row that has a digest, the newest of several; 0 for none."""
    row = driver(connection).execute(
        "SELECT max(seq) FROM ledger.identities WHERE book = %s AND digest = %s", (book, digest)
    ).fetchone()  # fmt: skip
    return row[0] or 0 if row else 0


def workloads_after(writer: Writer, book: str, at: dt.datetime) -> list[str]:
    """Return the workloads that are charged for time after an instant, or have GPU-time set aside after it."""
    rows = driver(writer).execute(
        "SELECT workload FROM ledger.segments WHERE book = %(book)s AND until_seq IS NULL"
        " AND (to_at > %(at)s OR to_at IS NULL)"
        " UNION SELECT workload FROM ledger.holds WHERE book = %(book)s AND until_seq IS NULL AND to_at > %(at)s",
        {"book": book, "at": at},
    )
    return [workload for (workload,) in rows]


def workloads_lapsed(writer: Writer, book: str, after: dt.datetime | None, at: dt.datetime) -> list[str]:
    """Return the workloads whose hold has expired unused, after one tick, any for None, and by another."""
    rows = driver(writer).execute(
        "SELECT DISTINCT workload FROM ledger.holds WHERE book = %s AND until_seq IS NULL AND run IS NULL"
        " AND expires_at > coalesce(%s, '-infinity'::timestamptz) AND expires_at <= %s",
        (book, after, at),
    )
    return [workload for (workload,) in rows]


LEGS = """
    SELECT book, seq, commodity, debit_pot AS pot, debit_account AS account, debit_period AS period,
           CASE code WHEN 'release' THEN 'hold' ELSE code END AS code,
           workload, run, effective_on, -amount AS amount, reason FROM ledger.postings
    UNION ALL
    SELECT book, seq, commodity, credit_pot, credit_account, credit_period,
           CASE code WHEN 'release' THEN 'hold' ELSE code END, workload, run, effective_on, amount, reason
    FROM ledger.postings
"""
"""Both sides of every posting, debits below zero; what is released was held: the code is that of the movement."""

EFFECTIVE_PERIOD = "to_char(effective_on + (code = 'rollover' AND pot = 'budget')::int, 'YYYY-MM')"
"""The period that a leg belongs to, whenever it was booked; what rolls over enters the budget of the next."""

SIGNED = """
    SELECT p.*,
           -- A correction runs the other way: out of the pot that use goes into.
           CASE WHEN forward THEN amount ELSE -amount END AS signed,
           CASE WHEN forward THEN credit_account ELSE debit_account END AS account,
           CASE WHEN forward THEN debit_pot ELSE credit_pot END AS from_pot,
           CASE code WHEN 'release' THEN 'hold' ELSE code END AS movement
    FROM ledger.postings AS p
    CROSS JOIN LATERAL (
        SELECT CASE code WHEN 'rollover' THEN credit_pot = 'budget' ELSE (debit_pot, credit_pot) IN (
            ('budget', 'spent'), ('held', 'spent'), ('budget', 'held'), ('free', 'unallocated'), ('spent', 'credited'),
            ('issue', 'budget'), ('budget', 'expired')) END
        AS forward) AS direction
"""
"""Postings with the sign, the account and the debit pot of the movement that they make or take back."""


def posted_of(
    connection: Reader | Writer, book: str, workloads: Sequence[str], *, seq: int | None = None
) -> Iterator[tuple[str, Key, Posted]]:
    """Yield the net amounts posted for the workloads, whatever period they were booked in, up to a row of the book."""
    if not workloads:
        return
    rows = driver(connection).execute(
        f"""
        SELECT workload, movement, commodity, account, from_pot, run, effective_on, sum(signed), max(seq)
        FROM ({SIGNED} WHERE book = %s AND workload = ANY(%s) AND (%s::bigint IS NULL OR seq <= %s)) AS own
        GROUP BY workload, movement, commodity, account, from_pot, run, effective_on
        """,
        (book, Texts(workloads), seq, seq),
    )
    for name, code, commodity, account, pot, run, day, amount, newest in rows:
        yield name, Key(code, commodity, account, pot, run, day), Posted(int(amount), newest)


def shut_periods(connection: Reader | Writer, book: str) -> frozenset[str]:
    """Return the periods of a book into which nothing is booked any more: closing or closed."""
    rows = driver(connection).execute(
        "SELECT period FROM ledger.periods WHERE book = %s AND state <> 'open'", (book,)
    )
    return frozenset(period for (period,) in rows)


def make_partitions(writer: Writer, head: BookHead, first_at: dt.datetime, last_at: dt.datetime) -> None:
    """Have the partitions made that rows need, when they enter a month that their book has not been in.

    Args:
        writer: The transaction that appends.
        head: The book's head before the rows.
        first_at: When the first row is recorded.
        last_at: When the last one is.
    """
    last = month_of(head.last_recorded_at) if head.last_seq else None
    for at in (first_at, last_at):
        if month_of(at) != last:
            make_partitions_of(writer, at)
            last = month_of(at)


def make_partitions_of(writer: Writer, at: dt.datetime) -> None:
    """Have the partitions made of the month of an instant and of the one after it; whoever else does waits."""
    driver(writer).execute("SELECT ledger.make_partitions(%s)", (at,))


def month_of(at: dt.datetime) -> tuple[int, int]:
    """Return the month by which rows that are recorded at an instant are parted."""
    utc = at.astimezone(dt.UTC)
    return utc.year, utc.month


class Identity(NamedTuple):
    """What makes an event of a book itself, and the row that it becomes."""

    event_id: str
    source: str
    digest: bytes
    seq: int


def write_rows(
    writer: Writer,
    book: str,
    identities: Iterable[Identity],
    rows: Ahead[tuple[JournalRow, bytes]],
    postings: Sequence[tuple[JournalRow, Sequence[Posting]]],
) -> None:
    """Append sealed rows, their identities and their postings.

    Args:
        writer: The transaction that appends.
        book: The book.
        identities: Those of the rows.
        rows: Rows with their seals, in sequence; sealed while identities, and the first of them, are written.
        postings: Rows with what they post, there once the rows are.

    Raises:
        Corrupt: When the database refuses them.
    """
    legs = (posting_row(row, n, p) for row, of in postings for n, p in enumerate(of, 1))
    try:
        with working(writer, rows.work):
            copy_rows(writer, "ledger.identities", IDENTITY_COLUMNS, ((book, *of) for of in identities))
        copy_rows(writer, "ledger.journal", JOURNAL_COLUMNS, ((*row, sealed) for row, sealed in rows))
        if postings:
            copy_rows(writer, "ledger.postings", POSTING_COLUMNS, legs)
    except IntegrityError as error:
        raise Corrupt(
            f"the history of {book} does not take what follows from it: {error}",
            hint="stop writing and run gpuledger audit verify: it names what was changed or taken away",
        ) from error


def posting_row(row: JournalRow, n: int, posting: Posting) -> tuple[object, ...]:
    """Return the n-th posting of a journal row as the columns of its table."""
    code, commodity, amount, debit, credit, *rest = posting
    return (row.book, row.seq, n, row.recorded_at, code, commodity, amount, *debit, *credit, *rest)


class Movement(NamedTuple):
    """What one balance is kept for. What is released was held: a balance tells no order of arrival."""

    commodity: str
    account: str
    period: str
    pot: str
    code: str


def movements(postings: Iterable[Posting]) -> Iterator[tuple[Movement, int]]:
    """Yield what each side of each posting adds to which balance."""
    for code, commodity, amount, debit, credit, *_ in postings:
        yield from _sides(code, commodity, amount, debit, credit)


def _sides(code: str, commodity: str, amount: int, debit: Pot, credit: Pot) -> Iterator[tuple[Movement, int]]:
    of = HOLD if code == RELEASE else code
    for side, delta in ((debit, -amount), (credit, amount)):
        yield Movement(commodity, side.account, side.period, side.pot, of), delta


def add_to_balances(writer: Writer, book: str, moved: Moved) -> None:
    """Add what was moved to the balances, in key order so that two writers never wait in a circle."""
    if not moved:
        return
    deltas: dict[tuple[str, str, str, str, str], int] = {}
    for (code, commodity, debit, credit, *_), amount in moved.items():
        for key, delta in _sides(code, commodity, amount, debit, credit):
            deltas[key] = deltas.get(key, 0) + delta
    columns = list(zip(*((*key, amount) for key, amount in sorted(deltas.items())), strict=True))
    driver(writer).execute(
        """
        INSERT INTO ledger.balances (book, commodity, account, period, pot, code, amount)
        SELECT %s, * FROM unnest(%s::text[], %s::text[], %s::text[], %s::text[], %s::text[], %s::bigint[])
        ON CONFLICT (book, commodity, account, period, pot, code)
        DO UPDATE SET amount = balances.amount + excluded.amount
        """,
        (book, *map(list, columns)),
    )
