"""One cycle from real state: read in a snapshot, decided, recorded, queued for publication."""

import sqlalchemy as sa
from tests.integration.policy.worlds import NOON, World

from gpuledger.database.engine import reading, writing
from gpuledger.policy.kept import latest_cycle


def test_what_fits_starts_and_what_does_not_waits_with_a_reason(world: World) -> None:
    decisions = {d["workload"]: d for d in world.cycle()["decisions"]}
    assert decisions["w-b4"]["action"] == "start"
    assert decisions["w-b8"]["action"] == "wait"
    assert decisions["w-b8"]["reason"]


def test_a_dry_run_leaves_no_trace(world: World) -> None:
    record = world.cycle(dry_run=True)
    assert record["decisions"]
    with reading(world.engine) as reader:
        assert latest_cycle(reader, "c", at_s=NOON) is None
    with writing(world.engine) as writer:
        assert writer.scalar(sa.text("SELECT count(*) FROM ledger.outbox")) == 0


def test_the_same_state_gives_the_same_decisions(world: World) -> None:
    first, second = world.cycle(dry_run=True), world.cycle(dry_run=True)
    assert first == second
