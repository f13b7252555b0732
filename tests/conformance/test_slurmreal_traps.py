"""Semantics traps that only a comparison with accounting can show, each with its number in the list of traps."""

from pathlib import Path
from typing import Any

import pytest
from tests.accounting import document, job
from tests.commands import fixtures
from tests.commands.fixtures import Ledger

ledger = fixtures.ledger

BEGIN_S = 1_700_000_000
LATER = job(9, BEGIN_S + 90_000, BEGIN_S + 90_060)
"""Ends long after everything else, so that nothing of it can still be on its way."""


def record(path: Path, *jobs: dict[str, Any]) -> Path:
    path.write_text(document([*jobs, LATER]))
    return path


def held(ledger: Ledger) -> dict[str, int]:
    """Return GPU-seconds by account, without those of the last job."""
    rows = ledger.usage("account", "--to", BEGIN_S + 90_000)["rows"]
    return {row["key"]: row["gpu_ms"] // 1000 for row in rows if row["gpu_ms"]}


@pytest.mark.trap(32, "slurm-sacct-json")
def test_32_an_event_that_was_lost_is_found_by_a_dump_and_charged_once_it_is_told(
    ledger: Ledger, tmp_path: Path
) -> None:
    first, second = job(1, BEGIN_S, BEGIN_S + 3600, gpus=8), job(2, BEGIN_S, BEGIN_S + 1800, gpus=4)
    ledger.done("import", "slurm-sacct-json", record(tmp_path / "arrived.json", first))
    dump = record(tmp_path / "dump.json", first, second)

    found = ledger("reconcile", "slurm", dump, "--json")

    assert (found.status, found.json["classes"]) == (3, {"lost-event": 1})
    assert held(ledger) == {"alpha/vision": 8 * 3600}
    assert ledger.done("reconcile", "slurm", dump, "--repair")["differences"] == []
    assert held(ledger) == {"alpha/vision": 8 * 3600 + 4 * 1800}


@pytest.mark.trap(36, "slurm-sacct-json")
def test_36_an_account_that_was_edited_after_the_end_is_reversed_and_booked_anew(
    ledger: Ledger, tmp_path: Path
) -> None:
    told = job(1, BEGIN_S, BEGIN_S + 3600, gpus=8)
    ledger.done("import", "slurm-sacct-json", record(tmp_path / "told.json", told))
    edited = job(1, BEGIN_S, BEGIN_S + 3600, gpus=8, account="speech")
    dump = record(tmp_path / "dump.json", edited)

    found = ledger.done("reconcile", "slurm", dump)
    assert found["classes"] == {"edited": 1}
    ledger.done("reconcile", "slurm", dump, "--repair")

    assert held(ledger) == {"alpha/speech": 8 * 3600}
    charges = ledger.rows(
        "SELECT debit_account, credit_account, amount FROM ledger.postings"
        " WHERE commodity = 'gpu_ms' AND workload LIKE '1-%' AND code = 'charge' ORDER BY seq, n"
    )
    accounts = {name for debit, credit, _ in charges for name in (debit, credit)}
    assert accounts == {"alpha/vision", "alpha/speech"}
    assert len(charges) == 3


@pytest.mark.trap(27, "slurm-sacct-json")
def test_27_an_end_that_was_estimated_gives_way_to_accountings_own(ledger: Ledger, tmp_path: Path) -> None:
    running = job(1, BEGIN_S, gpus=8)
    ledger.done("import", "slurm-sacct-json", record(tmp_path / "running.json", running))
    ledger.done("tick", "--at", str(BEGIN_S + 86_400))  # its limit of ten hours has passed
    assert held(ledger) == {"alpha/vision": 8 * 36_000}
    dump = record(tmp_path / "dump.json", job(1, BEGIN_S, BEGIN_S + 450, gpus=8))

    found = ledger.done("reconcile", "slurm", dump)
    assert found["classes"] == {"estimated-end": 1}
    ledger.done("reconcile", "slurm", dump, "--repair")

    assert held(ledger) == {"alpha/vision": 8 * 450}
