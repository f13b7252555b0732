"""``gpuledger quote`` on a trace."""

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


def test_a_quote_is_told_as_text_and_as_a_document(alex: Ledger) -> None:
    ((account,),) = alex.rows(
        "SELECT account FROM ledger.segments WHERE book = 'alex' ORDER BY from_at LIMIT 1"
    )
    asked = ("--account", account, "--cluster", "alex", "--at", NOON)
    document = alex.done("quote", "1", "2h", *asked, "--runtime", "1d", "--model", "A40")
    assert (document["gpus_milli"], document["minimum_runtime_s"], document["runtime_s"]) == (
        1000,
        7200,
        86_400,
    )
    assert document["certainty"] in ("bound", "estimate")
    assert document["funding"]["whole"]["gpu_hours"] == "24.000"
    text = alex("quote", "0.5", "90min", *asked)
    assert text.status == 0
    assert text.out.startswith("0.500 GPUs for at least 1 h 30 min")
    assert alex("quote", "1", "2h", "--cluster", "alex", "--account", "alex/nobody", "--json").status == 4
    for wrong in (("many", "2h"), ("1", "soon"), ("0", "2h"), ("0.0001", "2h")):
        assert alex("quote", *wrong, *asked, "--json").status == 2
