"""``gpuledger why`` on a trace."""

from pathlib import Path

import pytest
from tests.commands.fixtures import Ledger
from tests.commands.traces import ALEX

NOON = "2023-02-08T12:00:00Z"


@pytest.fixture
def alex(ledger: Ledger, tmp_path: Path) -> Ledger:
    """Cluster alex with its GPUs, and a cycle at noon."""
    budget = tmp_path / "budget.yaml"
    budget.write_text("clusters: {alex: {gpus: 263, model: a40}}\n")
    ledger.done("budget", "apply", budget, "--from", "0", "--yes")
    ledger.done("import", "clustercockpit", ALEX)
    ledger.done("cycle", "--cluster", "alex", "--at", NOON)
    return ledger


def running_at_noon(ledger: Ledger) -> str:
    ((name,),) = ledger.rows(
        "SELECT workload FROM ledger.segments WHERE from_at <= :at AND to_at > :at ORDER BY workload LIMIT 1",
        at=NOON,
    )
    return str(name)


def test_a_story_is_told_as_text_and_as_a_document(alex: Ledger) -> None:
    name = running_at_noon(alex)
    document = alex.done("why", name)
    assert (document["workload"], document["state"]) == (name, "over")
    assert document["events"][0]["what"] == "submitted"
    assert document["cost"]["charged_gpu_ms"] > 0
    text = alex("why", name, "--cluster", "alex")
    assert text.status == 0
    assert "Cost so far" in text.out
    assert "Started" in text.out


def test_at_tells_it_as_it_stood(alex: Ledger) -> None:
    document = alex.done("why", running_at_noon(alex), "--at", NOON)
    assert document["state"] == "runs"
    assert all(event["at"] <= NOON for event in document["events"])


def test_an_unknown_workload_is_not_found_and_near_names_are_named(alex: Ledger) -> None:
    name = running_at_noon(alex)
    ran = alex("why", name[:-1] + "x", "--json")
    assert ran.status == 4
    assert ran.problem["hint"].startswith("did you mean ")
    assert alex("why", name, "--cluster", "nowhere", "--json").status == 4
