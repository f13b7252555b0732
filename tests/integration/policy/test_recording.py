"""The record of a cycle: journalled, queued, published, read back."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
import sqlalchemy as sa
from tests.integration.policy.worlds import CLOCK, HOUR, NOON, World, submitted

from gpuledger.database.engine import reading, writing
from gpuledger.events.envelope import decode
from gpuledger.ingest.relay import relay
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.knobs import PolicyConfig
from gpuledger.ledger import audit, cycle_decisions, cycles, outbox, rebuild
from gpuledger.policy.kept import latest_cycle
from gpuledger.policy.placement import HostState
from gpuledger.policy.recording import input_digest
from gpuledger.policy.replaying import replay
from gpuledger.policy.state import ClusterState
from gpuledger.streams.files import FileBroker
from gpuledger.streams.topics import ALLOCATIONS


def test_a_cycle_is_journalled_published_and_read_back(world: World, tmp_path: Path) -> None:
    record = world.cycle()
    with reading(world.engine) as reader:
        assert latest_cycle(reader, "c", at_s=NOON) == record
        assert audit.verify(reader).ok
    broker = FileBroker(tmp_path)
    assert relay(world.engine, broker, CLOCK) == 1
    assert relay(world.engine, broker, CLOCK) == 0
    subscriber = broker.subscriber(ALLOCATIONS)
    subscriber.assign({0: 0})
    (published,) = subscriber.poll(10, 1.0)
    orders = [decision for decision in record["decisions"] if decision["action"] != "wait"]
    assert len(orders) == 1
    assert msgspec.to_builtins(decode(published.value).data)["record"] == {**record, "decisions": orders}


def test_of_one_instant_one_cycle_is_recorded_and_whoever_comes_later_is_told_that_one(world: World) -> None:
    first = world.cycle()
    world.intake.take([submitted("w-late", "c/b", NOON - 60, 1)])
    assert world.cycle() == first
    with reading(world.engine) as reader:
        assert (
            reader.scalar(sa.text("SELECT count(*) FROM ledger.journal WHERE type = 'allocation.issued'"))
            == 1
        )


def test_two_at_once_record_one(world: World) -> None:
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: world.cycle(), range(4)))
    assert all(record == found[0] for record in found)
    with writing(world.engine) as writer:
        assert len(outbox.waiting(writer, 10)) == 1


def test_the_journal_holds_orders_and_a_digest_of_all_decisions(world: World) -> None:
    record = world.cycle()
    with reading(world.engine) as reader:
        found = cycles.latest(reader, "c", at_s=NOON)
        assert found is not None
        assert [d["action"] for d in found.issued.record["decisions"]] == ["start"]
        assert found.issued.waiting == len(record["decisions"]) - 1 == 2
        assert replay(reader, record["cycle"]).decisions_digest == found.issued.decisions_digest
        assert found.issued.config["window_s"] == 7 * 24 * HOUR


def test_kept_decisions_that_the_journal_does_not_stand_for_are_named_and_dropped(world: World) -> None:
    record = world.cycle()
    with reading(world.engine) as reader:
        assert rebuild.check(reader, Calendar()).differences == ()
        found = cycles.latest(reader, "c", at_s=NOON)
        assert found is not None
        (kept,) = cycle_decisions.every(reader, "c", found.seq)
    forged = [kept.replace(b'"start"', b'"wait"')]
    assert forged != [kept]
    with writing(world.engine) as writer:
        cycle_decisions.drop(writer, "c", found.seq)
        cycle_decisions.keep(writer, "c", found.seq, found.at_s, forged)
        cycle_decisions.keep(writer, "c", found.seq + 1, found.at_s, forged)
    with reading(world.engine) as reader:
        told = [f"decisions not in the journal: c\t{seq}" for seq in (found.seq, found.seq + 1)]
        assert list(rebuild.check(reader, Calendar()).differences) == told
    with writing(world.engine) as writer:
        rebuild.rebuild(writer, Calendar())
    with reading(world.engine) as reader:
        assert rebuild.check(reader, Calendar()).ok
        assert replay(reader, record["cycle"]).ok


@pytest.mark.parametrize(
    "change", ["cycle = 'c@made-up'", "decided_at = decided_at - interval '1 h'", "cycles = 9"]
)
def test_a_newest_cycle_that_was_never_recorded_is_named(world: World, change: str) -> None:
    world.cycle()
    with reading(world.engine) as reader:
        assert rebuild.check(reader, Calendar()).ok
    with world.engine.begin() as connection:
        connection.exec_driver_sql(f"UPDATE ledger.policy_status SET {change}")
    with reading(world.engine) as reader:
        (told,) = rebuild.check(reader, Calendar()).differences
    assert told.startswith("newest cycle not in the journal: c\tc@")


def test_an_input_of_before_states_told_the_largest_host_and_who_leaves_is_named_as_it_was() -> None:
    """The digest is that of the code of then, on the same state: what was recorded under it can be replayed."""
    then = "76e400eaadf07dc1adb096d5f963bba59ce304efb8716f168ef4b3a29c940bf7"
    config = PolicyConfig(victims="most-used")
    host = HostState(host="h", gpus_milli=8000, gpu_model="x")
    state = ClusterState(
        cluster="c",
        at_s=100,
        healthy_milli=8000,
        capacity_window_gpu_ms=1,
        hosts=(host,),
        shared_milli=8000,
    )
    largest = replace(state, largest_host_milli=8000)
    assert input_digest(state, config, {"c": 1}) == input_digest(largest, config, {"c": 1}) == then
    larger = replace(state, largest_host_milli=16_000)
    assert input_digest(larger, config, {"c": 1}) != then
    assert input_digest(state, PolicyConfig(), {"c": 1}) != then
