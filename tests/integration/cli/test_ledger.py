"""``audit verify`` and ``rebuild``: the book is checked, and a change in it is found."""

from pathlib import Path

import pytest
from tests.commands.fixtures import Ledger

TRACE = (
    "timestamp,duration,num_gpus,gpu_time,cluster\n"
    "2017-10-01 00:00:00,3600.0,1,3600.0,vc\n"
    "2017-10-01 00:00:01,3600.0,2,7200.0,vc\n"
)


@pytest.fixture
def booked(ledger: Ledger, tmp_path: Path) -> Ledger:
    """Two jobs."""
    path = tmp_path / "trace.csv"
    path.write_text(TRACE)
    ledger.done("import", "philly", path)
    return ledger


def tamper(ledger: Ledger, statement: str) -> None:
    """Do what only an owner who takes the guards away can do, and put them back."""
    ledger.change(
        "ALTER TABLE ledger.journal DISABLE TRIGGER USER; ALTER TABLE ledger.postings DISABLE TRIGGER USER;"
        f"{statement};"
        "ALTER TABLE ledger.journal ENABLE TRIGGER USER; ALTER TABLE ledger.postings ENABLE TRIGGER USER"
    )


def test_the_keys(booked: Ledger) -> None:
    document = booked.done("audit", "verify")
    assert document["ok"] is True
    assert [book["book"] for book in document["books"]] == ["philly", "~org"]
    assert all(book.keys() == {"book", "rows", "head", "first_bad"} for book in document["books"])
    rebuilt = booked.done("rebuild", "--check")
    assert rebuilt.keys() == {"ok", "state_digest", "differences"}
    assert (rebuilt["ok"], rebuilt["differences"]) == (True, [])


TAMPERED = {
    "a changed fact": (
        """UPDATE ledger.journal SET body = jsonb_set(body::jsonb, '{gpus_milli}', '1')::json
           WHERE book = 'philly' AND seq = 2""",
        2,
    ),
    "a missing row": ("DELETE FROM ledger.journal WHERE book = 'philly' AND seq = 2", 2),
    "a changed amount": ("UPDATE ledger.postings SET amount = amount + 1 WHERE book = 'philly'", 3),
}


@pytest.mark.parametrize("what", TAMPERED)
def test_a_tampered_row_is_named(booked: Ledger, what: str) -> None:
    statement, seq = TAMPERED[what]
    tamper(booked, statement)

    ran = booked("audit", "verify", "--json")

    assert ran.status == 3
    assert ran.json["ok"] is False
    bad = {book["book"]: book["first_bad"] for book in ran.json["books"]}
    assert bad["philly"]["seq"] == seq
    assert bad["~org"] is None
    people = booked("audit", "verify")
    assert people.status == 3
    assert f"row {seq}: " in people.out
    assert "the ledger does NOT hold" in people.out


def test_a_guard_that_is_off_is_a_fault(booked: Ledger) -> None:
    booked.change("ALTER TABLE ledger.journal DISABLE TRIGGER USER")
    ran = booked("audit", "verify", "--json")
    assert ran.status == 3
    assert ran.json["faults"]


def test_a_balance_that_is_off_is_found_and_rebuilt(booked: Ledger) -> None:
    digest = booked.checked_digest()
    booked.change("UPDATE ledger.balances SET amount = amount + 1 WHERE pot = 'spent'")

    found = booked("rebuild", "--check", "--json")
    assert found.status == 3
    assert found.json["ok"] is False
    assert any(line.startswith("balance ") for line in found.json["differences"])
    assert booked("audit", "verify").status == 3

    rebuilt = booked.done("rebuild")
    assert (rebuilt["ok"], rebuilt["state_digest"]) == (True, digest)
    assert booked.checked_digest() == digest


def test_a_run_that_is_missing_is_found_and_rebuilt(booked: Ledger) -> None:
    digest = booked.checked_digest()
    booked.change("DELETE FROM ledger.segments")
    assert booked("rebuild", "--check").status == 3
    assert booked("rebuild").status == 0
    assert booked.checked_digest() == digest
    assert booked.hours("account") == {"philly/vc": "3.000"}


def test_a_row_that_cannot_be_read_is_a_problem_that_is_named(booked: Ledger) -> None:
    tamper(booked, "UPDATE ledger.journal SET body = to_json('x'::text) WHERE book = 'philly' AND seq = 2")
    ran = booked("rebuild", "--check", "--json")
    assert ran.status == 3
    (difference,) = ran.json["differences"]
    assert difference.startswith("row 2 of book 'philly' cannot be read as workload.")
    again = booked("rebuild")
    assert again.status == 1
    assert "row 2 of book 'philly' cannot be read" in again.err
    assert "Traceback" not in again.err


def test_a_part_of_one_book_can_be_verified(booked: Ledger) -> None:
    (at,) = booked.rows("SELECT max(recorded_at) FROM ledger.journal WHERE book = 'philly'")[0]
    whole = booked.done("audit", "verify", "--cluster", "philly", "--as-of", at.isoformat())
    (rows,) = booked.rows("SELECT last_seq FROM ledger.books WHERE book = 'philly'")[0]
    assert [(book["book"], book["rows"]) for book in whole["books"]] == [("philly", rows)]
    nothing = booked.done("audit", "verify", "--from", "2001-01-01", "--to", "2001-01-02")
    assert [book["rows"] for book in nothing["books"]] == [0, 0]
