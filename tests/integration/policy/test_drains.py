"""Drains in progress: who is still there, and by when the host is empty."""

from collections.abc import Iterator

import pytest
from tests.integration.policy.stories import NOON, World, event, small_cluster, started

from gpuledger.database.engine import reading
from gpuledger.events.host import StateChanged
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.errors import NotFound
from gpuledger.policy.agenda import Agenda, Kind
from gpuledger.policy.drains import Drain, drains
from gpuledger.policy.upcoming import upcoming


@pytest.fixture
def world(database_url: str) -> Iterator[World]:
    with small_cluster(database_url) as found:
        yield found


def agenda(world: World, at_s: int) -> Agenda:
    with reading(world.engine) as reader:
        return upcoming(reader, "c", at_s=at_s, calendar=Calendar())


def found(world: World, at_s: int, cluster: str | None = "c") -> list[Drain]:
    with reading(world.engine) as reader:
        return drains(reader, cluster, at_s=at_s)


def test_nothing_drains_until_somebody_says_so(world: World) -> None:
    assert found(world, NOON) == []
    with pytest.raises(NotFound, match="nowhere"):
        found(world, NOON, "nowhere")


def test_a_drain_names_who_is_there_and_agrees_with_the_calendar(world: World) -> None:
    world.cycle()
    world.take(started("w-b4", NOON, 4))
    fact = StateChanged(cluster="c", host="h1", gpus=10, gpu_model="H100", state="draining")
    world.take(event("drain", NOON + 30, fact))
    (drain,) = found(world, NOON + 60, None)
    told = drain.as_json()
    assert (told["cluster"], told["host"], told["gpus_milli"]) == ("c", "h1", 10_000)
    assert [(run["workload"], run["gpus_milli"]) for run in told["runs"]] == [("w-a", 6000), ("w-b4", 4000)]
    assert all(run["protected_until"] < told["empty_by"] for run in told["runs"])
    (entry,) = (one for one in agenda(world, NOON + 60).entries if one.kind is Kind.DRAIN)
    assert entry == drain.entry
