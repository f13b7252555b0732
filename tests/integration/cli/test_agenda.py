"""``gpuledger calendar`` on a trace."""

from pathlib import Path

import pytest
from tests.commands.fixtures import Ledger
from tests.commands.traces import ALEX

NOON = "2023-02-08T12:00:00Z"


@pytest.fixture
def alex(ledger: Ledger, tmp_path: Path) -> Ledger:
    """Cluster alex with its GPUs."""
    budget = tmp_path / "budget.yaml"
    budget.write_text("clusters: {alex: {gpus: 263, model: a40}}\n")
    ledger.done("budget", "apply", budget, "--from", "0", "--yes")
    ledger.done("import", "clustercockpit", ALEX)
    return ledger


def test_what_is_to_come_is_listed_in_order_of_time(alex: Ledger) -> None:
    calendar = alex.done("calendar", "--cluster", "alex", "--at", NOON)
    dates = [entry["at"] for entry in calendar["entries"]]
    assert dates == sorted(dates)
    assert {entry["kind"] for entry in calendar["entries"]} >= {"protection ends", "period ends"}
    listed = alex("calendar", "--cluster", "alex", "--at", NOON)
    assert listed.out.startswith(f"alex, as of {NOON}")
    assert len(listed.out.splitlines()) == len(dates) + 1
