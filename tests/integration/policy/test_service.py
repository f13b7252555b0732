"""One cycle from real state: read in a snapshot, decided, recorded, queued for publication."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
import sqlalchemy as sa

from gpuledger.database.engine import make_engine, reading, writing
from gpuledger.events import host, workload
from gpuledger.events.budget import ShareSet
from gpuledger.events.envelope import Event, decode, make
from gpuledger.events.registry import Fact
from gpuledger.ingest.intake import Intake
from gpuledger.ingest.relay import relay
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.clock import FixedClock
from gpuledger.kernel.errors import NotFound, Refused
from gpuledger.ledger import audit, cycles
from gpuledger.policy.service import issue_cycle
from gpuledger.streams.files import FileBroker
from gpuledger.streams.topics import ALLOCATIONS

HOUR = 3600
NOON = 1_800_000_000
CLOCK = FixedClock(datetime(2027, 1, 16, tzinfo=UTC))


def event(name: str, at_s: int, data: Fact) -> Event:
    return make(id=name, source="test", at_s=at_s, data=data)[0]


def submitted(name: str, account: str, at_s: int, gpus: int) -> Event:
    fact = workload.Submitted(
        cluster="c", workload=name, account=account, user="-", gpus_milli=gpus * 1000, minimum_runtime_s=HOUR
    )
    return event(f"{name}/submitted", at_s, fact)


def started(name: str, at_s: int, gpus: int, *hosts: str) -> Event:
    fact = workload.Started(
        cluster="c", workload=name, run="1", attempt=1, gpus_milli=gpus * 1000, hosts=list(hosts)
    )
    return event(f"{name}/started", at_s, fact)


@dataclass
class World:
    engine: sa.Engine
    intake: Intake

    def cycle(self, at_s: int = NOON, *, dry_run: bool = False) -> dict[str, Any]:
        return issue_cycle(self.engine, "c", at_s=at_s, clock=CLOCK, calendar=Calendar(), dry_run=dry_run)


@pytest.fixture
def world(database_url: str) -> Iterator[World]:
    """10 GPUs; a uses 6 for an hour and goes on; b, entitled to as much, waits with 4 and with 8; huge asks 99."""
    engine = make_engine(database_url)
    intake = Intake(engine, CLOCK, Calendar())
    intake.take(
        [
            event(
                "h", NOON - 30 * 24 * HOUR, host.Registered(cluster="c", host="h1", gpus=10, gpu_model="x")
            ),
            event("share", 0, ShareSet(account="c/b", share=1, reason="test", by="test")),
            submitted("w-a", "c/a", NOON - HOUR, 6),
            started("w-a", NOON - HOUR, 6),
            submitted("w-b4", "c/b", NOON - 1800, 4),
            submitted("w-b8", "c/b", NOON - 900, 8),
            submitted("w-huge", "c/a", NOON - 900, 99),
        ]
    )
    yield World(engine, intake)
    engine.dispose()


def decided(record: dict[str, Any], action: str) -> list[dict[str, Any]]:
    return [decision for decision in record["decisions"] if decision["action"] == action]


def by_account(record: dict[str, object]) -> dict[str, dict[str, object]]:
    allocations = record["allocations"]
    assert isinstance(allocations, list)
    return {allocation["account"]: allocation for allocation in allocations}


def test_use_entitlement_and_demand_come_from_the_ledger(world: World) -> None:
    record = world.cycle()
    found = by_account(record)
    assert record["supply_gpus"] == 10
    assert found["c/a"]["used_gpu_ms"] == 6 * HOUR * 1000
    assert found["c/b"]["used_gpu_ms"] == 0
    assert found["c/a"]["entitled_gpu_ms"] == found["c/b"]["entitled_gpu_ms"] == 5 * 7 * 24 * HOUR * 1000
    assert (found["c/a"]["demand_gpus"], found["c/b"]["demand_gpus"]) == (6, 12)


def test_a_workload_larger_than_the_cluster_is_no_demand(world: World) -> None:
    assert by_account(world.cycle())["c/a"]["demand_gpus"] == 6


def test_what_fits_starts_and_what_does_not_waits_with_a_reason(world: World) -> None:
    decisions = {d["workload"]: d for d in world.cycle()["decisions"]}
    assert decisions["w-b4"]["action"] == "start"
    assert decisions["w-b8"]["action"] == "wait"
    assert decisions["w-b8"]["reason"]


def test_a_cycle_is_journalled_published_and_read_back(world: World, tmp_path: object) -> None:
    record = world.cycle()
    with reading(world.engine) as reader:
        assert cycles.latest_cycle(reader, "c") == record
        assert audit.verify(reader).ok
    from pathlib import Path

    broker = FileBroker(Path(str(tmp_path)))
    assert relay(world.engine, broker, CLOCK) == 1
    assert relay(world.engine, broker, CLOCK) == 0
    subscriber = broker.subscriber(ALLOCATIONS)
    subscriber.assign({0: 0})
    (published,) = subscriber.poll(10, 1.0)
    assert msgspec.to_builtins(decode(published.value).data)["record"] == record


def test_a_dry_run_leaves_no_trace(world: World) -> None:
    record = world.cycle(dry_run=True)
    assert record["decisions"]
    with reading(world.engine) as reader:
        assert cycles.latest_cycle(reader, "c") is None
    with writing(world.engine) as writer:
        assert writer.scalar(sa.text("SELECT count(*) FROM ledger.outbox")) == 0


def test_reservations_are_recorded_and_the_next_cycle_keeps_them(world: World) -> None:
    # w-b4 starts now with a minimum runtime of an hour; w-b8 needs what it has, and what w-a has.
    kept = {
        "workload": "w-b8", "hosts": {"h1": 8000}, "at": "2027-01-15T09:00:00Z", "kind": "bound", "leaving": [],
    }  # fmt: skip
    assert world.cycle()["reservations"] == [kept]
    world.intake.take([started("w-b4", NOON, 4, "h1")])
    assert world.cycle(NOON + 60)["reservations"] == [kept]
    due = world.cycle(NOON + HOUR)
    leaving = [{"workload": "w-a", "run": "1"}, {"workload": "w-b4", "run": "1"}]
    promise = {**kept, "at": "2027-01-15T09:01:00Z", "kind": "promise", "leaving": leaving}
    assert due["reservations"] == [promise]
    assert [{"workload": d["workload"], "run": d["run"]} for d in decided(due, "preempt")] == leaving
    assert world.cycle(NOON, dry_run=True)["reservations"] == [kept]


def test_a_draining_host_takes_nothing_and_sends_away_what_is_past_its_protection(world: World) -> None:
    old = host.StateChanged(cluster="c", host="h2", gpus=8, gpu_model="x", state="draining")
    world.intake.take(
        [
            event("h2", NOON - HOUR, host.Registered(cluster="c", host="h2", gpus=8, gpu_model="x")),
            submitted("w-old", "c/a", NOON - 2 * HOUR, 2), started("w-old", NOON - 2 * HOUR, 2, "h2"),
            submitted("w-new", "c/a", NOON - HOUR, 2), started("w-new", NOON - 60, 2, "h2"),
            event("old", NOON - 60, old),
        ]
    )  # fmt: skip
    record = world.cycle()
    assert record["supply_gpus"] == 10
    assert [d["workload"] for d in decided(record, "preempt")] == ["w-old"]
    assert [d["hosts"] for d in decided(record, "start")] == [{"h1": 4000}]


def test_a_model_is_the_same_in_any_spelling_and_another_model_is_no_demand(world: World) -> None:
    for name, model in (("w-X", "X"), ("w-y", "y")):
        asked = workload.Submitted(
            cluster="c", workload=name, account="c/z", user="-", gpus_milli=1000, gpu_model=model,
            minimum_runtime_s=HOUR,
        )  # fmt: skip
        world.intake.take([event(f"{name}/submitted", NOON - 60, asked), event("z", 0, ShareSet(
            account="c/z", share=9, reason="test", by="test"))])  # fmt: skip
    record = world.cycle()
    assert by_account(record)["c/z"]["demand_gpus"] == 1
    assert {d["workload"]: d["action"] for d in record["decisions"] if d["workload"] in ("w-X", "w-y")} == {
        "w-X": "start", "w-y": "wait",
    }  # fmt: skip


def test_the_same_state_gives_the_same_decisions(world: World) -> None:
    first, second = world.cycle(dry_run=True), world.cycle(dry_run=True)
    assert first == second


def test_an_unknown_cluster_is_named_with_the_known_ones(world: World) -> None:
    with pytest.raises(NotFound, match="nowhere") as caught:
        issue_cycle(world.engine, "nowhere", at_s=NOON, clock=CLOCK, calendar=Calendar())
    assert "c" in caught.value.hint


def test_a_cluster_without_gpus_says_where_to_name_them(world: World) -> None:
    with pytest.raises(Refused, match="no healthy GPUs") as caught:
        issue_cycle(world.engine, "c", at_s=HOUR, clock=CLOCK, calendar=Calendar())
    assert "budget apply" in caught.value.hint
