"""The gate of a statement: what is put wrong into it is found, by name and row, before it is sealed."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.close.closing import NOVEMBER, Books, fill
from tests.integration.ledger.books import CLUSTER, Ledger

from gpuledger.close import steps
from gpuledger.close.steps import Verdict
from gpuledger.close.store import Place
from gpuledger_pipelines.close_gate import gate, main
from gpuledger_pipelines.expectations import close as expect

PLACE = Place(CLUSTER, NOVEMBER, 1)
FAULTS = {
    "a settled budget is empty": "SET left_gpu_ms_weighted = 1, granted_gpu_ms_weighted = granted_gpu_ms_weighted + 1",
    "what is left is what the movements leave": "SET granted_gpu_ms_weighted = granted_gpu_ms_weighted + 1",
    "what one account gave to another sums to nothing": (
        "SET transferred_gpu_ms_weighted = 1, granted_gpu_ms_weighted = granted_gpu_ms_weighted - 1"
    ),
    "the statement is what the ledger's balances say": "SET allocated_gpu_ms = allocated_gpu_ms + 1",
    "no amount is negative": "SET unallocated_gpu_ms = -1",
}


@pytest.fixture
def settled(database_url: str, tmp_path: Path) -> Iterator[Books]:
    """A close whose statement is written and not sealed."""
    ledger = Ledger(database_url)
    fill(ledger)
    books = Books(ledger, tmp_path)
    closer = books.closer()
    steps.settle(closer, steps.freeze(closer).version, None)
    yield books
    ledger.engine.dispose()


def verdict(books: Books, place: Place = PLACE) -> Verdict:
    return gate(books.ledger.url, place)


def test_a_statement_that_holds_and_each_fault_that_does_not(settled: Books) -> None:
    held = verdict(settled)
    assert held.findings == ()
    assert held.checks == len(expect.statement("x", "y"))
    for what, fault in FAULTS.items():
        settled.ledger.change(
            "CREATE TABLE kept AS SELECT * FROM warehouse.statement",
            f"UPDATE warehouse.statement {fault} WHERE account = 'org/vision'",
        )
        found = verdict(settled).findings
        assert any(finding.startswith(what) for finding in found), (what, found)
        assert any("org/vision" in finding for finding in found) or "another" in what
        settled.ledger.change(
            "DELETE FROM warehouse.statement",
            "INSERT INTO warehouse.statement SELECT * FROM kept",
            "DROP TABLE kept",
        )
    assert verdict(settled).findings == ()


def test_an_account_that_is_missing_is_found(settled: Books) -> None:
    settled.ledger.change("DELETE FROM warehouse.statement WHERE account = 'org/speech'")
    (found,) = verdict(settled).findings
    assert found.startswith("the statement is what the ledger's balances say: 1 rows")


def test_another_version_or_cluster_is_not_looked_at(settled: Books) -> None:
    settled.ledger.change(
        "INSERT INTO warehouse.statement SELECT 'it''s', period, version, account, granted_gpu_ms_weighted,"
        " rolled_in_gpu_ms_weighted, transferred_gpu_ms_weighted, credited_gpu_ms_weighted, charged_gpu_ms_weighted,"
        " held_gpu_ms_weighted, expired_gpu_ms_weighted, rolled_out_gpu_ms_weighted, unallocated_gpu_ms_weighted,"
        " 5, allocated_gpu_ms, unallocated_gpu_ms FROM warehouse.statement"
    )
    assert verdict(settled).findings == ()
    assert verdict(settled, Place("it's", NOVEMBER, 1)).findings != ()


def test_the_process_prints_one_document(
    settled: Books, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GPULEDGER_DATABASE_URL", settled.ledger.url)
    assert main([CLUSTER, NOVEMBER, "1"]) == 0
    assert json.loads(capsys.readouterr().out) == {"checks": verdict(settled).checks, "findings": []}
    usage = subprocess.run(
        [sys.executable, "-m", "gpuledger_pipelines.close_gate"], capture_output=True, check=False
    )
    assert usage.returncode == 2
