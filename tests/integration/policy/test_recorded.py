"""What the policy decided for a workload, read back."""

from tests.integration.policy.worlds import NOON, World

from gpuledger.database.engine import reading, writing
from gpuledger.ledger import cycle_decisions, cycles
from gpuledger.policy.recorded import decision_of, whole


def test_the_decision_of_a_workload_is_that_of_the_newest_cycle_up_to_an_instant(world: World) -> None:
    early, late = world.cycle(), world.cycle(NOON + 60)
    with reading(world.engine) as reader:
        for at_s, record, decided_s in (
            (NOON + 3600, late, NOON + 60),
            (NOON + 59, early, NOON),
            (NOON + 60, late, NOON + 60),
        ):
            found = decision_of(reader, "c", "w-b8", at_s)
            assert found is not None
            (own,) = (d for d in record["decisions"] if d["workload"] == "w-b8")
            assert found == (record["cycle"], decided_s, own)
        assert decision_of(reader, "c", "w-b8", NOON - 1) is None


def test_a_workload_that_no_cycle_knew_has_no_decision(world: World) -> None:
    with reading(world.engine) as reader:
        assert decision_of(reader, "c", "w-b8", NOON) is None
    world.cycle()
    with reading(world.engine) as reader:
        assert decision_of(reader, "c", "nobody", NOON) is None


def test_decisions_that_are_kept_no_longer_are_made_again(world: World) -> None:
    record = world.cycle()
    with writing(world.engine) as writer:
        cycle_decisions.forget(writer, "c", NOON + 1, 0)
    with reading(world.engine) as reader:
        (own,) = (d for d in record["decisions"] if d["workload"] == "w-b8")
        assert decision_of(reader, "c", "w-b8", NOON) == (record["cycle"], NOON, own)
        found = cycles.latest(reader, "c", at_s=NOON)
        assert found is not None
        assert whole(reader, "c", found) == record
