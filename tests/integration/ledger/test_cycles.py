"""The record of policy cycles."""

from tests.integration.ledger.books import CLUSTER, Ledger, submitted, told

from gpuledger.database.engine import reading
from gpuledger.events.budget import AllocationIssued
from gpuledger.ledger.cycles import latest_cycle


def issued(cycle: str, **record: object) -> AllocationIssued:
    return AllocationIssued(
        cluster=CLUSTER,
        cycle=cycle,
        sequences={CLUSTER: 1},
        config_version="1",
        input_digest="d",
        record=record,
    )


def test_the_newest_cycle_is_returned_whole(ledger: Ledger) -> None:
    ledger.append(told(900, issued("c1", supply_gpus=8)), told(5, submitted()))
    ledger.append(told(600, issued("c2", supply_gpus=9, decisions=[{"workload": "w1", "numbers": {"a": 1}}])))
    with reading(ledger.engine) as reader:
        record = latest_cycle(reader, CLUSTER, at_s=899)
    assert record == {"supply_gpus": 9, "decisions": [{"workload": "w1", "numbers": {"a": 1}}]}


def test_a_cluster_without_a_cycle_has_none(ledger: Ledger) -> None:
    with reading(ledger.engine) as reader:
        assert latest_cycle(reader, CLUSTER, at_s=900) is None


def test_the_newest_cycle_up_to_an_instant_knows_nothing_of_later_ones(ledger: Ledger) -> None:
    ledger.append(told(600, issued("c1", supply_gpus=8)))
    ledger.append(told(900, issued("c2", supply_gpus=9)))
    with reading(ledger.engine) as reader:
        found = [latest_cycle(reader, CLUSTER, at_s=at_s) for at_s in (599, 600, 899, 900)]
    assert found == [None, {"supply_gpus": 8}, {"supply_gpus": 8}, {"supply_gpus": 9}]
