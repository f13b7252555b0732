"""Laws 1 and 5: what was changed, taken away or switched off is found, and the first bad row named."""

import datetime as dt
import sys
from concurrent.futures import ProcessPoolExecutor
from itertools import pairwise
from multiprocessing import get_context
from types import ModuleType

import pytest
from tests.integration.ledger.books import (
    GPU_HOUR,
    HOUR,
    Ledger,
    ended,
    granted,
    run_of,
    submitted,
    tampering,
    told,
)

from gpuledger.database.engine import Reader, make_engine, reading
from gpuledger.ledger.audit import Audit, AuditQuery, FirstBad, row_count, verify


def audit(ledger: Ledger, *statements: str) -> Audit:
    """Verify after a superuser ran the statements, which are taken back."""
    with ledger.trial(*statements) as connection:
        return verify(Reader(connection))


def first_bad(ledger: Ledger, *statements: str, book: str = "alpha") -> FirstBad:
    (fault,) = [b.first_bad for b in audit(ledger, *statements).books if b.book == book]
    assert fault is not None
    return fault


@pytest.fixture(scope="module")
def booked(shared_ledger: Ledger) -> Ledger:
    """Eight rows in ``alpha`` (row 6 has postings, row 7 extra keys, row 8 corrects) and two in ``beta``."""
    ledger = shared_ledger
    ledger.append(told(0, granted("org/vision", "1970-01", GPU_HOUR)), told(0, submitted("w0")))
    ledger.append(told(0, submitted("w9")), *run_of(0, HOUR))
    ledger.append(told(5, submitted("w2"), comment="text"))
    ledger.append(told(1800, ended(), source="reconcile/x"))
    ledger.append(told(0, submitted(cluster="beta")), told(1, submitted("w2", cluster="beta")))
    return ledger


def test_an_untouched_ledger_verifies_under_the_published_keys(booked: Ledger) -> None:
    found = audit(booked)
    heads = dict(booked.rows("SELECT book, encode(head, 'hex') FROM ledger.books"))
    assert found.as_json() == {
        "ok": True,
        "books": [
            {"book": "alpha", "rows": 8, "head": heads["alpha"], "first_bad": None},
            {"book": "beta", "rows": 2, "head": heads["beta"], "first_bad": None},
        ],
        "faults": [],
    }


FLIP = {
    "bytea": "set_byte({c}, 3, get_byte({c}, 3) # 1)",
    "text": "overlay({c} placing chr(ascii({c}) # 1) from 1 for 1)",
    "json": "replace({c}::text, 'alpha', 'blpha')::json",
    "timestamp with time zone": "{c} + interval '1 microsecond'",
    "bigint": "{c} # 1",
    "integer": "{c} # 64",
    "date": "{c} + 1",
}

JOURNAL = {
    "recorded_at": "timestamp with time zone", "effective_at": "timestamp with time zone", "type": "text",
    "source": "text", "event_id": "text", "digest": "bytea", "workload": "text", "run": "text", "body": "json",
    "row_hash": "bytea", "book": "text",
}  # fmt: skip
POSTINGS = {
    "n": "integer", "recorded_at": "timestamp with time zone",
    "code": "text", "commodity": "text", "amount": "bigint", "debit_pot": "text",
    "debit_account": "text", "debit_period": "text", "credit_pot": "text", "credit_account": "text",
    "credit_period": "text", "workload": "text", "run": "text", "effective_on": "date", "book": "text",
}  # fmt: skip
IDENTITIES = {"book": "text", "event_id": "text", "source": "text", "digest": "bytea", "seq": "bigint"}


def test_the_columns_tried_below_are_all_there_are(booked: Ledger) -> None:
    columns = booked.rows(
        "SELECT table_name, column_name FROM information_schema.columns"
        " WHERE table_schema = 'ledger' AND table_name IN ('journal', 'postings', 'identities')"
    )
    tried = {("journal", name) for name in (*JOURNAL, "seq", "extra_ref")}
    tried |= {("identities", name) for name in IDENTITIES}
    tried |= {("postings", name) for name in (*POSTINGS, "seq", "reverses_seq", "reason")}
    assert tried == set(columns)


@pytest.mark.parametrize(("column", "kind"), JOURNAL.items())
def test_a_flipped_byte_in_any_column_of_the_journal_is_found_at_its_row(
    booked: Ledger, column: str, kind: str
) -> None:
    flipped = FLIP[kind].format(c=column)
    flip = f"UPDATE ledger.journal SET {column} = {flipped} WHERE book = 'alpha' AND seq = 5"
    assert first_bad(booked, *tampering("journal", flip)).seq == 5
    assert not audit(booked, *tampering("journal", flip)).ok


@pytest.mark.parametrize(("column", "kind"), POSTINGS.items())
def test_a_flipped_byte_in_any_column_of_a_posting_is_found_at_its_row(
    booked: Ledger, column: str, kind: str
) -> None:
    flipped = FLIP[kind].format(c=column)
    flip = f"UPDATE ledger.postings SET {column} = {flipped} WHERE book = 'alpha' AND seq = 6 AND n = 1"
    assert first_bad(booked, *tampering("postings", flip)).seq == 6


@pytest.mark.parametrize(("column", "kind"), IDENTITIES.items())
def test_a_flipped_byte_in_any_column_of_an_identity_is_found_at_its_row(
    booked: Ledger, column: str, kind: str
) -> None:
    flip = (
        f"UPDATE ledger.identities AS i SET {column} = {FLIP[kind].format(c='i.' + column)} FROM ledger.journal AS j"
        " WHERE j.book = 'alpha' AND j.seq = 5 AND (i.book, i.event_id, i.source, i.digest)"
        " = (j.book, j.event_id, j.source, j.digest)"
    )
    fault = first_bad(booked, *tampering("identities", flip))
    assert (fault.seq, "identity is missing" in fault.what) == (5, True)


def test_an_identity_without_a_row_and_one_of_two_rows_are_found(booked: Ledger) -> None:
    extra = "INSERT INTO ledger.identities VALUES ('alpha', 'ghost', 'test', 'x', 1)"
    assert "event ghost of test has an identity and no row" in first_bad(booked, extra).what
    gone = "DELETE FROM ledger.identities WHERE book = 'beta'"
    assert first_bad(booked, *tampering("identities", gone), book="beta").seq == 1


ENDLESS = "CREATE TABLE ledger.odd PARTITION OF ledger.journal FOR VALUES FROM ('9999-12-01') TO (MAXVALUE)"
COPIED = (
    "INSERT INTO ledger.postings SELECT book, {seq}, n, recorded_at, code, commodity, amount, debit_pot, debit_account,"
    " debit_period, credit_pot, credit_account, credit_period, workload, run, effective_on, NULL, NULL"
    " FROM ledger.postings WHERE seq = 6"
)


@pytest.mark.parametrize(
    ("table", "statement", "seq"),
    [
        ("journal", f"UPDATE ledger.journal SET extra_ref = {FLIP['bytea'].format(c='extra_ref')} WHERE seq = 7", 7),
        ("journal", "UPDATE ledger.journal SET extra_ref = NULL WHERE seq = 7 AND extra_ref IS NOT NULL", 7),
        ("journal", "UPDATE ledger.journal SET seq = 99 WHERE book = 'alpha' AND seq = 4", 4),
        ("journal", f"{ENDLESS}; UPDATE ledger.journal SET recorded_at = 'infinity' WHERE seq = 4", 4),
        ("journal", "UPDATE ledger.journal SET effective_at = '4000-01-01 BC' WHERE book = 'alpha' AND seq = 4", 4),
        ("postings", "UPDATE ledger.postings SET effective_on = 'infinity' WHERE seq = 6", 6),
        ("postings", "UPDATE ledger.postings SET reverses_seq = 5 WHERE reverses_seq IS NOT NULL", 8),
        ("postings", "UPDATE ledger.postings SET reason = 'oversight' WHERE reason IS NOT NULL", 8),
        ("postings", "UPDATE ledger.postings SET seq = 7 WHERE seq = 6", 6),
        ("postings", "UPDATE ledger.postings SET seq = 3 WHERE seq = 6", 3),
        ("postings", "DELETE FROM ledger.postings WHERE seq = 6 AND n = 2", 6),
        ("postings", "DELETE FROM ledger.postings WHERE seq = 8", 8),
        ("postings", COPIED.format(seq=2), 2),
        ("postings", COPIED.format(seq=77), 77),
    ],
)  # fmt: skip
def test_other_changes_of_history_are_found_at_the_first_row_they_touch(
    booked: Ledger, table: str, statement: str, seq: int
) -> None:
    assert first_bad(booked, *tampering(table, statement)).seq == seq


def test_the_first_of_several_bad_rows_is_named(booked: Ledger) -> None:
    change = "UPDATE ledger.journal SET source = 'x' WHERE book = 'alpha' AND seq IN (3, 6, 8)"
    assert first_bad(booked, *tampering("journal", change)).seq == 3


def test_a_row_cut_out_of_the_middle_leaves_a_gap_that_is_named(booked: Ledger) -> None:
    cut = "DELETE FROM ledger.journal WHERE book = 'alpha' AND seq = 4"
    fault = first_bad(booked, *tampering("journal", cut))
    assert (fault.seq, "sequence 4 is missing" in fault.what) == (4, True)


def test_a_row_cut_out_and_the_rest_moved_up_is_found_where_it_was(booked: Ledger) -> None:
    cut = "DELETE FROM ledger.journal WHERE book = 'alpha' AND seq = 3"
    moved = [
        f"UPDATE ledger.journal SET seq = {n - 1} WHERE book = 'alpha' AND seq = {n}" for n in range(4, 9)
    ]
    assert first_bad(booked, *tampering("journal", cut, *moved)).seq == 3


@pytest.mark.parametrize("postings_too", [True, False])
def test_a_deleted_tail_no_longer_ends_at_the_head_and_the_next_book_is_still_read(
    booked: Ledger, *, postings_too: bool
) -> None:
    cuts = tampering("journal", "DELETE FROM ledger.journal WHERE book = 'alpha' AND seq > 6")
    if postings_too:
        cuts += tampering("postings", "DELETE FROM ledger.postings WHERE book = 'alpha' AND seq > 6")
    assert first_bad(booked, *cuts).seq == (6 if postings_too else 8)
    (beta,) = [b for b in audit(booked, *cuts).books if b.book == "beta"]
    assert (beta.rows, beta.first_bad) == (2, None)


def test_a_book_taken_away_whole_is_found(booked: Ledger) -> None:
    cut = "DELETE FROM ledger.journal WHERE book = 'beta'"
    assert first_bad(booked, *tampering("journal", cut), book="beta").seq == 0


def test_a_head_that_was_changed_is_found(booked: Ledger) -> None:
    change = "UPDATE ledger.books SET head = set_byte(head, 0, get_byte(head, 0) # 1) WHERE book = 'beta'"
    assert first_bad(booked, change, book="beta").seq == 2


@pytest.mark.parametrize("by", ["- interval '1 day'", "+ interval '1 day'"])
def test_a_head_that_was_recorded_at_another_time_than_its_row_is_found(booked: Ledger, by: str) -> None:
    """The next row would be recorded before the last one, or far ahead of the clock."""
    change = f"UPDATE ledger.books SET last_recorded_at = last_recorded_at {by} WHERE book = 'alpha'"
    assert first_bad(booked, change) == FirstBad(
        8, "the book's head says that its last row was recorded at another time"
    )


@pytest.mark.parametrize("table", ["journal", "postings", "identities"])
def test_rows_of_a_book_that_never_was_are_found(booked: Ledger, table: str) -> None:
    columns = [name for (name,) in booked.rows(
        f"SELECT column_name FROM information_schema.columns WHERE table_schema = 'ledger' AND table_name = '{table}'"
        " AND column_name <> 'book'")]  # fmt: skip
    names = ", ".join(columns)
    ghost = f"INSERT INTO ledger.{table} (book, {names}) SELECT 'ghost', {names} FROM ledger.{table} LIMIT 1"
    assert "no head" in first_bad(booked, ghost, book="ghost").what


def test_a_balance_that_is_not_the_fold_of_its_postings_is_named_with_both_amounts(booked: Ledger) -> None:
    change = "UPDATE ledger.balances SET amount = 7 WHERE pot = 'spent' AND commodity = 'gpu_ms'"
    fault = first_bad(booked, change)
    assert fault.seq is None
    assert fault.told() == (
        f"balance org/vision spent charge 1970-01 (gpu_ms) is 7, its postings sum to {4 * GPU_HOUR}"
    )


def test_a_book_is_verified_as_one_snapshot_while_others_write(ledger: Ledger) -> None:
    ledger.append(*run_of(0, HOUR))
    with reading(ledger.engine) as reader:
        reader.exec_driver_sql("SELECT 1")  # the snapshot is taken here
        ledger.append(told(99, submitted("w77")))
        assert [(b.rows, b.first_bad) for b in verify(reader).books] == [(3, None)]


def test_a_fault_names_its_row_to_programs_and_to_people(booked: Ledger) -> None:
    change = tampering("journal", "UPDATE ledger.journal SET source = 'x' WHERE book = 'beta' AND seq = 2")
    document = audit(booked, *change).as_json()
    assert document["ok"] is False
    assert document["books"][1]["first_bad"]["seq"] == 2
    assert first_bad(booked, *change, book="beta").told().startswith("row 2: ")


def recorded_at(ledger: Ledger, seq: int) -> dt.datetime:
    return ledger.value("SELECT recorded_at FROM ledger.journal WHERE book = 'alpha' AND seq = :seq", seq=seq)  # type: ignore[no-any-return]


PARTS = [(None, None), (1, None), (4, None), (None, 4), (4, 7), (7, 7), (8, None), (None, 1)]


@pytest.mark.parametrize(("first", "end"), PARTS)
@pytest.mark.parametrize("changed", range(1, 9))
def test_a_part_is_chained_to_the_row_before_it(
    booked: Ledger, first: int | None, end: int | None, changed: int
) -> None:
    query = AuditQuery(
        "alpha",
        None if first is None else recorded_at(booked, first),
        None if end is None else recorded_at(booked, end),
    )
    change = tampering(
        "journal", f"UPDATE ledger.journal SET source = 'x' WHERE book = 'alpha' AND seq = {changed}"
    )
    covered = range(first or 1, end or 9)

    with booked.trial() as connection:
        (whole,) = verify(Reader(connection), query).books
    with booked.trial(*change) as connection:
        (found,) = verify(Reader(connection), query).books

    assert (whole.rows, whole.first_bad) == (len(covered), None)
    assert (found.first_bad and found.first_bad.seq) == (changed if changed in covered else None)


@pytest.mark.parametrize("gone", [4, 5, 6])
def test_a_row_that_is_missing_from_a_part_is_named(booked: Ledger, gone: int) -> None:
    query = AuditQuery("alpha", recorded_at(booked, 4), recorded_at(booked, 7))
    change = tampering("journal", f"DELETE FROM ledger.journal WHERE book = 'alpha' AND seq = {gone}")
    with booked.trial(*change) as connection:
        (found,) = verify(Reader(connection), query).books
    assert found.first_bad is None if gone == 6 else found.first_bad and found.first_bad.seq == gone


def test_progress_counts_every_row_of_every_book_and_ends_at_the_total(booked: Ledger) -> None:
    told: list[tuple[int, int]] = []
    with booked.trial() as connection:
        reader = Reader(connection)
        verify(reader, on_progress=lambda done, total: told.append((done, total)))
        part = AuditQuery("alpha", recorded_at(booked, 4), recorded_at(booked, 7))
        assert (row_count(reader), row_count(reader, part)) == (10, 3)
    assert told == [(8, 10), (10, 10)]


def test_a_text_that_was_put_aside_and_changed_is_found_at_its_row_and_an_erased_one_is_none(
    booked: Ledger,
) -> None:
    fault = first_bad(booked, 'UPDATE side.texts SET body = \'{"comment": "bribe"}\'')
    assert (fault.seq, "text" in fault.what) == (
        booked.value("SELECT min(seq) FROM ledger.journal WHERE book = 'alpha' AND extra_ref IS NOT NULL"),
        True,
    )
    assert audit(booked, "DELETE FROM side.texts").ok


IN_ALPHA = "book = 'alpha' AND seq ="
AT_EACH_ROW = [
    ("journal", "UPDATE ledger.journal SET source = 'x' WHERE {row}"),
    ("journal", "UPDATE ledger.journal SET recorded_at = recorded_at - interval '1 h' WHERE {row}"),
    ("journal", "UPDATE ledger.journal SET recorded_at = recorded_at + interval '1 h' WHERE {row}"),
    ("journal", "UPDATE ledger.journal SET row_hash = sha256(row_hash) WHERE {row}"),
    ("journal", "UPDATE ledger.journal SET seq = seq + 100 WHERE {row}"),
    ("journal", "DELETE FROM ledger.journal WHERE {row}"),
    ("postings", "DELETE FROM ledger.postings WHERE {row}"),
    ("identities", "DELETE FROM ledger.identities WHERE {row}"),
    ("identities", "UPDATE ledger.identities SET event_id = 'x' WHERE {row}"),
]
"""What is changed at each row, and in which table."""


@pytest.mark.parametrize(("table", "statement"), AT_EACH_ROW)
@pytest.mark.parametrize("row", range(1, 9))
def test_windows_that_follow_each_other_find_what_one_run_finds_wherever_the_borders_are(
    booked: Ledger, table: str, statement: str, row: int
) -> None:
    """The borders are at the row, at those before and after it, and after all."""
    borders = [recorded_at(booked, seq) for seq in range(max(1, row - 1), min(8, row + 1) + 1)]
    borders.append(borders[-1] + dt.timedelta(days=1))
    with booked.trial(*tampering(table, statement.format(row=f"{IN_ALPHA} {row}"))) as connection:
        reader = Reader(connection)
        (whole,) = verify(reader, AuditQuery("alpha")).books
        for first, second in pairwise(borders):
            windows = [(None, first), (first, second), (second, None)]
            found = [verify(reader, AuditQuery("alpha", *window)).books[0] for window in windows]
            bad = [part.first_bad for part in found if part.first_bad is not None]
            assert bad[:1] == ([whole.first_bad] if whole.first_bad else [])
            assert whole.first_bad or sum(part.rows for part in found) == whole.rows


def window(
    url: str, from_at: dt.datetime | None, to_at: dt.datetime | None
) -> list[tuple[str, int, FirstBad | None]]:
    """Verify one window, as a process of its own does."""
    engine = make_engine(url)
    with reading(engine) as reader:
        found = verify(reader, AuditQuery(None, from_at, to_at))
    engine.dispose()
    return [(book.book, book.rows, book.first_bad) for book in found.books]


def test_processes_that_verify_a_window_each_find_what_one_finds(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A process that is spawned runs the main module of this one, which may be a page that another test looked at.
    monkeypatch.setitem(sys.modules, "__main__", ModuleType("__main__"))
    for hour in range(30):
        ledger.append(*run_of(hour, hour + HOUR, f"w{hour}"), told(hour, submitted(f"v{hour}")))
        ledger.append(told(hour, submitted(f"w{hour}", cluster="beta")))
        ledger.clock.at += dt.timedelta(hours=1)
    begin = ledger.value("SELECT min(recorded_at) FROM ledger.journal")
    borders = [None, *(begin + dt.timedelta(hours=hours) for hours in (7, 13, 22)), None]
    windows = list(pairwise(borders))

    def found() -> tuple[list[tuple[str, int, FirstBad | None]], list[tuple[str, int, FirstBad | None]]]:
        with ProcessPoolExecutor(len(windows), mp_context=get_context("spawn")) as pool:
            parts = [pool.submit(window, ledger.url, *border) for border in windows]
            told = [part for future in parts for part in future.result()]
        together = []
        for book in ("alpha", "beta"):
            own = [part for part in told if part[0] == book]
            bad = next((fault for _, _, fault in own if fault), None)
            together.append((book, sum(rows for _, rows, _ in own), bad))
        return together, window(ledger.url, None, None)

    together, alone = found()
    assert together == alone == [("alpha", 120, None), ("beta", 30, None)]
    ledger.change(
        *tampering("journal", "UPDATE ledger.journal SET source = 'x' WHERE book = 'beta' AND seq IN (8, 25)")
    )
    together, alone = found()
    assert together == alone
    assert [fault and fault.seq for _, _, fault in alone] == [None, 8]
