"""A ledger, a clock that a test moves, and cycles in between."""

import datetime as dt
from typing import Any

import sqlalchemy as sa

from gpuledger.database.engine import reading, writing
from gpuledger.enforce.facts import Facts
from gpuledger.enforce.reading import read_facts
from gpuledger.events import host, workload
from gpuledger.events.budget import AllocationIssued, ShareSet
from gpuledger.events.envelope import make
from gpuledger.events.registry import Fact
from gpuledger.ingest.intake import Intake
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.clock import FixedClock, instant, iso, seconds
from gpuledger.ledger.append import append
from gpuledger.policy.service import issue_cycle

NOON = 1_796_040_000
HOUR = 3600
CALENDAR = Calendar()


class World:
    """A cluster in a ledger.

    Args:
        engine: The ledger.
        cluster: The cluster.
        hosts: Its hosts, of eight GPUs each.
        at_s: When it begins.
    """

    def __init__(
        self, engine: sa.Engine, cluster: str = "c", hosts: tuple[str, ...] = ("h1", "h2"), at_s: int = NOON
    ) -> None:
        self.engine, self.cluster, self.clock = engine, cluster, FixedClock(instant(at_s))
        self.intake = Intake(engine, self.clock, CALENDAR)
        self._count = 0
        for name in hosts:
            self.tell(at_s - 24 * HOUR, host.Registered(cluster=cluster, host=name, gpus=8, gpu_model="h100"))

    @property
    def now_s(self) -> int:
        return seconds(self.clock.now())

    def pass_time(self, length_s: int) -> None:
        self.clock.at += dt.timedelta(seconds=length_s)

    def tell(self, at_s: int, *facts: Fact, source: str = "test") -> None:
        """Book facts."""
        events = []
        for data in facts:
            self._count += 1
            events.append(make(id=f"{source}/{self._count}", source=source, at_s=at_s, data=data)[0])
        self.intake.take(events)

    def share(self, account: str, share: int) -> None:
        self.tell(0, ShareSet(account=account, share=share, reason="test", by="test"))

    def submit(self, name: str, account: str, gpus: int, *, minimum_s: int = HOUR) -> None:
        self.tell(
            self.now_s,
            workload.Submitted(
                cluster=self.cluster, workload=name, account=account, user="-", gpus_milli=gpus * 1000,
                minimum_runtime_s=minimum_s,
            ),
        )  # fmt: skip

    def start(self, name: str, run: str, gpus: int, *hosts: str, attempt: int = 1) -> None:
        self.tell(
            self.now_s,
            workload.Started(
                cluster=self.cluster, workload=name, run=run, attempt=attempt, gpus_milli=gpus * 1000,
                hosts=list(hosts),
            ),
        )  # fmt: skip

    def cycle(self, at_s: int | None = None) -> dict[str, Any]:
        return issue_cycle(
            self.engine,
            self.cluster,
            at_s=at_s or self.now_s,
            clock=self.clock,
            calendar=CALENDAR,
            dry_run=False,
        )

    def record(
        self, *decisions: dict[str, Any], allocations: tuple[dict[str, Any], ...], supply: int = 16
    ) -> str:
        """Book a cycle that says what a test wants it to; return its name."""
        name = f"{self.cluster}@{iso(instant(self.now_s))}#{self._count:012}"
        told = {
            "cluster": self.cluster, "cycle": name, "supply_gpus": supply, "allocations": list(allocations),
            "decisions": list(decisions), "reservations": [],
        }  # fmt: skip
        issued = AllocationIssued(
            cluster=self.cluster,
            cycle=name,
            sequences={},
            config_version="0" * 64,
            input_digest="0" * 64,
            record=told,
        )
        event, _ = make(id=f"cycle/{name}", source="gpuledger/policy", at_s=self.now_s, data=issued)
        with writing(self.engine) as writer:
            append(writer, self.cluster, [event], clock=self.clock, calendar=CALENDAR)
        return name

    def facts(self, scheduler: str = "slurm") -> Facts:
        with reading(self.engine) as reader:
            return read_facts(
                reader, self.cluster, self.now_s, scheduler=scheduler, calendar=CALENDAR, stale_after_s=600
            )
