"""A cluster in a real ledger, and cycles of it."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa

from gpuledger.events import host, workload
from gpuledger.events.budget import ShareSet
from gpuledger.events.envelope import Event, make
from gpuledger.events.registry import Fact
from gpuledger.ingest.intake import Intake
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.clock import FixedClock
from gpuledger.policy.service import issue_cycle

HOUR = 3600
NOON = 1_800_000_000
CLOCK = FixedClock(datetime(2027, 1, 16, tzinfo=UTC))


def event(name: str, at_s: int, data: Fact) -> Event:
    return make(id=name, source="test", at_s=at_s, data=data)[0]


def submitted(name: str, account: str, at_s: int, gpus: int, cluster: str = "c") -> Event:
    fact = workload.Submitted(
        cluster=cluster,
        workload=name,
        account=account,
        user="-",
        gpus_milli=gpus * 1000,
        minimum_runtime_s=HOUR,
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


def contended(engine: sa.Engine) -> World:
    """10 GPUs; a uses 6 for an hour and goes on; b, entitled to as much, waits with 4 and with 8; huge asks 99."""
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
    return World(engine, intake)


def decided(record: dict[str, Any], action: str) -> list[dict[str, Any]]:
    return [decision for decision in record["decisions"] if decision["action"] == action]


def by_account(record: dict[str, object]) -> dict[str, dict[str, object]]:
    allocations = record["allocations"]
    assert isinstance(allocations, list)
    return {allocation["account"]: allocation for allocation in allocations}
