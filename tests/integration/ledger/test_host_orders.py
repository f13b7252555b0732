"""What is asked of hosts by others than their scheduler."""

from collections.abc import Iterator

import pytest
from tests.integration.enforce.worlds import NOON, World

from gpuledger.database.engine import make_engine, reading
from gpuledger.events.host import HostState, StateChanged
from gpuledger.ledger.host_orders import host_orders


@pytest.fixture
def world(database_url: str) -> Iterator[World]:
    engine = make_engine(database_url)
    yield World(engine)
    engine.dispose()


def said(world: World, host: str, state: HostState, at_s: int, source: str) -> None:
    told = StateChanged(cluster="c", host=host, gpus=8, gpu_model="h100", state=state)
    world.tell(at_s, told, source=source)


def orders(world: World, at_s: int = NOON) -> dict[str, bool]:
    with reading(world.engine) as reader:
        return host_orders(reader, "c", "slurm", at_s)


def test_the_schedulers_own_word_is_no_order_to_it(world: World) -> None:
    said(world, "h1", "draining", NOON - 50, "slurm/c")
    assert orders(world) == {}

    said(world, "h1", "draining", NOON - 100, "repairs/desk")
    said(world, "h1", "healthy", NOON - 40, "slurm/c")
    assert orders(world) == {"h1": True}


def test_a_host_that_is_reserved_is_not_to_be_emptied(world: World) -> None:
    said(world, "h1", "reserved", NOON - 50, "gpuledger/health")
    assert orders(world) == {"h1": False}


def test_the_last_word_counts_and_what_is_to_come_does_not_yet(world: World) -> None:
    said(world, "h1", "draining", NOON - 100, "repairs/desk")
    said(world, "h2", "unhealthy", NOON - 100, "xid/watch")
    said(world, "h1", "healthy", NOON - 10, "xid/watch")
    said(world, "h1", "maintenance", NOON + 10, "repairs/desk")

    assert orders(world) == {"h1": False, "h2": True}
    assert orders(world, NOON + 10) == {"h1": True, "h2": True}
