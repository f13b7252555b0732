"""Recorded cycles, read back with their sentences."""

from tests.integration.policy.worlds import NOON, World, decided, event

from gpuledger.database.engine import reading, writing
from gpuledger.events.budget import AllocationIssued
from gpuledger.ledger import cycle_decisions, cycles
from gpuledger.policy.kept import decisions_of, latest_cycle, of_workload


def issued(at_s: int, **record: object) -> AllocationIssued:
    return AllocationIssued(
        cluster="c",
        cycle=f"c@{at_s}",
        sequences={"c": 1},
        config_version="1",
        input_digest="d",
        record=record,
    )


def book(world: World, *cycles: tuple[int, AllocationIssued]) -> None:
    world.intake.take([event(one.cycle, at_s, one) for at_s, one in cycles])


def test_the_newest_cycle_is_returned_whole(world: World) -> None:
    orders = [{"workload": "w1", "numbers": {"a": 1}}]
    book(world, (900, issued(900, supply_gpus=8)), (600, issued(600, supply_gpus=9, decisions=orders)))
    with reading(world.engine) as reader:
        assert latest_cycle(reader, "c", at_s=899) == {"supply_gpus": 9, "decisions": orders}


def test_a_cluster_without_a_cycle_has_none(world: World) -> None:
    with reading(world.engine) as reader:
        assert latest_cycle(reader, "c", at_s=900) is None


def test_the_newest_cycle_up_to_an_instant_knows_nothing_of_later_ones(world: World) -> None:
    book(world, (600, issued(600, supply_gpus=8)), (900, issued(900, supply_gpus=9)))
    with reading(world.engine) as reader:
        found = [latest_cycle(reader, "c", at_s=at_s) for at_s in (599, 600, 899, 900)]
    assert found == [None, {"supply_gpus": 8}, {"supply_gpus": 8}, {"supply_gpus": 9}]


def test_decisions_to_wait_come_back_while_they_are_kept_and_are_not_too_many(world: World) -> None:
    record = world.cycle()
    assert len(decided(record, "wait")) == 2
    with reading(world.engine) as reader:
        assert latest_cycle(reader, "c", at_s=NOON) == record
        assert latest_cycle(reader, "c", at_s=NOON, waiting_max=2) == record
        few = latest_cycle(reader, "c", at_s=NOON, waiting_max=1)
        assert few == {**record, "decisions": decided(record, "start")}
        newest = cycles.latest(reader, "c", at_s=NOON)
        assert newest is not None
        own = [one for one in record["decisions"] if one["workload"] == "w-b8"]
        assert of_workload(reader, "c", newest.seq, "w-b8") == own != []
        assert of_workload(reader, "c", newest.seq, "nobody") == []
    with writing(world.engine) as writer:
        cycle_decisions.drop(writer, "c", newest.seq)
    with reading(world.engine) as reader:
        assert of_workload(reader, "c", newest.seq, "w-b8") is None
        assert decisions_of(reader, "c", newest) is None
        assert latest_cycle(reader, "c", at_s=NOON) == few
