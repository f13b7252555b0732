"""The queue in the order of the newest cycle, with the ratios that it was ordered by."""

from tests.integration.policy.worlds import NOON, World, decided, started, submitted

from gpuledger.database.engine import reading, writing
from gpuledger.ledger import cycle_decisions, cycles
from gpuledger.ledger.as_of import vector_of
from gpuledger.policy.queue import FORGOTTEN, Queue, queue


def read(world: World, now_s: int = NOON + 60) -> Queue:
    with reading(world.engine) as reader:
        return queue(reader, "c", now_s=now_s)


def test_who_waits_stands_in_the_cycles_order_with_the_ratios_of_the_path(world: World) -> None:
    record = world.cycle()
    found = read(world)
    order = [one["workload"] for one in record["decisions"] if one["action"] != "preempt"]
    assert [row.asked.workload for row in found.rows] == order
    assert [row.position for row in found.rows] == [1, 2, 3]
    assert (found.cycle, found.at_s, found.reason) == (record["cycle"], NOON, None)
    ratios = {row["account"]: row["ratio"] for row in record["allocations"]}
    assert found.rows[0].ratios == [("c", ratios["c"]), ("c/b", ratios["c/b"])]
    assert found.rows[0].asked.gpus_milli == 4000
    assert found.rows[0].decision == decided(record, "start")[0]


def test_who_came_since_has_no_place_and_who_runs_waits_no_more(world: World) -> None:
    world.cycle()
    world.intake.take([submitted("w-new", "c/b", NOON + 30, 1), started("w-b4", NOON + 40, 4)])
    found = read(world)
    assert [(row.asked.workload, row.position) for row in found.rows][-1] == ("w-new", None)
    assert "w-b4" not in {row.asked.workload for row in found.rows}
    assert found.rows[-1].decision is None


def test_without_a_cycle_and_without_its_decisions_it_is_said_that_nobody_has_a_place(world: World) -> None:
    before = read(world)
    assert (before.cycle, {row.position for row in before.rows}) == (None, {None})
    assert before.reason == "the policy has not run for this cluster"
    world.cycle()
    with writing(world.engine) as writer:
        newest = cycles.latest(writer, "c", at_s=NOON)  # type: ignore[arg-type] - reads alone
        assert newest is not None
        cycle_decisions.drop(writer, "c", newest.seq)
    after = read(world)
    assert (after.cycle, after.reason) == (newest.id, FORGOTTEN)
    assert {row.position for row in after.rows} == {None}
    assert [row.asked.workload for row in after.rows] == ["w-b4", "w-b8", "w-huge"]


def test_as_of_then_it_knows_nothing_of_what_came_since(world: World) -> None:
    world.cycle()
    with reading(world.engine) as reader:
        vector = vector_of(reader, None) or {}
        before = {**vector, "c": 5, "~org": 10**6}
        found = queue(reader, "c", now_s=NOON + 60, vector=before)
    assert found.cycle is None
    assert len(found.rows) < 3
