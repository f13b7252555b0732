"""Digests of a range: of every column of every row, of every column of every posting, and each of its own alone."""

import pytest
from tests.integration.ledger.books import CLUSTER, HOUR, Ledger, at, run_of, tampering

from gpuledger.database.engine import reading
from gpuledger.ledger.chain import GENESIS
from gpuledger.ledger.close_range import Range, read

JOURNAL = {
    "recorded_at": "recorded_at + interval '1 us'", "effective_at": "'infinity'", "type": "'x'", "source": "'x'",
    "event_id": "'x'", "digest": "'x'", "workload": "'x'", "run": "'x'", "extra_ref": "'x'",
    "body": """replace(body::text, '8000', '8001')::json""",
}  # fmt: skip
POSTINGS = {
    "code": "'x'", "commodity": "'x'", "amount": "amount + 1", "debit_pot": "'x'", "debit_account": "'x'",
    "debit_period": "'x'", "credit_pot": "'x'", "credit_account": "'x'", "credit_period": "'x'", "workload": "'x'",
    "run": "'x'", "effective_on": "effective_on + 1", "reverses_seq": "1", "reason": "'x'",
    "recorded_at": "recorded_at + interval '1 us'",
}  # fmt: skip


@pytest.fixture(scope="module")
def booked(shared_ledger: Ledger) -> Ledger:
    shared_ledger.append(*run_of(at("2026-11-10T00:00:00Z"), at("2026-11-12T00:00:00Z")))
    return shared_ledger


def found(ledger: Ledger, first: int = 1, last: int = 3) -> Range:
    with reading(ledger.engine) as reader:
        return read(reader, CLUSTER, first, last)


def test_it_counts_rows_and_postings_and_says_the_head(booked: Ledger) -> None:
    whole = found(booked)
    assert (whole.rows, whole.postings) == (3, booked.value("SELECT count(*) FROM ledger.postings"))
    assert whole.head == booked.value("SELECT encode(head, 'hex') FROM ledger.books WHERE book = 'alpha'")
    assert found(booked, 2).rows == 2
    assert found(booked, 2).journal_digest != whole.journal_digest


def test_an_empty_range_is_one(booked: Ledger) -> None:
    empty = found(booked, 4, 3)
    assert (empty.rows, empty.postings) == (0, 0)
    with reading(booked.engine) as reader:
        assert read(reader, "none", 1, 0).head == GENESIS.hex()


def test_it_does_not_depend_on_how_a_session_shows_times(booked: Ledger) -> None:
    whole = found(booked)
    with reading(booked.engine) as reader:
        reader.exec_driver_sql("SET LOCAL TIME ZONE 'Asia/Kolkata'")
        reader.exec_driver_sql("SET LOCAL DateStyle = 'German'")
        reader.exec_driver_sql("SET LOCAL IntervalStyle = 'iso_8601'")
        assert read(reader, CLUSTER, 1, 3) == whole


@pytest.mark.parametrize("column", JOURNAL)
def test_a_change_of_a_row_is_in_the_digest_of_rows_alone(booked: Ledger, column: str) -> None:
    whole = found(booked)
    where = "WHERE seq = 2" if column != "recorded_at" else "WHERE seq = 3"
    change = f"UPDATE ledger.journal SET {column} = {JOURNAL[column]} {where}"
    with booked.trial(*tampering("journal", change)) as connection:
        other = read(connection, CLUSTER, 1, 3)  # type: ignore[arg-type]
    assert other.journal_digest != whole.journal_digest
    assert other.postings_digest == whole.postings_digest


@pytest.mark.parametrize("column", POSTINGS)
def test_a_change_of_a_posting_is_in_the_digest_of_postings_alone(booked: Ledger, column: str) -> None:
    whole = found(booked)
    change = f"UPDATE ledger.postings SET {column} = {POSTINGS[column]} WHERE n = 1"
    with booked.trial(*tampering("postings", change)) as connection:
        other = read(connection, CLUSTER, 1, 3)  # type: ignore[arg-type]
    assert other.postings_digest != whole.postings_digest
    assert other.journal_digest == whole.journal_digest


def test_what_comes_later_is_not_in_it(booked: Ledger) -> None:
    before = found(booked)
    booked.append(*run_of(at("2026-11-10T00:00:00Z"), at("2026-11-10T00:00:00Z") + HOUR, "w2"))
    assert found(booked) == before, "what comes later is not in it"
    assert found(booked, 1, 6).rows == 6
