"""Every measure equals what counting second by second gives."""

import random
from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.property.simulator.oracle import Oracle
from tests.unit.simulator.stories import DAY_S, START_S, host, left, scenario, started, submitted

from gpuledger.simulator.facts import Cancelled, Departure, Fact, HostCondition, Reserved, UserAsked
from gpuledger.simulator.measures import measure
from gpuledger.simulator.scenario import AccountSpec, Scenario

ACCOUNTS = (AccountSpec(account="org/a", share=3), AccountSpec(account="org/b", share=4))
HOSTS, GPUS = 3, 4


class Story:
    """Anything that can happen on a tiny cluster, in any order that an engine could tell."""

    def __init__(self, draw: random.Random, scenario: Scenario, moments: int) -> None:
        self.draw, self.facts = draw, list[Fact]()
        self.free = {h.host: GPUS for h in scenario.hosts}
        self.condition = dict.fromkeys(self.free, HostCondition.HEALTHY)
        self.waiting: dict[str, int] = {}
        self.running: dict[str, tuple[dict[str, int], int]] = {}
        self.sizes: dict[str, int] = {}
        self.runs = Counter[str]()
        length = scenario.end_s - scenario.start_s
        edges = list(range(0, length, 3_600))
        for at_s in sorted(draw.choice([draw.randrange(length), draw.choice(edges)]) for _ in range(moments)):
            what = draw.choice(
                [self.submit, self.submit, self.start, self.start, self.leave, self.cancel, self.drain, self.fail,
                 self.mend, self.ask, self.reserve]
            )  # fmt: skip
            what(at_s)

    def submit(self, at_s: int) -> None:
        name, gpus = f"j{len(self.sizes)}", self.draw.choice([1, 2, 4, 6, 12, 13])
        self.sizes[name] = self.waiting[name] = gpus
        minimum = self.draw.choice([0, 600, 6 * 3_600, 20 * 3_600, 60 * 3_600])
        kind = self.draw.choice(["train", "debug", "interactive"])
        self.facts.append(
            submitted(name, at_s, account=self.draw.choice(["org/a", "org/b"]), gpus=gpus, minimum_runtime_s=minimum,
                      kind=kind)
        )  # fmt: skip

    def start(self, at_s: int) -> None:
        if not self.waiting:
            return
        name = self.draw.choice(list(self.waiting))
        placement, left_over = {}, self.sizes[name]
        for h, free in self.free.items():
            if self.condition[h] is HostCondition.HEALTHY and left_over and free:
                placement[h] = min(free, left_over)
                left_over -= placement[h]
        if left_over:
            return
        del self.waiting[name]
        for h, gpus in placement.items():
            self.free[h] -= gpus
        self.running[name] = (placement, at_s)
        self.runs[name] += 1
        unallocated = self.draw.random() < 0.3
        self.facts.append(started(name, at_s, placement, run=self.runs[name], unallocated=unallocated))

    def leave(self, at_s: int) -> None:
        if self.running:
            self.end(self.draw.choice(list(self.running)), at_s, self.draw.choice(list(Departure)))

    def end(self, name: str, at_s: int, why: Departure) -> None:
        placement, since_s = self.running.pop(name)
        for h, gpus in placement.items():
            self.free[h] += gpus
        requeued = why is not Departure.DONE and self.draw.random() < 0.7
        if requeued:
            self.waiting[name] = self.sizes[name]
        parts = sorted(self.draw.randint(0, at_s - since_s) for _ in range(3))
        self.facts.append(
            left(name, at_s, run=self.runs[name], why=why, requeued=requeued, loading_s=parts[0],
                 lost_s=parts[1] - parts[0], idle_s=at_s - since_s - parts[2])
        )  # fmt: skip

    def cancel(self, at_s: int) -> None:
        if self.waiting:
            name = self.draw.choice(list(self.waiting))
            del self.waiting[name]
            self.facts.append(Cancelled(at_s=START_S + at_s, job=name))

    def turn(self, at_s: int, name: str, condition: HostCondition, *, planned: bool = False) -> None:
        self.condition[name] = condition
        self.facts.append(host(name, at_s, condition, planned=planned))

    def drain(self, at_s: int) -> None:
        name = self.draw.choice(list(self.free))
        if self.condition[name] is HostCondition.HEALTHY:
            self.turn(at_s, name, HostCondition.DRAINING, planned=True)

    def fail(self, at_s: int) -> None:
        name = self.draw.choice(list(self.free))
        if self.condition[name] is HostCondition.DOWN:
            return
        empty = self.free[name] == GPUS and self.condition[name] is HostCondition.DRAINING
        victims = [job for job, (placement, _) in self.running.items() if name in placement]
        late = self.draw.random() < 0.5
        if late:
            self.turn(at_s, name, HostCondition.DOWN, planned=empty)
        for job in victims:
            self.end(job, at_s, Departure.HOST_FAILED)
        if not late:
            self.turn(at_s, name, HostCondition.DOWN, planned=empty)

    def mend(self, at_s: int) -> None:
        name = self.draw.choice(list(self.free))
        if self.condition[name] is not HostCondition.HEALTHY:
            self.turn(at_s, name, HostCondition.HEALTHY)

    def ask(self, at_s: int) -> None:
        name = self.draw.choice(list(self.free))
        if self.condition[name] is HostCondition.DRAINING:
            self.facts.append(UserAsked(at_s=START_S + at_s, host=name, job="any"))

    def reserve(self, at_s: int) -> None:
        placement = {h: self.draw.randint(0, GPUS) * 1000 for h in self.free if self.draw.random() < 0.5}
        self.facts.append(Reserved(at_s=START_S + at_s, placement=placement))


@settings(deadline=None, max_examples=60)
@given(st.randoms(use_true_random=False), st.integers(0, 60), st.sampled_from([0, 1]))
def test_every_measure_is_the_sum_over_the_seconds(
    draw: random.Random, moments: int, warm_up_days: int
) -> None:
    told = scenario(hosts=HOSTS, gpus=GPUS, warm_up_days=warm_up_days, accounts=ACCOUNTS)
    facts = Story(draw, told, moments).facts
    found, oracle = measure(facts, told), Oracle(facts, told)
    sums = found.partition
    assert sums.residual == 0
    assert sums.installed == HOSTS * GPUS * 1000 * DAY_S
    expected = oracle.partition()
    for state in ("allocated", "unallocated", "unhealthy", "maintenance", "reserved", "free"):
        assert getattr(sums, state) == expected.get(state, 0), state
    assert sum(found.series.usable) == sums.usable == int(oracle.healthy()[oracle.skip :].sum())
    assert sum(found.series.occupied) == sums.occupied
    for account in ("org/a", "org/b"):
        for placeable in (False, True):
            rows = list(found.hours[account].rows(placeable=placeable))
            assert rows == oracle.owed(account, placeable=placeable), (account, placeable)
        used = oracle.used(account)
        use = found.accounts.get(account)
        for name in ("allocated", "unallocated", "loading", "idle", "lost", "preemptions"):
            assert (getattr(use, name) if use else 0) == used[name], (account, name)
    for group in ("debug", "interactive", "medium", "large"):
        first, again = found.waits.by_group()[group], found.waits.again_by_group()[group]
        assert (first.ended, first.unended, first.late.total()) == oracle.waited(group, again=False)
        assert (again.ended, again.unended, again.late.total()) == oracle.waited(group, again=True)
    assert (list(found.series.gang), list(found.series.gang_least)) == oracle.gang()
    drains = found.drains
    assert (drains.begun, drains.asked, drains.lengths.ended, drains.lengths.unended) == oracle.drains()
