"""A story of a small cluster, drawn at random: facts as an engine would tell them, without a policy behind them."""

import random
from collections.abc import Iterator
from dataclasses import dataclass, field

from gpuledger.policy.placement import HostState, Room
from gpuledger.simulator.facts import (
    Cancelled,
    Departure,
    Fact,
    HostChanged,
    HostCondition,
    Left,
    Started,
    Submitted,
    Told,
)
from gpuledger.simulator.jobs import Job
from gpuledger.simulator.scenario import AccountSpec, HostSpec

START_S = 1_799_971_200
"""A midnight."""
HOUR_S = 3_600
CAP_S = 2 * HOUR_S
"""The protection cap of those who play a story."""
HOSTS = tuple(
    HostSpec(host=f"h{number}", gpus_milli=8_000, gpu_model="H100" if number < 4 else "B200")
    for number in range(6)
)
ACCOUNTS = (
    AccountSpec(account="org/vision/a", share=3),
    AccountSpec(account="org/vision/b", share=1),
    AccountSpec(account="org/text", share=2),
    AccountSpec(account="org/none", share=0),
)
OWNERS = (*(spec.account for spec in ACCOUNTS), "org/vision")
"""Who asks: an inner node, too, whose own work has no share."""
UNFUNDED = ("org/none", "org/vision")


@dataclass
class Story:
    """What goes on.

    Args:
        rng: Draws it.
        longest_s: The longest time between two facts.
    """

    rng: random.Random
    longest_s: int = 900
    at_s: int = START_S
    number: int = 0
    waiting: dict[str, tuple[Job, int]] = field(default_factory=dict)
    running: dict[str, tuple[Job, Started]] = field(default_factory=dict)
    condition: dict[str, HostCondition] = field(
        default_factory=lambda: {spec.host: HostCondition.HEALTHY for spec in HOSTS}
    )

    def facts(self, until_s: int) -> Iterator[Fact]:
        """Yield what happens up to an instant."""
        while (at_s := self.at_s + self.rng.randrange(self.longest_s)) < until_s:
            self.at_s = at_s
            turn = self.rng.choices(
                (self._submit, self._start, self._leave, self._tell, self._cancel, self._break),
                (9, 9, 5, 1, 1, 1),
            )[0]
            yield from turn()
        self.at_s = until_s

    def _submit(self) -> Iterator[Fact]:
        self.number += 1
        job = Job(
            job=f"w{self.number:04}",
            account=self.rng.choice(OWNERS),
            user="-",
            gpus_milli=1_000 * self.rng.choice((1, 1, 2, 4, 8, 16, 64)),
            submitted_s=self.at_s,
            work_s=HOUR_S,
            minimum_runtime_s=self.rng.choice((0, 600, HOUR_S, CAP_S, 2 * CAP_S)),
            priority=self.rng.randrange(3),
            gpu_model=self.rng.choice((None, None, "h100", "B200", "A100")),
        )
        self.waiting[job.job] = job, 0
        yield Submitted(at_s=self.at_s, job=job)

    def _start(self) -> Iterator[Fact]:
        hosts = [
            HostState(host=spec.host, gpus_milli=spec.gpus_milli, gpu_model=spec.gpu_model)
            for spec in HOSTS
            if self.condition[spec.host] is HostCondition.HEALTHY
        ]
        room = Room(hosts, [started.placement for _, started in self.running.values()])
        for name in sorted(self.waiting):
            job, runs = self.waiting[name]
            model = {"h100": "H100"}.get(job.gpu_model or "", job.gpu_model)
            placement = room.fit(job.gpus_milli, model)
            if placement is not None:
                charged = job.minimum_runtime_s > 0 and job.account not in (
                    "org/none",
                    "org/vision",
                    "org/guest",
                )
                started = Started(
                    at_s=self.at_s,
                    job=name,
                    run=runs + 1,
                    placement=placement,
                    klass="allocated" if charged else "unallocated",
                    protected_s=min(job.minimum_runtime_s, CAP_S) if charged else 0,
                )
                del self.waiting[name]
                self.running[name] = job, started
                yield started
                return

    def _leave(self) -> Iterator[Fact]:
        if self.running:
            name = self.rng.choice(sorted(self.running))
            why = self.rng.choice((Departure.DONE, Departure.DONE, Departure.PREEMPTED))
            yield self._left(name, why, requeued=why is Departure.PREEMPTED)

    def _tell(self) -> Iterator[Fact]:
        if self.running:
            name = self.rng.choice(sorted(self.running))
            yield Told(at_s=self.at_s, job=name, run=self.running[name][1].run, leaves_s=self.at_s + 60)

    def _cancel(self) -> Iterator[Fact]:
        if self.waiting:
            name = self.rng.choice(sorted(self.waiting))
            del self.waiting[name]
            yield Cancelled(at_s=self.at_s, job=name)

    def _break(self) -> Iterator[Fact]:
        host = self.rng.choice(sorted(self.condition))
        others = [condition for condition in HostCondition if condition is not self.condition[host]]
        condition = self.condition[host] = self.rng.choice(others)
        yield HostChanged(at_s=self.at_s, host=host, condition=condition)
        if condition is HostCondition.DOWN:
            hit = [name for name, (_, started) in self.running.items() if host in started.placement]
            for name in sorted(hit):
                yield self._left(name, Departure.HOST_FAILED, requeued=self.rng.random() < 0.8)

    def _left(self, name: str, why: Departure, *, requeued: bool) -> Left:
        job, started = self.running.pop(name)
        ran_s = self.at_s - started.at_s
        loading_s = min(30, ran_s)
        kept_s = self.rng.choice((0, (ran_s - loading_s) // 2))
        if requeued:
            self.waiting[name] = job, started.run
        return Left(
            at_s=self.at_s,
            job=name,
            run=started.run,
            why=why,
            requeued=requeued,
            kept_s=kept_s,
            lost_s=ran_s - loading_s - kept_s,
            loading_s=loading_s,
            idle_s=0,
        )
