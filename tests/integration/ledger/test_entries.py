"""Entries of a book: both sides of every posting, which cancel out, in batches."""

import pytest
from tests.integration.ledger.books import Ledger, at, run_of

from gpuledger.database.engine import reading
from gpuledger.kernel.errors import NotFound
from gpuledger.ledger import entries
from gpuledger.ledger.entries import Entry, iter_entries

NOON = at("2026-10-01T12:00:00Z")


def found(ledger: Ledger, cluster: str = "alpha", **keys: str) -> list[Entry]:
    with reading(ledger.engine) as reader:
        return [entry for batch in iter_entries(reader, cluster, **keys) for entry in batch]  # type: ignore[arg-type]


def test_both_sides_of_everything_cancel_out(ledger: Ledger) -> None:
    ledger.append(*run_of(NOON, NOON + 3600), *run_of(NOON, NOON + 7200, "w2", account="org/speech"))
    every = found(ledger)
    assert len(every) == 2 * ledger.value("SELECT count(*) FROM ledger.postings")
    for commodity in ("gpu_ms", "gpu_ms_weighted"):
        assert sum(entry.amount for entry in every if entry.commodity == commodity) == 0
    assert [entry.seq for entry in every] == sorted(entry.seq for entry in every)


def test_an_account_and_a_period_keep_what_is_theirs(ledger: Ledger) -> None:
    ledger.append(*run_of(NOON, NOON + 3600), *run_of(NOON, NOON + 7200, "w2", account="org/visionary"))
    own = found(ledger, within="org/vision")
    assert {entry.account for entry in own} == {"org/vision"}
    assert found(ledger, period="2026-10")
    assert not found(ledger, period="2026-11")
    with pytest.raises(NotFound):
        found(ledger, "nowhere")


def test_batches_are_bounded(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entries, "BATCH_ROWS", 3)
    ledger.append(*run_of(NOON, NOON + 3600), *run_of(NOON, NOON + 7200, "w2"))
    with reading(ledger.engine) as reader:
        sizes = [len(batch) for batch in iter_entries(reader, "alpha")]
    assert len(sizes) > 1
    assert max(sizes) == 3
