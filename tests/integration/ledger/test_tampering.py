"""Law 5 at every place of a book: a row flipped, dropped, swapped or slipped in is found where it was done."""

import datetime as dt

import pytest
from tests.integration.ledger.books import CLUSTER, HOUR, Ledger, run_of, tampering

from gpuledger.database.engine import Reader
from gpuledger.kernel.clock import FixedClock
from gpuledger.ledger.audit import FirstBad, verify

MONTHS = (dt.datetime(2026, 11, 30, 23, 59, tzinfo=dt.UTC), dt.datetime(2026, 12, 1, tzinfo=dt.UTC))
"""Rows 1 to 9 were recorded in November, rows 10 to 18 in December; every third one has two postings."""

JOURNAL = {"first": 1, "middle": 5, "before the edge": 9, "after the edge": 10, "last": 18}
POSTINGS = {"first": 3, "middle": 6, "before the edge": 9, "after the edge": 12, "last": 18}


@pytest.fixture(scope="module")
def booked(shared_ledger: Ledger) -> Ledger:
    """Six runs of one hour over two months."""
    for month, at in enumerate(MONTHS):
        shared_ledger.clock = FixedClock(at)
        for number in range(3):
            shared_ledger.append(*run_of(0, HOUR, f"w{month}{number}"))
    return shared_ledger


def found(ledger: Ledger, *statements: str) -> FirstBad | None:
    with ledger.trial(*statements) as connection:
        (book,) = verify(Reader(connection)).books
    return book.first_bad


def found_at(ledger: Ledger, *statements: str) -> int | None:
    fault = found(ledger, *statements)
    assert fault is not None
    return fault.seq


def test_the_book_lies_in_two_partitions_and_holds(booked: Ledger) -> None:
    for table, count in (("journal", 9), ("postings", 6)):
        for month in ("2026_11", "2026_12"):
            assert booked.value(f"SELECT count(*) FROM ledger.{table}_{month}") == count
    assert found(booked) is None


@pytest.mark.parametrize("seq", JOURNAL.values(), ids=JOURNAL)
def test_a_flipped_journal_row(booked: Ledger, seq: int) -> None:
    flip = f"UPDATE ledger.journal SET body = replace(body::text, 'alpha', 'blpha')::json WHERE seq = {seq}"
    assert found_at(booked, *tampering("journal", flip)) == seq


@pytest.mark.parametrize("seq", POSTINGS.values(), ids=POSTINGS)
@pytest.mark.parametrize("n", [1, 2])
@pytest.mark.parametrize(
    "flip", ["amount = amount + 1", "recorded_at = recorded_at + interval '1 microsecond'"]
)
def test_a_flipped_posting(booked: Ledger, seq: int, n: int, flip: str) -> None:
    update = f"UPDATE ledger.postings SET {flip} WHERE seq = {seq} AND n = {n}"
    assert found_at(booked, *tampering("postings", update)) == seq


@pytest.mark.parametrize("seq", JOURNAL.values(), ids=JOURNAL)
@pytest.mark.parametrize("all_of_it", [True, False])
def test_a_dropped_journal_row(booked: Ledger, seq: int, *, all_of_it: bool) -> None:
    drop = tampering("journal", f"DELETE FROM ledger.journal WHERE seq = {seq}")
    if all_of_it:
        drop += tampering("postings", f"DELETE FROM ledger.postings WHERE seq = {seq}")
    expected = seq - 1 if seq == 18 and all_of_it else seq  # the end is where the head says otherwise
    assert found_at(booked, *drop) == expected


@pytest.mark.parametrize("seq", POSTINGS.values(), ids=POSTINGS)
@pytest.mark.parametrize("which", ["n = 1", "n = 2", "true"])
def test_a_dropped_posting(booked: Ledger, seq: int, which: str) -> None:
    drop = f"DELETE FROM ledger.postings WHERE seq = {seq} AND {which}"
    assert found_at(booked, *tampering("postings", drop)) == seq


@pytest.mark.parametrize("table", ["journal", "postings"])
@pytest.mark.parametrize("place", JOURNAL)
def test_swapped_rows(booked: Ledger, table: str, place: str) -> None:
    seq = (JOURNAL if table == "journal" else POSTINGS)[place]
    step = 1 if table == "journal" else 3
    one, other = (seq, seq + step) if seq < 18 else (seq - step, seq)
    moves = ((one, 1000), (other, one), (1000, other))
    swap = [f"UPDATE ledger.{table} SET seq = {to} WHERE seq = {from_}" for from_, to in moves]
    assert found_at(booked, *tampering(table, *swap)) == one


SLIPPED_IN = """
    INSERT INTO ledger.journal
    SELECT book, {seq}, {at}, effective_at, type, source, 'forged', digest, workload, run, body, extra_ref, row_hash
    FROM ledger.journal WHERE seq = {like};
    INSERT INTO ledger.identities
    SELECT book, 'forged', source, digest, seq FROM ledger.journal WHERE event_id = 'forged'
"""


@pytest.mark.parametrize("seq", JOURNAL.values(), ids=JOURNAL)
def test_a_journal_row_slipped_in_beside_another(booked: Ledger, seq: int) -> None:
    forged = SLIPPED_IN.format(seq=seq, like=seq, at="recorded_at + interval '1 microsecond'")
    fault = found(booked, forged)
    assert fault is not None
    # Each batch of three gives its rows successive microseconds, so that the forged row may stand first or last.
    assert (fault.seq, "stands twice" in fault.what) == (seq, True)


@pytest.mark.parametrize("seq", [0, -7, 19, 25])
def test_a_journal_row_slipped_in_before_the_first_or_after_the_last(booked: Ledger, seq: int) -> None:
    like, at = (1, "recorded_at - interval '1 hour'") if seq < 1 else (18, "recorded_at + interval '1 hour'")
    assert found_at(booked, SLIPPED_IN.format(seq=seq, like=like, at=at)) == min(seq, 19)


@pytest.mark.parametrize("seq", [0, 1, 5, 9, 10, 18, 19])
def test_a_posting_slipped_in(booked: Ledger, seq: int) -> None:
    forged = f"""
        INSERT INTO ledger.postings
        SELECT p.book, {seq}, 3, coalesce(j.recorded_at, p.recorded_at), code, commodity, amount, debit_pot,
               debit_account, debit_period, credit_pot, credit_account, credit_period, p.workload, p.run,
               effective_on, NULL, NULL
        FROM ledger.postings AS p LEFT JOIN ledger.journal AS j ON j.seq = {seq} WHERE p.seq = 3 AND n = 1
    """
    assert found_at(booked, forged) == seq


@pytest.mark.parametrize("from_", [1, 7, 10, 16, 18])
def test_a_deleted_tail_is_found_though_its_postings_and_identities_went_too(
    booked: Ledger, from_: int
) -> None:
    gone = [f"DELETE FROM ledger.{table} WHERE seq >= {from_}" for table in ("journal", "postings")]
    identities = (
        "DELETE FROM ledger.identities AS i WHERE NOT EXISTS (SELECT FROM ledger.journal AS j"
        " WHERE (j.book, j.event_id, j.source, j.digest) = (i.book, i.event_id, i.source, i.digest))"
    )
    cut = (
        *tampering("journal", gone[0]), *tampering("postings", gone[1]), *tampering("identities", identities),
    )  # fmt: skip
    fault = found(booked, *cut)
    assert fault is not None
    assert (fault.seq, "head says 18 rows" in fault.what) == (from_ - 1, True)


def test_a_guard_that_was_off_on_one_partition_only_hides_nothing(booked: Ledger) -> None:
    statements = (
        "ALTER TABLE ledger.journal_2026_11 DISABLE TRIGGER append_only_rows",
        "UPDATE ledger.journal_2026_11 SET source = 'x' WHERE seq = 4",
        "ALTER TABLE ledger.journal_2026_11 ENABLE ALWAYS TRIGGER append_only_rows",
    )
    assert found_at(booked, *statements) == 4
    assert booked.value("SELECT DISTINCT book FROM ledger.journal") == CLUSTER
