"""Law 5: what a superuser can do without a contradiction in the database is contradicted by exported heads."""

import datetime as dt

import pytest
import sqlalchemy as sa
from tests.integration.ledger.books import HOUR, NOON, Ledger, run_of, submitted, tampering, told

from gpuledger.database.engine import Reader, reading
from gpuledger.kernel.errors import Refused
from gpuledger.ledger import heads, queries
from gpuledger.ledger.audit import Audit, BookAudit, FirstBad, verify
from gpuledger.ledger.chain import JournalRow, row_hash
from gpuledger.ledger.charges import Posting, Pot
from gpuledger.ledger.heads import ExportedHead
from gpuledger.ledger.queries import BookStatus

LATER = NOON + dt.timedelta(hours=1)
POSTING = "code, commodity, amount, debit_pot, debit_account, debit_period, credit_pot, credit_account, credit_period"


def exported(ledger: Ledger) -> list[ExportedHead]:
    """Return what an export of all books would write."""
    with reading(ledger.engine) as reader:
        return heads.moved([], queries.book_heads(reader), LATER)


@pytest.fixture(scope="module")
def kept() -> list[ExportedHead]:
    """Heads of ``alpha`` at rows 3 and 6 and of ``beta`` at row 1, kept elsewhere; filled by ``booked``."""
    return []


@pytest.fixture
def booked(shared_ledger: Ledger, kept: list[ExportedHead]) -> Ledger:
    """Six rows in ``alpha``, one in ``beta``; its heads were exported twice."""
    if not kept:
        shared_ledger.append(*run_of(0, HOUR))
        kept += exported(shared_ledger)
        shared_ledger.append(*run_of(0, HOUR, "w2"))
        shared_ledger.append(told(0, submitted(cluster="beta")))
        kept += exported(shared_ledger)
    return shared_ledger


def audited(connection: sa.Connection, kept: list[ExportedHead]) -> Audit:
    reader = Reader(connection)
    return heads.held_against(verify(reader), heads.contradicted(reader, kept))


def faults(audit: Audit) -> dict[str, FirstBad]:
    assert audit.ok == (not any(book.first_bad for book in audit.books) and not audit.faults)
    return {book.book: book.first_bad for book in audit.books if book.first_bad is not None}


REWIND = """
    UPDATE ledger.books AS b SET (last_seq, head, last_recorded_at) =
        (SELECT seq, row_hash, recorded_at FROM ledger.journal AS j WHERE j.book = b.book ORDER BY seq DESC LIMIT 1)
    WHERE book = 'alpha'
"""
REFOLD = (
    "DELETE FROM ledger.balances",
    """
    INSERT INTO ledger.balances (book, commodity, account, period, pot, code, amount)
    SELECT book, commodity, account, period, pot, code, sum(amount) FROM (
        SELECT book, commodity, debit_account AS account, debit_period AS period, debit_pot AS pot, code,
               -amount AS amount FROM ledger.postings
        UNION ALL
        SELECT book, commodity, credit_account, credit_period, credit_pot, code, amount FROM ledger.postings) AS legs
    GROUP BY 1, 2, 3, 4, 5, 6
    """,
)


def cut(after: int) -> tuple[str, ...]:
    """Return what takes the tail of ``alpha`` away and leaves a database without a contradiction."""
    gone = f"book = 'alpha' AND seq > {after}"
    return (
        *tampering("journal", f"DELETE FROM ledger.journal WHERE {gone}"),
        *tampering("postings", f"DELETE FROM ledger.postings WHERE {gone}"),
        *tampering("identities", f"DELETE FROM ledger.identities WHERE {gone}"),
        REWIND,
        *REFOLD,
    )


def seal_anew(connection: sa.Connection) -> None:
    """Recompute every hash of ``alpha``, and its head, as whoever holds the program can."""
    for statement in tampering("journal")[:1]:
        connection.exec_driver_sql(statement)
    rows = connection.exec_driver_sql(
        "SELECT book, seq, recorded_at, effective_at, type, source, event_id, digest, workload, run, body::text,"
        " extra_ref FROM ledger.journal WHERE book = 'alpha' ORDER BY seq"
    ).fetchall()
    previous = bytes(32)
    for columns in rows:
        found = connection.exec_driver_sql(
            f"SELECT {POSTING}, workload, run, effective_on, reverses_seq, reason FROM ledger.postings"
            f" WHERE book = 'alpha' AND seq = {columns.seq} ORDER BY n"
        )
        postings = [Posting(*p[:3], Pot(*p[3:6]), Pot(*p[6:9]), *p[9:]) for p in found]
        previous = row_hash(previous, JournalRow(*columns), postings)
        connection.execute(
            sa.text("UPDATE ledger.journal SET row_hash = :hash WHERE book = 'alpha' AND seq = :seq"),
            {"hash": previous, "seq": columns.seq},
        )
    for statement in (*tampering("journal")[1:], REWIND):
        connection.exec_driver_sql(statement)


def test_an_untouched_ledger_agrees_with_its_heads(booked: Ledger, kept: list[ExportedHead]) -> None:
    assert [(head.book, head.rows) for head in kept] == [("alpha", 3), ("alpha", 6), ("beta", 1)]
    with booked.trial() as connection:
        assert audited(connection, kept) == verify(Reader(connection))


@pytest.mark.parametrize(
    ("after", "first", "said"),
    [(5, 6, "rows 6 to 6 are gone"), (3, 4, "rows 4 to 6 are gone"), (1, 2, "rows 2 to 3 are gone")],
)
def test_a_tail_deleted_without_a_trace_is_found(
    booked: Ledger, kept: list[ExportedHead], after: int, first: int, said: str
) -> None:
    with booked.trial(*cut(after)) as connection:
        assert verify(Reader(connection)).ok, "the database alone holds no contradiction"
        bad = faults(audited(connection, kept))
    assert bad.keys() == {"alpha"}
    assert bad["alpha"].seq == first
    assert bad["alpha"].what.startswith(said)
    assert "exported at 2026-12-01T13:00:00Z" in bad["alpha"].what


def test_rows_written_after_the_last_export_are_not_its_affair(
    booked: Ledger, kept: list[ExportedHead]
) -> None:
    with booked.trial(*cut(5)) as connection:
        assert faults(audited(connection, kept[:1])) == {}


@pytest.mark.parametrize(("changed", "named", "range_"), [(2, 3, "rows 1 to 3"), (5, 6, "rows 4 to 6")])
def test_a_chain_sealed_anew_is_found(
    booked: Ledger, kept: list[ExportedHead], changed: int, named: int, range_: str
) -> None:
    changes = [
        statement
        for table in ("journal", "identities")
        for statement in tampering(
            table, f"UPDATE ledger.{table} SET source = 'x' WHERE book = 'alpha' AND seq = {changed}"
        )
    ]
    with booked.trial(*changes) as connection:
        seal_anew(connection)
        assert verify(Reader(connection)).ok, "the database alone holds no contradiction"
        bad = faults(audited(connection, kept))
    assert bad.keys() == {"alpha"}
    assert bad["alpha"].seq == named
    assert f"something in {range_} was rewritten" in bad["alpha"].what


def test_a_book_that_vanished_is_found(booked: Ledger, kept: list[ExportedHead]) -> None:
    gone = (
        *tampering("journal", "DELETE FROM ledger.journal WHERE book = 'alpha'"),
        *tampering("postings", "DELETE FROM ledger.postings WHERE book = 'alpha'"),
        *tampering("identities", "DELETE FROM ledger.identities WHERE book = 'alpha'"),
        "DELETE FROM ledger.books WHERE book = 'alpha'",
        *REFOLD,
    )
    with booked.trial(*gone) as connection:
        assert verify(Reader(connection)).ok, "the database alone holds no contradiction"
        audit = audited(connection, kept)
    assert [book.book for book in audit.books] == ["beta", "alpha"]
    assert faults(audit)["alpha"].seq == 1
    assert "the book is gone; it had 3 rows" in faults(audit)["alpha"].what
    assert audit.as_json()["books"][1].keys() == {"book", "rows", "head", "first_bad"}


def test_an_older_fault_of_the_chain_is_named_before_a_later_one_of_the_heads(
    booked: Ledger, kept: list[ExportedHead]
) -> None:
    wrong = [*kept[:1], kept[1].__class__(**{**_fields(kept[1]), "head": "0" * 64})]
    change = "UPDATE ledger.journal SET source = 'x' WHERE book = 'alpha' AND seq = {}"
    with booked.trial(*tampering("journal", change.format(2))) as connection:
        assert faults(audited(connection, wrong))["alpha"].seq == 2
    with booked.trial("UPDATE ledger.balances SET amount = 7 WHERE book = 'alpha'") as connection:
        assert faults(audited(connection, wrong))["alpha"].seq == 6


def _fields(head: ExportedHead) -> dict[str, object]:
    return {name: getattr(head, name) for name in head.__struct_fields__}


def test_only_books_that_moved_since_their_last_line_are_exported(ledger: Ledger) -> None:
    ledger.append(*run_of(0, HOUR))
    first = exported(ledger)
    with reading(ledger.engine) as reader:
        assert heads.moved(first, queries.book_heads(reader), LATER) == []
    ledger.append(told(0, submitted(cluster="beta")))
    with reading(ledger.engine) as reader:
        assert [h.book for h in heads.moved(first, queries.book_heads(reader), LATER)] == ["beta"]


def test_a_book_without_a_row_has_no_head_to_export() -> None:
    assert heads.moved([], [BookStatus("alpha", 0, "00" * 32, NOON)], LATER) == []


def test_the_last_line_of_a_book_is_its_newest() -> None:
    lines = [_head(rows=1), _head(rows=2), _head(book="beta")]
    assert heads.newest(lines) == [_head(rows=2), _head(book="beta")]


def _head(**keys: object) -> ExportedHead:
    given = {"book": "alpha", "rows": 1, "head": "ab" * 32, "recorded_at": NOON, "exported_at": LATER, **keys}
    return ExportedHead(**given)  # type: ignore[arg-type]


def test_what_is_written_is_read_again() -> None:
    written = [_head(), _head(book="béta", rows=7)]
    content = heads.lines(written)
    assert content.splitlines()[0] == (
        b'{"book":"alpha","rows":1,"head":"' + b"ab" * 32 + b'","recorded_at":"2026-12-01T12:00:00Z",'
        b'"exported_at":"2026-12-01T13:00:00Z"}'
    )
    assert heads.parse(content, "f") == heads.Exports(tuple(written), b"")


@pytest.mark.parametrize("torn", [1, 2, 90, 150])
def test_a_last_line_that_does_not_end_is_no_line(torn: int) -> None:
    content = heads.lines([_head(), _head(rows=2)])
    read = heads.parse(content[:-torn], "f")
    assert read.heads == (_head(),)
    assert read.rest == heads.lines([_head(rows=2)])[:-torn]


@pytest.mark.parametrize(
    "bad",
    [
        b"",
        b"{}",
        b"[1]",
        b"\xff\xfe",
        b"nonsense",
        b'{"book":"alpha"}',
        heads.lines([_head()])[:-1].replace(b'"rows":1', b'"rows":0'),
        heads.lines([_head()])[:-1].replace(b'"rows":1', b'"rows":9223372036854775808'),
        heads.lines([_head()])[:-1].replace(b"abab", b"ABAB", 1),
        heads.lines([_head()])[:-1].replace(b"abab", b"ab", 1),
        heads.lines([_head()])[:-1].replace(b"12:00:00Z", b"12:00:00"),
        heads.lines([_head()])[:-1].replace(b"}", b',"note":"x"}'),
    ],
)
def test_a_line_that_is_no_head_is_refused_with_its_place(bad: bytes) -> None:
    with pytest.raises(Refused, match=r"^heads\.jsonl:2 is no exported head: ") as refused:
        heads.parse(heads.lines([_head()]) + bad + b"\n", "heads.jsonl")
    assert "no line of it may change" in refused.value.hint


def test_a_row_missing_between_others_is_named() -> None:
    found = heads.first_contradiction([_head(rows=4)], {}, 9)
    assert found is not None
    assert (found.seq, found.what.startswith("row 4 is gone")) == (4, True)


def test_a_book_that_only_the_heads_know_is_added_to_the_audit() -> None:
    bad = FirstBad(1, "gone")
    held = heads.held_against(Audit((), ()), {"alpha": bad})
    assert (held.books, held.ok) == ((BookAudit("alpha", 0, "", bad),), False)
