"""A sealed close holds; a byte that changed in any input is found, and it is said in which."""

import random
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from tests.integration.close.closing import DECEMBER, NOVEMBER, TENTH, Books
from tests.integration.ledger.books import HOUR, Ledger, run_of, tampering
from tests.integration.ledger.test_close_range import JOURNAL as JOURNAL_COLUMNS
from tests.integration.ledger.test_close_range import POSTINGS as POSTING_COLUMNS

from gpuledger.close import steps, verifying
from gpuledger.close.comparing import JOURNAL, POSTINGS, ZONES
from gpuledger.close.verifying import FILE, GUARDS, WAREHOUSE, Verification
from gpuledger.kernel.clock import instant
from gpuledger.kernel.errors import NotFound, Refused


def verify(books: Books, version: int | None = None, period: str = NOVEMBER) -> Verification:
    return verifying.verify(books.closer(period), version)


def inputs(found: Verification) -> set[str]:
    return {each.input for each in found.findings}


@pytest.fixture
def closed(books: Books) -> Books:
    books.close()
    return books


def test_a_close_holds_whatever_came_since(closed: Books) -> None:
    assert verify(closed).ok
    closed.ledger.append(*run_of(TENTH, TENTH + HOUR, "late"))
    closed.ledger.clock.at = instant(TENTH + 60 * 24 * HOUR)
    closed.close(DECEMBER)
    for period in (NOVEMBER, DECEMBER):
        found = verify(closed, period=period)
        assert found.ok, found.findings
        assert found.rebuilt == found.digest


def test_both_versions_hold_beside_each_other(closed: Books) -> None:
    steps.reopen(closed.closer(), "a late invoice")
    closed.ledger.append(*run_of(TENTH, TENTH + HOUR, "late"))
    closed.close()
    assert verify(closed, 1).ok
    assert verify(closed, 2).ok
    assert verify(closed).place.version == 2


@contextmanager
def changed(ledger: Ledger, table: str, change: str) -> Iterator[None]:
    """Change history behind the guards' back, and change it back afterwards."""
    columns = "SELECT * FROM ledger." + table
    ledger.change(f"CREATE TABLE kept AS {columns}", *tampering(table, change))
    yield
    ledger.change(
        *tampering(table, f"DELETE FROM ledger.{table}"),
        *tampering(table, f"INSERT INTO ledger.{table} SELECT * FROM kept"),
        "DROP TABLE kept",
    )


@pytest.mark.parametrize("column", JOURNAL_COLUMNS)
def test_a_change_of_a_row_is_found_in_the_journal(closed: Books, column: str) -> None:
    change = (
        f"UPDATE ledger.journal SET {column} = {JOURNAL_COLUMNS[column]} WHERE book = 'alpha' AND seq = 5"
    )
    if column == "body":
        change = change.replace("'8000', '8001'", "'gpus_milli\":8000', 'gpus_milli\":8001'")
    with changed(closed.ledger, "journal", change):
        found = verify(closed)
    assert not found.ok
    assert JOURNAL in inputs(found)
    assert any(each.place.startswith("row 5 of alpha") for each in found.findings), found.findings
    assert POSTINGS not in inputs(found)


@pytest.mark.parametrize("column", POSTING_COLUMNS)
def test_a_change_of_a_posting_is_found_in_the_postings(closed: Books, column: str) -> None:
    other = POSTING_COLUMNS[column]
    change = f"UPDATE ledger.postings SET {column} = {other} WHERE book = 'alpha' AND seq = 6 AND n = 1"
    with changed(closed.ledger, "postings", change):
        found = verify(closed)
    assert not found.ok
    assert POSTINGS in inputs(found)
    assert any(each.place.startswith("row 6 of alpha") for each in found.findings), found.findings
    digests = [each for each in found.findings if "digest" in each.what]
    assert [each.input for each in digests] == [POSTINGS]


def test_a_change_of_what_the_settlement_posted_is_found(closed: Books) -> None:
    change = "UPDATE ledger.postings SET amount = amount + 1 WHERE code = 'expiry' AND debit_account = 'org/vision'"
    with changed(closed.ledger, "postings", change):
        found = verify(closed)
    told = {(each.input, each.place) for each in found.findings}
    assert (POSTINGS, "org/vision") in told
    assert found.rebuilt != found.digest


def test_what_cannot_be_read_any_more_is_found(closed: Books) -> None:
    change = "UPDATE ledger.journal SET body = '{}' WHERE type = 'workload.started'"
    with changed(closed.ledger, "journal", change):
        assert JOURNAL in inputs(verify(closed))


def test_any_byte_of_the_file_is_found(closed: Books) -> None:
    path = closed.closer().folder(1) / "close.json"
    content = path.read_bytes()
    chance = random.Random(1)
    for at in [0, len(content) - 1, *(chance.randrange(len(content)) for _ in range(3))]:
        path.write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
        (found,) = verify(closed).findings
        assert (found.input, found.place, found.what) == (FILE, str(path), f"byte {at} is another")
    path.write_bytes(content[:-5])
    assert verify(closed).findings[0].what == f"byte {len(content) - 5} is another"
    path.unlink()
    assert verify(closed).findings[0].what == "it is missing"
    closed.close()
    assert verify(closed).ok


def test_every_other_file_is_held_against_what_it_is_made_from(closed: Books) -> None:
    folder = closed.closer().folder(1)
    for path in sorted(folder.iterdir()):
        content = path.read_bytes()
        path.write_bytes(content[:-1] + b"?")
        assert [(each.input, each.place) for each in verify(closed).findings] == [(FILE, str(path))]
        path.write_bytes(content)


TAMPERED = {
    "UPDATE warehouse.statement SET held_gpu_ms_weighted = 1 WHERE account = 'org/vision'": (
        "warehouse.statement, account org/vision"
    ),
    "DELETE FROM warehouse.statement WHERE account = 'org/speech'": "warehouse.statement, account org/speech",
    "UPDATE warehouse.close SET document = replace(document, 'UTC', 'UTD')": "warehouse.close, column document",
    "UPDATE warehouse.close SET digest = 'ff'": "warehouse.close, column digest",
    "DELETE FROM warehouse.close": "warehouse.close",
}


@pytest.mark.parametrize("change", TAMPERED)
def test_a_change_in_the_warehouse_is_found_and_closing_again_mends_it(closed: Books, change: str) -> None:
    closed.ledger.change(change)
    found = verify(closed)
    assert [(each.input, each.place) for each in found.findings] == [(WAREHOUSE, TAMPERED[change])]
    assert found.rebuilt == found.digest, "the journal is what it was"


def test_a_balance_that_is_not_the_fold_of_its_postings_is_found(closed: Books) -> None:
    closed.ledger.change(
        "UPDATE ledger.balances SET amount = amount + 1 WHERE account = 'org/vision' AND pot = 'spent'"
    )
    (found,) = verify(closed).findings
    assert found.place == "book of alpha"
    assert "balance org/vision spent" in found.what


def test_a_guard_that_is_off_is_found(closed: Books) -> None:
    closed.ledger.change("ALTER TABLE ledger.journal DISABLE TRIGGER append_only_rows")
    assert inputs(verify(closed)) == {GUARDS}


def test_a_zone_that_cuts_elsewhere_by_now_is_found(closed: Books, monkeypatch: pytest.MonkeyPatch) -> None:
    from gpuledger.kernel.calendar import Calendar

    monkeypatch.setattr(Calendar, "period_bounds_s", lambda *_: (0, 1))
    assert inputs(verify(closed)) == {ZONES}


def test_the_file_that_is_left_says_what_was_sealed(closed: Books) -> None:
    """With the journal changed and the row of the warehouse gone, the file alone still tells what differs."""
    closed.ledger.change("DELETE FROM warehouse.close")
    change = "UPDATE ledger.postings SET amount = amount + 1 WHERE book = 'alpha' AND seq = 6 AND n = 1"
    with changed(closed.ledger, "postings", change):
        assert {JOURNAL, POSTINGS, WAREHOUSE} == inputs(verify(closed))
        (closed.closer().folder(1) / "close.json").unlink()
        found = verify(closed)
    assert any("nothing says what was" in each.what for each in found.findings)


def test_what_is_not_sealed_cannot_be_verified(books: Books) -> None:
    with pytest.raises(NotFound, match="was never closed"):
        verify(books)
    steps.freeze(books.closer())
    with pytest.raises(Refused, match="is not sealed"):
        verify(books)
