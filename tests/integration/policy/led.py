"""A cluster that a process leads, step by step."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import sqlalchemy as sa
from tests.integration.policy.worlds import HOUR, NOON, event

from gpuledger.database.engine import make_engine, reading
from gpuledger.events import host, workload
from gpuledger.events.budget import ShareSet
from gpuledger.events.envelope import Event
from gpuledger.events.registry import Fact
from gpuledger.ingest.intake import Intake
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.clock import FixedClock, instant, seconds
from gpuledger.ledger import cycles
from gpuledger.policy.leading import Leading, Terms

DAY = 24 * HOUR


def submitted(name: str, account: str, at_s: int, gpus: int, minimum_s: int = HOUR) -> Event:
    fact = workload.Submitted(
        cluster="c",
        workload=name,
        account=account,
        user="-",
        gpus_milli=gpus * 1000,
        minimum_runtime_s=minimum_s,
    )
    return event(f"{name}/submitted/{at_s}", at_s, fact)


@dataclass
class Led:
    """A cluster of two hosts of 8 GPUs, and who leads it; each step takes a second."""

    engine: sa.Engine
    clock: FixedClock
    process: Leading
    connection: sa.Connection
    told: int = field(default=0)

    def take(self, *events: Event) -> None:
        Intake(self.engine, self.clock, Calendar()).take(list(events))

    def tell(self, *facts: Fact, ago_s: int = 0) -> None:
        self.told += 1
        self.take(*(event(f"{self.told}/{n}", self.now_s - ago_s, fact) for n, fact in enumerate(facts)))

    def submit(self, name: str, gpus: int, account: str = "c/b") -> None:
        """Submit work that ends before the reservation begins."""
        self.take(submitted(name, account, self.now_s, gpus, minimum_s=600))

    def start(self, name: str, gpus: int, *hosts: str, **keys: Any) -> None:  # noqa: ANN401
        fact = workload.Started(
            cluster="c", workload=name, run="1", attempt=1, gpus_milli=gpus * 1000, hosts=list(hosts), **keys
        )
        self.tell(fact)

    def turn(self, after_s: int = 1) -> None:
        self.clock.at += timedelta(seconds=after_s)
        self.process.turn(self.connection)

    @property
    def now_s(self) -> int:
        return seconds(self.clock.now())

    @property
    def recorded(self) -> list[tuple[str, int]]:
        """What was recorded, in order: cycles and amendments, each with its instant after noon."""
        with reading(self.engine) as reader:
            rows = reader.execute(
                sa.text(
                    "SELECT type, extract(epoch FROM effective_at)::bigint FROM ledger.journal"
                    " WHERE type LIKE 'allocation.%' ORDER BY seq"
                )
            )
            return [(type_.removeprefix("allocation."), at_s - NOON) for type_, at_s in rows]

    def word(self) -> cycles.Word:
        with reading(self.engine) as reader:
            found = cycles.newest_word(reader, "c", at_s=self.now_s)
        assert found is not None
        return found


@contextmanager
def a_cluster(database_url: str) -> Iterator[Led]:
    engine, clock = make_engine(database_url), FixedClock(instant(NOON))
    process = Leading(engine, clock, Calendar(), Terms(clusters=("c",)))
    with process._session() as connection:
        led = Led(engine, clock, process, connection)
        registered = (host.Registered(cluster="c", host=name, gpus=8, gpu_model="x") for name in ("h1", "h2"))
        led.tell(*registered, ago_s=30 * DAY)
        led.take(
            event("share", 0, ShareSet(account="c/b", share=1, reason="test", by="test")),
            submitted("w-a", "c/a", NOON - 60, 8),
            submitted("w-large", "c/a", NOON - 50, 16),
            submitted("w-b", "c/b", NOON - 40, 4),
        )
        yield led
    engine.dispose()


def hosts_of(led: Led, name: str) -> str:
    """Return on which host a workload was ordered to start."""
    (where,) = (d["hosts"] for d in led.word().record["decisions"] if d["workload"] == name)
    (found,) = where
    return str(found)


def an_end(led: Led) -> None:
    led.tell(workload.Ended(cluster="c", workload="w-a", run="1", reason="completed"))


def a_share(led: Led) -> None:
    led.tell(ShareSet(account="c/a", share=9, reason="test", by="test"))


def cycles_of(led: Led) -> list[cycles.Amendment]:
    with reading(led.engine) as reader:
        rows = reader.execute(
            sa.text(
                "SELECT body->>'cycle' FROM ledger.journal WHERE type = 'allocation.amended' ORDER BY seq"
            )
        )
        found = [cycles.find_amendment(reader, name) for (name,) in rows.fetchall()]
    return [one for one in found if one is not None]
