"""``gpuledger cycle``: decided from real state, recorded, published."""

import json
from pathlib import Path

import pytest
from tests.commands.fixtures import Ledger
from tests.commands.traces import ALEX

ALLOCATION_KEYS = {
    "account",
    "share_ppm",
    "used_gpu_ms",
    "entitled_gpu_ms",
    "ratio",
    "demand_gpus",
    "issued_gpus",
}
NOON = "2023-02-08T12:00:00Z"


@pytest.fixture
def alex(ledger: Ledger, tmp_path: Path) -> Ledger:
    """Cluster alex with its GPUs."""
    budget = tmp_path / "budget.yaml"
    budget.write_text("clusters: {alex: {gpus: 263, model: a40}}\n")
    ledger.done("budget", "apply", budget, "--from", "0", "--yes")
    ledger.done("import", "clustercockpit", ALEX)
    return ledger


def allocations(ledger: Ledger) -> list[dict[str, object]]:
    """What lies on the topic of allocations."""
    topic = ledger.home / "streams" / "gpu.allocations" / "0.ndjson"
    return [json.loads(line) for line in topic.read_text().splitlines()] if topic.exists() else []


def test_a_cycle_is_recorded_and_published(alex: Ledger) -> None:
    document = alex.done("cycle", "--cluster", "alex", "--at", NOON)

    assert document.keys() >= {"cluster", "cycle", "supply_gpus", "allocations", "decisions"}
    assert (document["cluster"], document["supply_gpus"]) == ("alex", 263)
    assert document["allocations"]
    assert all(row.keys() >= ALLOCATION_KEYS for row in document["allocations"])
    assert all(d.keys() >= {"workload", "action", "reason", "numbers"} for d in document["decisions"])
    ((body,),) = alex.rows("SELECT body FROM ledger.journal WHERE type = 'allocation.issued'")
    orders = [decision for decision in document["decisions"] if decision["action"] != "wait"]
    assert body["record"] == {**document, "decisions": orders}
    assert body.get("waiting", 0) == len(document["decisions"]) - len(orders)
    (published,) = allocations(alex)
    assert published["type"] == "org.gpuledger.allocation.issued.v1"
    assert published["data"]["record"] == body["record"]
    assert alex.rows("SELECT count(*) FROM ledger.outbox WHERE published_at IS NULL") == [(0,)]
    alex.checked_digest()


def test_a_replay_is_the_record_whatever_came_after(alex: Ledger) -> None:
    document = alex.done("cycle", "--cluster", "alex", "--at", NOON)
    alex.done("import", "clustercockpit", ALEX, "--cluster", "other")
    replayed = alex.done("replay", document["cycle"])
    assert (replayed["ok"], replayed["cycle"], replayed["difference"]) == (True, document["cycle"], None)
    assert alex("replay", document["cycle"]).out == f"{document['cycle']}: the same, byte for byte\n"
    assert alex("replay", "alex@nowhere").status == 4


def test_the_same_state_gives_the_same_decision(alex: Ledger) -> None:
    first = alex.done("cycle", "--cluster", "alex", "--at", NOON, "--dry-run")
    second = alex.done("cycle", "--cluster", "alex", "--at", NOON, "--dry-run")
    assert first == second


def test_a_dry_run_leaves_nothing_behind(alex: Ledger) -> None:
    heads = alex.heads()
    document = alex.done("cycle", "--cluster", "alex", "--at", NOON, "--dry-run")
    assert document["allocations"]
    assert alex.heads() == heads
    assert allocations(alex) == []


def test_nobody_is_issued_more_than_asked_and_all_no_more_than_there_is(alex: Ledger) -> None:
    document = alex.done("cycle", "--cluster", "alex", "--at", NOON, "--dry-run")
    leaves = [row for row in document["allocations"] if "/" in row["account"]]
    assert all(row["issued_gpus"] <= row["demand_gpus"] for row in leaves)
    assert 0 < sum(row["issued_gpus"] for row in leaves) <= 263


def test_a_cycle_for_people(alex: Ledger) -> None:
    ran = alex("cycle", "--cluster", "alex", "--at", NOON)
    assert ran.status == 0
    assert ": 263 GPUs" in ran.out
    assert "alex/proj016" in ran.out


def test_the_cluster_must_be_named_where_there_are_several(alex: Ledger) -> None:
    ran = alex("cycle", "--json")
    assert ran.status == 2
    assert ran.problem == {"error": "--cluster: name one", "hint": "known clusters: alex, fritz", "exit": 2}


def test_an_unknown_cluster_is_not_found(alex: Ledger) -> None:
    assert alex("cycle", "--cluster", "nosuch").status == 4


def test_a_cluster_without_gpus_says_what_to_do(alex: Ledger) -> None:
    ran = alex("cycle", "--cluster", "fritz", "--json")
    assert ran.status == 2
    assert "budget apply" in ran.problem["hint"]


def test_without_a_cluster_the_only_one_is_taken(ledger: Ledger, tmp_path: Path) -> None:
    budget = tmp_path / "budget.yaml"
    budget.write_text("clusters: {alpha: {gpus: 8, model: x}}\naccounts: {org/a: {}}\n")
    ledger.done("budget", "apply", budget, "--from", "0", "--yes")
    assert ledger.done("cycle")["cluster"] == "alpha"


def test_what_no_cycle_has_told_yet_is_no_number(alex: Ledger) -> None:
    line = next(line for line in alex("policy", "status").out.splitlines() if "alex" in line)
    assert line.split() == ["alex", "nobody", *["-"] * 6]


def test_once_prints_the_ids_of_its_cycles_and_status_is_told_of_one_cluster(alex: Ledger) -> None:
    ids = alex.done("policy", "run", "--once", "--cluster", "alex")["cycles"]
    assert [cycle.partition("@")[0] for cycle in ids] == ["alex"]
    (status,) = alex.done("policy", "status", "--cluster", "alex")["clusters"]
    assert status["cycle"] == ids[0]
    assert alex("policy", "status", "--cluster", "nowhere").status == 4
    assert "--json goes with --once" in alex("policy", "run", "--json").err
