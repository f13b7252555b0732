"""A scheduler that takes orders, from the ledger to the host and back, for several cycles."""

import pytest
from tests.integration.enforce.worlds import HOUR, World

from gpuledger.enforce.orders import Acknowledgement, Answer, Order, Verb, deliver, orders
from gpuledger.events import host, workload

GRACE_S = 60
STEP_S = 900


class InMemory:
    """A scheduler without a head of its own: it does what it is told, and tells the ledger what happened.

    Args:
        world: The ledger, and the clock.
        hosts: Host -> GPUs, in milli-GPU.
    """

    def __init__(self, world: World, hosts: dict[str, int]) -> None:
        self.world, self.free = world, dict(hosts)
        self.draining: set[str] = set()
        self.running: dict[str, tuple[str, dict[str, int], int]] = {}
        self.attempts: dict[str, int] = {}
        self.log: list[tuple[int, Verb, str]] = []
        self.lasted: list[tuple[str, int]] = []

    def take(self, order: Order) -> Acknowledgement:
        done = {
            Verb.DRAIN: self._drain, Verb.RESUME: self._resume, Verb.PREEMPT: self._preempt, Verb.START: self._start,
        }[order.verb](order)  # fmt: skip
        if done is Answer.DONE:
            self.log.append((self.world.now_s, order.verb, order.subject))
        return Acknowledgement(order, done)

    def end(self, name: str) -> None:
        run, _, _ = self._leave(name)
        self.world.tell(
            self.world.now_s, workload.Ended(cluster="c", workload=name, run=run, reason="completed")
        )

    def _drain(self, order: Order) -> Answer:
        if order.subject in self.draining:
            return Answer.ALREADY
        self.draining.add(order.subject)
        return Answer.DONE

    def _resume(self, order: Order) -> Answer:
        if order.subject not in self.draining:
            return Answer.ALREADY
        self.draining.remove(order.subject)
        return Answer.DONE

    def _preempt(self, order: Order) -> Answer:
        if order.subject not in self.running or self.running[order.subject][0] != order.run:
            return Answer.ALREADY
        run, _, began_s = self._leave(order.subject)
        self.lasted.append((order.subject, self.world.now_s - began_s))
        self.world.tell(
            self.world.now_s,
            workload.Preempted(cluster="c", workload=order.subject, run=run, reason="fair-share"),
        )
        return Answer.DONE

    def _start(self, order: Order) -> Answer:
        if order.subject in self.running:
            return Answer.ALREADY
        if any(self.free[name] < milli or name in self.draining for name, milli in order.hosts.items()):
            return Answer.REFUSED
        attempt = self.attempts[order.subject] = self.attempts.get(order.subject, 0) + 1
        for name, milli in order.hosts.items():
            self.free[name] -= milli
        self.running[order.subject] = str(attempt), dict(order.hosts), self.world.now_s
        gpus = sum(order.hosts.values()) // 1000
        self.world.start(order.subject, str(attempt), gpus, *order.hosts, attempt=attempt)
        return Answer.DONE

    def _leave(self, name: str) -> tuple[str, dict[str, int], int]:
        run, hosts, began_s = self.running.pop(name)
        for host_, milli in hosts.items():
            self.free[host_] += milli
        return run, hosts, began_s


@pytest.fixture
def scheduler(world: World) -> InMemory:
    world.share("c/a", 1)
    world.share("c/b", 1)
    return InMemory(world, {"h1": 8000, "h2": 8000})


def give(world: World, scheduler: InMemory) -> list[tuple[Verb, str, Answer]]:
    """Decide, give the orders twice as if the first answer was lost, and let time pass."""
    world.cycle()
    given = orders(world.facts(), grace_s=GRACE_S)
    first = [(a.order.verb, a.order.subject, a.answer) for a in deliver(given, scheduler)]
    again = [a.answer for a in deliver(given, scheduler)]
    assert set(again) <= {Answer.ALREADY}
    # Read again the orders are those that are still to be done: none of what was done is a start any more.
    assert [o.subject for o in orders(world.facts(), grace_s=GRACE_S) if o.verb is Verb.START] == []
    world.pass_time(STEP_S)
    return first


def test_orders_of_several_cycles_are_carried_out_once_each_and_the_ledger_hears_of_all(
    world: World, scheduler: InMemory
) -> None:
    for name in ("a1", "a2"):
        world.submit(name, "c/a", 8, minimum_s=HOUR)
    assert give(world, scheduler) == [
        (Verb.START, "a1", Answer.DONE), (Verb.START, "a2", Answer.DONE),
    ]  # fmt: skip

    world.submit("b1", "c/b", 8, minimum_s=HOUR)
    while not any(verb is Verb.PREEMPT for _, verb, _ in scheduler.log):
        give(world, scheduler)
        assert len(scheduler.log) < 50
    ((victim, lasted_s),) = scheduler.lasted
    assert lasted_s >= HOUR

    give(world, scheduler)
    assert "b1" in scheduler.running
    assert set(scheduler.running) == {"a1", "a2", "b1"} - {victim}

    scheduler.end("b1")
    give(world, scheduler)
    assert set(scheduler.running) == {"a1", "a2"}
    assert scheduler.running[victim][0] == "2"

    world.tell(
        world.now_s,
        host.StateChanged(cluster="c", host="h2", gpus=8, gpu_model="h100", state="draining"),
        source="desk",
    )
    assert (Verb.DRAIN, "h2", Answer.DONE) in give(world, scheduler)
    runs = {one.workload: one.run for one in world.facts().running.values()}
    assert runs == {name: run for name, (run, _, _) in scheduler.running.items()}
