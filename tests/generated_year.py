"""A year of a cluster, made up from a seed: accounts, people, runs, waits, failures, samples, as events in time order.

Nothing is simulated: requests come by the hour of the day and the day of the week, and start first come, first served,
on hosts with room for them; a host that fails takes its runs with it. The same seed gives the same events.
"""

import heapq
import random
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count, islice

import sqlalchemy as sa

from gpuledger.database.engine import make_engine
from gpuledger.events import budget, host, workload
from gpuledger.events.envelope import Event, make
from gpuledger.events.registry import Fact
from gpuledger.ingest.intake import Intake
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.clock import FixedClock, instant

HOUR_S, DAY_S = 3_600, 86_400
HOST_GPUS = 8
SOURCE = "year/scheduler"
MINIMUM_RUNTIMES_S = (0, 2 * HOUR_S, 4 * HOUR_S, 8 * HOUR_S)
SIZES = (1, 1, 2, 4, 8, 8, 8, 16, 32)
BUSY = (0.6, 1.4)
"""How many requests come at night and at week-ends, and in working hours, as a part of the mean."""


@dataclass(frozen=True, slots=True)
class Year:
    """What is made up.

    Args:
        start_s: First second of the first day, since the epoch.
        days: How many days.
        hosts: Hosts of eight GPUs.
        accounts: Leaf accounts, three to a program.
        people: Users, spread over the accounts.
        runs_per_day: Requests a day, in the mean; hosts x 3.2 keep the cluster nearly full.
        seed: Of everything.
        cluster: Its name.
    """

    start_s: int
    days: int
    hosts: int
    runs_per_day: int
    accounts: int = 15
    people: int = 150
    seed: int = 1
    cluster: str = "year"

    @property
    def end_s(self) -> int:
        """The second after the last one."""
        return self.start_s + self.days * DAY_S

    @property
    def leaves(self) -> list[str]:
        """The accounts that work is booked to."""
        return [f"{self.cluster}/p{n // 3}/a{n}" for n in range(self.accounts)]


@dataclass(slots=True)
class _Request:
    name: str
    account: str
    user: str
    gpus: int
    minimum_s: int
    lasts_s: int
    hosts: list[int] = field(default_factory=list)


def events(year: Year) -> Iterator[Event]:
    """Yield the events of the cluster's book, in time order."""
    for n in range(year.hosts):
        yield _told(year.start_s, _registered(year, n))
    for account in year.leaves:
        for period in _periods(year):
            yield _told(year.start_s, _granted(year, account, period))
    yield from _Floor(year).events()


def shares(year: Year) -> Iterator[Event]:
    """Yield the events of the organisation's book: who has which share."""
    chance = random.Random(year.seed)
    for account in year.leaves:
        yield _told(
            year.start_s,
            budget.ShareSet(account=account, share=chance.choice((1, 2, 3)), reason="made up", by="test"),
        )


def book(url: str, year: Year, *, batch: int = 5_000) -> int:
    """Book the year as a worker would, and put a sample beside each hour of each GPU of a run; return its events."""
    engine = make_engine(url)
    intake = Intake(engine, FixedClock(instant(year.end_s)), Calendar())
    intake.take(list(shares(year)))
    total = 0
    told = events(year)
    while part := list(islice(told, batch)):
        intake.take(part)
        total += len(part)
    with engine.begin() as connection:
        connection.execute(sa.text(_SAMPLES), {"cluster": year.cluster})
        connection.execute(sa.text("ANALYZE"))
    engine.dispose()
    return total


class _Floor:
    """The machines and the queue in front of them."""

    def __init__(self, year: Year) -> None:
        self.year, self.chance = year, random.Random(year.seed)
        self.free = [HOST_GPUS] * year.hosts
        self.queue: deque[_Request] = deque()
        self.running: dict[str, _Request] = {}
        self.order = count()
        self.due: list[tuple[int, int, str, str]] = []

    def events(self) -> Iterator[Event]:
        self._arrivals()
        self._failures()
        while self.due:
            at_s, _, kind, what = heapq.heappop(self.due)
            if at_s >= self.year.end_s:
                return
            yield from getattr(self, f"_{kind}")(at_s, what)
            yield from self._start(at_s)

    def _at(self, at_s: int, kind: str, what: str) -> None:
        heapq.heappush(self.due, (at_s, next(self.order), kind, what))

    def _arrivals(self) -> None:
        number = count()
        for hour in range(self.year.days * 24):
            at_s = self.year.start_s + hour * HOUR_S
            weekday, clock = at_s // DAY_S % 7, hour % 24
            busy = BUSY[1] if 8 <= clock < 20 and weekday not in (2, 3) else BUSY[0]
            mean = self.year.runs_per_day / 24 * busy
            for _ in range(int(mean) + (self.chance.random() < mean % 1)):
                self._at(at_s + self.chance.randrange(HOUR_S), "submit", f"w{next(number)}")

    def _failures(self) -> None:
        for _ in range(self.year.days * self.year.hosts // 250):
            at_s = self.year.start_s + self.chance.randrange(self.year.days * DAY_S)
            self._at(at_s, "fail", str(self.chance.randrange(self.year.hosts)))

    def _submit(self, at_s: int, name: str) -> Iterator[Event]:
        chance = self.chance
        person = chance.randrange(self.year.people)
        gpus = min(chance.choice(SIZES), self.year.hosts * HOST_GPUS // 4)
        lasts_s = min(4 * DAY_S, 60 + int(chance.lognormvariate(9.6, 1.1)))
        account = self.year.leaves[person % self.year.accounts]
        asked = _Request(name, account, f"u{person}", gpus, chance.choice(MINIMUM_RUNTIMES_S), lasts_s)
        self.queue.append(asked)
        yield self._tell(
            at_s,
            workload.Submitted(
                cluster=self.year.cluster, workload=name, account=account, user=asked.user,
                gpus_milli=gpus * 1000, minimum_runtime_s=asked.minimum_s,
            ),
        )  # fmt: skip

    def _start(self, at_s: int) -> Iterator[Event]:
        while self.queue and (hosts := self._room(self.queue[0].gpus)):
            asked = self.queue.popleft()
            asked.hosts = hosts
            self.running[asked.name] = asked
            self._at(at_s + asked.lasts_s, "end", asked.name)
            yield self._tell(
                at_s,
                workload.Started(
                    cluster=self.year.cluster, workload=asked.name, run="r", attempt=1,
                    gpus_milli=asked.gpus * 1000, hosts=[_host(n) for n in hosts],
                ),
            )  # fmt: skip

    def _room(self, gpus: int) -> list[int]:
        """Take GPUs: whole hosts for wide requests, the fullest host with room for narrow ones."""
        each = min(gpus, HOST_GPUS)
        fits = [n for n, free in enumerate(self.free) if free >= each]
        if len(fits) * each < gpus:
            return []
        chosen = sorted(fits, key=self.free.__getitem__)[: gpus // each]
        for n in chosen:
            self.free[n] -= each
        return chosen

    def _end(self, at_s: int, name: str, reason: str = "completed") -> Iterator[Event]:
        asked = self.running.pop(name, None)
        if asked is None:
            return
        for n in asked.hosts:
            self.free[n] += min(asked.gpus, HOST_GPUS)
        yield self._tell(
            at_s, workload.Ended(cluster=self.year.cluster, workload=name, run="r", reason=reason)
        )

    def _fail(self, at_s: int, what: str) -> Iterator[Event]:
        n = int(what)
        if self.free[n] < 0:
            return  # it is down already
        for name in [name for name, asked in self.running.items() if n in asked.hosts]:
            yield from self._end(at_s, name, "node_fail")
        self.free[n] -= 10 * HOST_GPUS
        yield self._tell(at_s, self._state(n, "unhealthy"))
        self._at(at_s + self.chance.randrange(HOUR_S, 2 * DAY_S), "repair", what)

    def _repair(self, at_s: int, what: str) -> Iterator[Event]:
        self.free[int(what)] += 10 * HOST_GPUS
        yield self._tell(at_s, self._state(int(what), "healthy"))

    def _state(self, n: int, state: host.HostState) -> Fact:
        return host.StateChanged(
            cluster=self.year.cluster, host=_host(n), gpus=HOST_GPUS, gpu_model="H100", state=state
        )

    def _tell(self, at_s: int, fact: Fact) -> Event:
        return _told(at_s, fact, next(self.order))


def _told(at_s: int, fact: Fact, number: int | None = None) -> Event:
    name = f"{number}" if number is not None else f"{type(fact).__name__}/{fact}"
    return make(id=name, source=SOURCE, at_s=at_s, data=fact)[0]


def _registered(year: Year, n: int) -> host.Registered:
    return host.Registered(
        cluster=year.cluster, host=_host(n), gpus=HOST_GPUS, gpu_model="H100", state="healthy"
    )


def _granted(year: Year, account: str, period: str) -> budget.Granted:
    start_s, end_s = Calendar().period_bounds_s(period)
    whole = year.hosts * HOST_GPUS * 1000 * (end_s - start_s)
    return budget.Granted(
        account=account, cluster=year.cluster, period=period, gpu_ms=whole // year.accounts, reason="made up", by="test"
    )  # fmt: skip


def _periods(year: Year) -> list[str]:
    return Calendar().periods_between(year.start_s, year.end_s)


def _host(n: int) -> str:
    return f"h{n:03}"


_SAMPLES = """
    INSERT INTO telemetry.buckets (book, bucket_at, gpu, workload, run, rung, sampled_gpu_ms, used_gpu_upms)
    SELECT book, bucket_at, workload || '/' || gpu, workload, run, 'gpu_util', 300000,
           300000::bigint * 10000 * abs(hashint8(extract(epoch FROM bucket_at)::bigint + id + gpu) % 101)
    FROM ledger.segments
    CROSS JOIN LATERAL generate_series(
        date_bin('1 hour', from_at + interval '1 hour', 'epoch'), to_at - interval '5 minutes', '1 hour'
    ) AS bucket_at
    CROSS JOIN LATERAL generate_series(1, gpus_milli / 1000) AS gpu
    WHERE book = :cluster AND until_seq IS NULL AND to_at IS NOT NULL
"""
