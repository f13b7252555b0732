"""The record of a cycle: journalled, queued, published, read back."""

from pathlib import Path

import msgspec
from tests.integration.policy.worlds import CLOCK, World

from gpuledger.database.engine import reading
from gpuledger.events.envelope import decode
from gpuledger.ingest.relay import relay
from gpuledger.ledger import audit, cycles
from gpuledger.streams.files import FileBroker
from gpuledger.streams.topics import ALLOCATIONS


def test_a_cycle_is_journalled_published_and_read_back(world: World, tmp_path: Path) -> None:
    record = world.cycle()
    with reading(world.engine) as reader:
        assert cycles.latest_cycle(reader, "c") == record
        assert audit.verify(reader).ok
    broker = FileBroker(tmp_path)
    assert relay(world.engine, broker, CLOCK) == 1
    assert relay(world.engine, broker, CLOCK) == 0
    subscriber = broker.subscriber(ALLOCATIONS)
    subscriber.assign({0: 0})
    (published,) = subscriber.poll(10, 1.0)
    assert msgspec.to_builtins(decode(published.value).data)["record"] == record
