"""A small cluster in which things happen: what answers are tried on.

10 GPUs on one host since long ago. ``w-a`` of c/a holds 6 from 11:00 on, admitted for two hours; ``w-b4`` and ``w-b8``
of c/b wait with 4 and 8 since 11:30 and 11:45; ``w-old`` ran yesterday.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa

from gpuledger.database.engine import detached, make_engine, reading, writing
from gpuledger.events import host, workload
from gpuledger.events.budget import ShareSet
from gpuledger.events.envelope import Event, make
from gpuledger.events.registry import Fact
from gpuledger.ingest.intake import Intake
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.clock import FixedClock, instant
from gpuledger.ledger import admission
from gpuledger.policy.service import Issuing, issue_cycle
from gpuledger.policy.why import Why, why

HOUR = 3600
DAY = 24 * HOUR
NOON = 1_800_014_400
"""2027-01-15T12:00:00Z."""


def event(name: str, at_s: int, data: Fact) -> Event:
    return make(id=name, source="test", at_s=at_s, data=data)[0]


def submitted(name: str, account: str, at_s: int, gpus: int, **keys: Any) -> Event:  # noqa: ANN401
    given = {"minimum_runtime_s": HOUR, "cluster": "c", "user": "-", **keys}
    fact = workload.Submitted(workload=name, account=account, gpus_milli=gpus * 1000, **given)
    return event(f"{name}/submitted/{at_s}", at_s, fact)


def started(name: str, at_s: int, gpus: int, run: str = "1", attempt: int = 1, **keys: Any) -> Event:  # noqa: ANN401
    given = {"cluster": "c", "hosts": ["h1"], **keys}
    fact = workload.Started(workload=name, run=run, attempt=attempt, gpus_milli=gpus * 1000, **given)
    return event(f"{name}/started/{run}", at_s, fact)


def happened(kind: type[Fact], name: str, at_s: int, **keys: Any) -> Event:  # noqa: ANN401
    return event(f"{name}/{kind.__name__}/{at_s}", at_s, kind(cluster="c", workload=name, **keys))


@dataclass
class World:
    engine: sa.Engine
    intake: Intake
    clock: FixedClock

    def take(self, *events: Event) -> None:
        self.intake.take(list(events))

    def admit(self, name: str, at_s: int) -> None:
        self.clock.at = instant(at_s)
        with writing(self.engine) as writer:
            admission.admit(writer, "c", name, clock=self.clock, calendar=Calendar())
        self.clock.at = datetime(2027, 1, 16, tzinfo=UTC)

    def cycle(self, at_s: int = NOON) -> dict[str, Any]:
        return issue_cycle(self.engine, "c", at_s=at_s, clock=self.clock, calendar=Calendar())

    def led_cycle(self, at_s: int, every_s: int) -> dict[str, Any]:
        """Run a cycle as a leader does, which records its interval."""
        with detached(self.engine) as connection:
            return Issuing(connection, self.clock, Calendar(), every_s=every_s).issue("c", at_s).published

    def why(self, name: str, at_s: int = NOON, *, cluster: str | None = None, what_if: bool = False) -> Why:
        with reading(self.engine) as reader:
            return why(reader, name, cluster=cluster, at_s=at_s, what_if=what_if)


@contextmanager
def small_cluster(database_url: str) -> Iterator[World]:
    engine = make_engine(database_url)
    clock = FixedClock(datetime(2027, 1, 16, tzinfo=UTC))
    world = World(engine, Intake(engine, clock, Calendar()), clock)
    world.take(
        event("h", NOON - 30 * DAY, host.Registered(cluster="c", host="h1", gpus=10, gpu_model="x")),
        event("share", 0, ShareSet(account="c/b", share=1, reason="test", by="test")),
        submitted("w-old", "c/b", NOON - DAY, 10),
        started("w-old", NOON - DAY, 10),
        happened(workload.Ended, "w-old", NOON - DAY + 3 * HOUR, run="1", reason="completed"),
        submitted("w-a", "c/a", NOON - HOUR, 6, minimum_runtime_s=2 * HOUR),
    )
    world.admit("w-a", NOON - HOUR)
    world.take(
        started("w-a", NOON - HOUR, 6),
        submitted("w-b4", "c/b", NOON - 1800, 4),
        submitted("w-b8", "c/b", NOON - 900, 8),
    )
    yield world
    engine.dispose()
