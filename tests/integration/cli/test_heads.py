"""``audit export-heads`` and ``audit verify --heads``: what the database alone would not show is found."""

import json
import subprocess
from pathlib import Path

import pytest
from tests.commands.fixtures import Ledger

TRACE = (
    "timestamp,duration,num_gpus,gpu_time,cluster\n"
    "2017-10-01 00:00:00,3600.0,1,3600.0,vc\n"
    "2017-10-01 00:00:01,3600.0,2,7200.0,vc\n"
)
OFF = """
    ALTER TABLE ledger.journal DISABLE TRIGGER USER; ALTER TABLE ledger.postings DISABLE TRIGGER USER;
    ALTER TABLE ledger.identities DISABLE TRIGGER USER;
    DELETE FROM ledger.balances WHERE book = 'philly';
"""
ON = """
    ;ALTER TABLE ledger.journal ENABLE ALWAYS TRIGGER append_only_rows;
    ALTER TABLE ledger.journal ENABLE ALWAYS TRIGGER append_only_table;
    ALTER TABLE ledger.postings ENABLE ALWAYS TRIGGER append_only_rows;
    ALTER TABLE ledger.postings ENABLE ALWAYS TRIGGER append_only_table;
    ALTER TABLE ledger.identities ENABLE ALWAYS TRIGGER append_only_rows;
    ALTER TABLE ledger.identities ENABLE ALWAYS TRIGGER append_only_table
"""
TAIL = """
    DELETE FROM ledger.journal WHERE book = 'philly' AND seq > 1;
    DELETE FROM ledger.postings WHERE book = 'philly';
    DELETE FROM ledger.identities WHERE book = 'philly' AND seq > 1;
    UPDATE ledger.books SET (last_seq, head, last_recorded_at) =
        (SELECT 1, row_hash, recorded_at FROM ledger.journal WHERE book = 'philly')
    WHERE book = 'philly'
"""
BOOK = """
    DELETE FROM ledger.journal WHERE book = 'philly'; DELETE FROM ledger.postings WHERE book = 'philly';
    DELETE FROM ledger.identities WHERE book = 'philly';
    DELETE FROM ledger.books WHERE book = 'philly'
"""


@pytest.fixture
def booked(ledger: Ledger, tmp_path: Path) -> Ledger:
    """Two jobs."""
    path = tmp_path / "trace.csv"
    path.write_text(TRACE)
    ledger.done("import", "philly", path)
    return ledger


def test_heads_are_exported_once_and_agree(booked: Ledger, tmp_path: Path) -> None:
    path = tmp_path / "heads"
    exported = booked.done("audit", "export-heads", path)
    assert exported.keys() == {"path", "exported", "commit"}
    assert (exported["path"], exported["commit"]) == (str(path), None)
    assert [(h["book"], h["rows"], h["head"]) for h in exported["exported"]] == booked.heads()
    content = path.read_bytes()
    lines = [json.loads(line) for line in content.splitlines()]
    assert all(line.keys() == {"book", "rows", "head", "recorded_at", "exported_at"} for line in lines)

    assert booked.done("audit", "export-heads", path)["exported"] == []
    assert booked("audit", "export-heads", path).out == "no head has changed\n"
    assert path.read_bytes() == content
    plain, held = booked.done("audit", "verify"), booked.done("audit", "verify", "--heads", path)
    assert held == plain


def test_a_git_folder_is_committed_to(booked: Ledger, tmp_path: Path) -> None:
    folder = tmp_path / "anchor"
    folder.mkdir()
    subprocess.run(["git", "init", "--quiet", folder], check=True)

    ran = booked("audit", "export-heads", folder)

    assert ran.status == 0, ran.err
    assert "2 heads appended to" in ran.out
    assert "committed as " in ran.out
    assert booked("audit", "verify", "--heads", folder).status == 0


def test_a_deleted_tail_is_found_named_and_not_exported_over(booked: Ledger, tmp_path: Path) -> None:
    path = tmp_path / "heads"
    booked.done("audit", "export-heads", path)
    content = path.read_bytes()
    booked.change(OFF + TAIL + ON)
    assert booked("audit", "verify").status == 0, "whoever is careful enough leaves a book that holds"

    ran = booked("audit", "verify", "--heads", path, "--json")

    assert ran.status == 3
    assert ran.json["ok"] is False
    bad = {book["book"]: book["first_bad"] for book in ran.json["books"]}
    assert bad["~org"] is None
    assert bad["philly"]["seq"] == 2
    assert "are gone" in bad["philly"]["what"]
    assert booked("audit", "verify", "--heads", path, "--cluster", "~org").status == 0
    people = booked("audit", "verify", "--heads", path)
    assert (people.status, "row 2: rows 2 to " in people.out) == (3, True)

    refused = booked("audit", "export-heads", path)
    assert refused.status == 1
    assert "book philly, row 2: " in refused.err
    assert path.read_bytes() == content


def test_a_cluster_that_vanished_is_found_by_its_name(booked: Ledger, tmp_path: Path) -> None:
    path = tmp_path / "heads"
    booked.done("audit", "export-heads", path)
    booked.change(OFF + BOOK + ON)
    assert booked("audit", "verify").status == 0
    ran = booked("audit", "verify", "--heads", path, "--cluster", "philly", "--json")
    assert ran.status == 3
    ((book,),) = (ran.json["books"],)
    assert (book["book"], book["first_bad"]["seq"]) == ("philly", 1)
    assert booked("audit", "verify", "--heads", path, "--cluster", "other").status == 4


def test_a_cluster_that_was_never_exported_is_told_apart(booked: Ledger, tmp_path: Path) -> None:
    path = tmp_path / "heads"
    booked.done("audit", "export-heads", path)
    path.write_bytes(
        b"".join(line for line in path.read_bytes().splitlines(keepends=True) if b"~org" in line)
    )
    ran = booked("audit", "verify", "--heads", path, "--cluster", "philly")
    assert ran.status == 0
    assert "no head of philly was ever exported" in ran.err


def test_a_file_that_is_not_whole(booked: Ledger, tmp_path: Path) -> None:
    path = tmp_path / "heads"
    booked.done("audit", "export-heads", path)
    whole = path.read_bytes()

    path.write_bytes(whole + b'{"book":"phi')
    ran = booked("audit", "verify", "--heads", path)
    assert ran.status == 0
    assert "the last line does not end" in ran.err

    path.write_bytes(whole + b'{"book":"phi\n')
    refused = booked("audit", "verify", "--heads", path, "--json")
    assert (refused.status, refused.out) == (2, "")
    assert refused.problem["error"].startswith(f"{path}:3 is no exported head")
    assert booked("audit", "export-heads", path).status == 2
    assert booked("audit", "verify", "--heads", tmp_path / "missing").status == 2
