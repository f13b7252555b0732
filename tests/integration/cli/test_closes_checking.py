"""``close verify`` and ``close diff``: a sealed close is made anew and compared, and two versions are explained."""

import json

import pytest
from tests.commands.fixtures import Ledger
from tests.integration.cli.test_closes import FEBRUARY, close, ran, spent

__all__ = ["spent"]

OF = (FEBRUARY, "--cluster", "alpha")


@pytest.fixture
def closed(spent: Ledger) -> Ledger:
    close(spent)
    return spent


def test_a_close_that_holds_is_said_to(closed: Ledger) -> None:
    found = closed.done("close", "verify", *OF)
    assert found == {
        "ok": True,
        "cluster": "alpha",
        "period": FEBRUARY,
        "version": 1,
        "digest": found["rebuilt_digest"],
        "rebuilt_digest": found["rebuilt_digest"],
        "findings": [],
    }
    people = closed("close", "verify", *OF)
    assert (people.status, people.err) == (0, "")
    assert people.out == f"version 1 of the close of 2026-02 of alpha is what was sealed: {found['digest']}\n"


def test_a_byte_that_changed_is_a_problem_that_says_where(closed: Ledger) -> None:
    path = closed.home / "closes/alpha/2026-02/v1/close.json"
    path.write_bytes(path.read_bytes().replace(b"org/vision", b"org/visiom"))
    found = closed("close", "verify", *OF)
    assert found.status == 3
    assert "is not what was sealed" in found.out
    assert f"file: {path}: byte " in found.out
    closed.change(
        "ALTER TABLE ledger.postings DISABLE TRIGGER USER;"
        "UPDATE ledger.postings SET amount = amount + 1000 WHERE book = 'alpha' AND code = 'charge'"
    )
    told = closed("close", "verify", *OF, "--version", "1", "--json")
    assert told.status == 3
    assert told.json["ok"] is False
    assert told.json["rebuilt_digest"] != told.json["digest"]
    assert {"file", "postings", "journal", "guards of the database"} <= {
        f["input"] for f in told.json["findings"]
    }
    assert "the journal gives " in closed("close", "verify", *OF).out


def test_two_versions_are_explained_row_by_row(closed: Ledger) -> None:
    closed.done("close", "reopen", *OF, "--reason", "an invoice was late")
    ran(closed, "late", 1)
    close(closed)
    found = closed.done("close", "diff", *OF)
    assert (found["from_version"], found["to_version"], found["explained"]) == (1, 2, True)
    charged = next(c for c in found["changes"] if c["column"] == "charged_gpu_ms_weighted")
    assert (charged["account"], charged["difference"]) == ("org/vision", 8 * 3_600_000_000)
    assert "late" in {row["workload"] for row in found["rows"]}
    people = closed("close", "diff", *OF, "--from", "1", "--to", "2")
    assert people.status == 0
    assert "the rows in between sum to the difference" in people.out
    assert "allocated (physical)" in people.out
    assert json.dumps(found) == json.dumps(closed.done("close", "diff", *OF, "--from", "1"))
    assert closed.done("close", "verify", *OF, "--version", "1")["ok"]


REFUSED = [
    (["verify", "2026-03", "--cluster", "alpha"], 4, "2026-03 of alpha was never closed"),
    (["verify", *OF, "--version", "2"], 4, "has no version 2"),
    (["verify", FEBRUARY, "--cluster", "beta"], 4, "cluster 'beta' does not exist"),
    (["diff", "2026-03", "--cluster", "alpha"], 4, "2026-03 of alpha was never closed"),
    (["diff", *OF], 2, "has no version 0"),
    (["diff", *OF, "--from", "1"], 2, "version 1 is not before version 1"),
    (["diff", FEBRUARY, "--cluster", "beta"], 4, "cluster 'beta' does not exist"),
]


def test_what_there_is_none_of_is_told(closed: Ledger) -> None:
    for arguments, status, expected in REFUSED:
        found = closed("close", *arguments)
        assert (found.status, found.out) == (status, ""), arguments
        assert expected in found.err
