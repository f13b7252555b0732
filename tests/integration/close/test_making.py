"""The file of a close is made from the journal: it says what was booked, and the same each time."""

import pytest
from tests.integration.close.closing import DECEMBER, NOVEMBER, SILENT, TENTH, Books
from tests.integration.ledger.books import CLUSTER, GPU_HOUR, HOUR, run_of, told

from gpuledger.close import steps
from gpuledger.close.document import Weighted, decode
from gpuledger.database.engine import writing
from gpuledger.events.budget import PolicyChanged
from gpuledger.events.closing import PeriodClosing
from gpuledger.kernel.clock import instant
from gpuledger.kernel.errors import Conflict, Refused
from gpuledger.ledger.rebuild import rebuild

W = 1000 * GPU_HOUR


def test_it_says_what_each_account_got_used_and_left(books: Books) -> None:
    books.close()
    said = books.made().document
    lines = {line.account: line for line in said.accounts}
    # 8 GPUs: 5 hours of w1 and 4 of w3 up to the edge; 28 left of 100, of which 30 may go on.
    assert lines["org/vision"].weighted == Weighted(
        granted=100 * W, charged=72 * W, expired=28 * W, rolled_out=28 * W
    )
    assert lines["org/vision"].physical.allocated == 72 * GPU_HOUR
    assert lines["org/speech"].weighted == Weighted(
        granted=10 * W, charged=16 * W, expired=-6 * W, rolled_out=-6 * W
    )
    assert said.totals.accounts == len(lines) == 2
    assert said.totals.weighted.charged == 88 * W
    assert said.late == []


def test_it_says_where_books_streams_sources_and_policies_stood(books: Books) -> None:
    books.ledger.append(
        told(TENTH, PolicyChanged(policy="rate_card", weights={"H100": 1000}, reason="t", by="t"))
    )
    books.ledger.change(
        "INSERT INTO ledger.stream_offsets (consumer, stream, partition, position, epoch)"
        " VALUES ('ingest', 'gpu.scheduler.events', 1, 42, 1)"
    )
    books.close()
    made = books.made()
    said = made.document
    org, alpha = said.books
    assert (org.book, org.first_seq, org.last_seq) == ("~org", 1, 4)
    assert (alpha.book, alpha.first_seq, alpha.last_seq) == (CLUSTER, 1, made.rows.closing_seq)
    head = books.ledger.value(
        "SELECT encode(row_hash, 'hex') FROM ledger.journal WHERE book = :b AND seq = :s",
        b=CLUSTER, s=made.rows.closing_seq,
    )  # fmt: skip
    assert alpha.head == head
    assert [(o.stream, o.partition, o.position) for o in said.offsets] == [("gpu.scheduler.events", 1, 42)]
    assert [(s.source, s.silent) for s in said.sources] == [(SILENT, True)]
    assert {(p.book, p.policy) for p in said.policies} == {("~org", "rate_card"), (CLUSTER, "rate_card")}
    assert said.time.ends_at.isoformat() == "2026-12-01T00:00:00+00:00"


def test_what_comes_later_changes_none_of_its_bytes(books: Books) -> None:
    books.close()
    before = books.made().content
    books.ledger.append(*run_of(TENTH, TENTH + HOUR, "late"))
    books.ledger.append(
        told(TENTH, PolicyChanged(policy="rate_card", weights={"H100": 2000}, reason="t", by="t"))
    )
    with writing(books.ledger.engine) as writer:
        rebuild(writer, books.ledger.calendar)
    made = books.made()
    assert made.content == before
    assert made.digest == made.rows.digest
    assert made.findings == []


def test_a_late_fact_stands_in_the_statement_of_the_period_that_was_open(books: Books) -> None:
    books.close()
    books.ledger.append(*run_of(TENTH, TENTH + HOUR, "late"))
    books.ledger.clock.at = instant(TENTH + 60 * 24 * HOUR)
    books.close(DECEMBER)
    said = books.made(DECEMBER).document
    (late,) = [each for each in said.late if each.weighted.charged]
    assert (late.account, late.period, late.weighted.charged) == ("org/vision", NOVEMBER, 8 * W)
    assert said.books[1].first_seq == books.made().rows.closing_seq + 1, "each row is in one close"


def test_it_reads_back(books: Books) -> None:
    books.close()
    made = books.made()
    assert decode(made.content, "here") == made.document


def test_a_close_that_is_not_there_or_not_settled_is_told_apart(books: Books) -> None:
    with pytest.raises(Refused, match="was never closed"):
        books.made()
    steps.freeze(books.closer())
    with pytest.raises(Conflict, match="is not settled"):
        books.made()
    books.close()
    with pytest.raises(Refused, match="has no version 2"):
        books.made(version=2)


def test_a_close_from_before_there_were_files_has_to_be_made_anew(books: Books) -> None:
    books.ledger.append(told(TENTH, PeriodClosing(cluster=CLUSTER, period=NOVEMBER, version=1, by="ada")))
    with pytest.raises(Refused, match="was begun before closes had files") as refused:
        books.close()
    assert "gpuledger close reopen 2026-11 --cluster alpha" in refused.value.hint
    assert steps.reopen(books.closer(), "no file") == 1
    assert books.close().rows.version == 2
