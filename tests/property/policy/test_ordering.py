"""The orders of a cycle against those of a full one, on clusters that carry out what is decided."""

import random
from dataclasses import replace

import pytest
from tests.conftest import FORM
from tests.property.policy.simulation import CONFIG, World, drain_or_repair, random_job, random_world
from tests.property.policy.test_incremental import below_one_root

from gpuledger.policy import lines, piles
from gpuledger.policy.cycle import (
    Action,
    ClusterState,
    Cycle,
    Decision,
    PendingWorkload,
    RunningRun,
    run_cycle,
)
from gpuledger.policy.ordering import Ordering, Turnout

WORLDS = {"short": 60, "full": 900}[FORM]
TICKS, PARTS = 20, 4


class Told:
    """A run of cycles that is told the same objects again where nothing changed about them, as a caller does."""

    def __init__(self) -> None:
        self._ordering, self._in_turn = Ordering(CONFIG), Ordering(CONFIG)
        self._runs: dict[str, RunningRun] = {}
        self._pending: dict[str, PendingWorkload] = {}

    def cycle(self, state: ClusterState) -> Cycle:
        ran = self._runs
        self._runs = {repr(run): ran.get(repr(run), run) for run in state.running}
        before = self._pending
        self._pending = {repr(one): before.get(repr(one), one) for one in state.pending}
        running = tuple(self._runs.values())
        again = replace(state, running=running, pending=tuple(self._pending.values()))
        found = self._ordering.cycle(again)
        turnout = Turnout(
            tuple(one for key, one in before.items() if key not in self._pending),
            tuple(one for key, one in self._pending.items() if key not in before),
            # In whatever order they are told.
            tuple(run for key, run in reversed(ran.items()) if key not in self._runs),
            tuple(run for key, run in reversed(self._runs.items()) if key not in ran),
        )
        assert self._in_turn.cycle(replace(state, running=running, pending=()), turnout) == found
        return found


def check(world: World, told: Told) -> int:
    """Compare three on a world: a full cycle, one for its orders, and the next of many; return how much is ordered."""
    state = world.state()
    full = run_cycle(state, CONFIG)
    orders = tuple(
        replace(decision, reason="", numbers={})
        for decision in full.decisions
        if isinstance(decision, Decision) and decision.action is not Action.WAIT
    )
    for found in (Ordering(CONFIG).cycle(state), told.cycle(state)):
        assert found.decisions == orders
        assert found.reservations == full.reservations
        assert (found.at_s, found.supply_milli, found.allocations) == (full.at_s, full.supply_milli, ())
    return len(orders)


@pytest.mark.parametrize("part", range(PARTS))
def test_what_is_ordered_is_what_a_full_cycle_orders(part: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Queues are taken for short in half of the parts, as these are, and for long in the others."""
    if part % 2:
        monkeypatch.setattr(lines, "LONG", 0)
        monkeypatch.setattr(piles, "CHUNK", 2)
    orders = 0
    for seed in range(part, WORLDS, PARTS):
        rng = random.Random(f"ordered {seed}")
        world, busy = random_world(rng), 0.3 + 0.65 * rng.random()
        told = Told()
        if seed % 3 == 0:
            below_one_root(world)
        for _ in range(TICKS):
            while rng.random() < busy:
                world.submit(random_job(rng, world))
            if rng.random() < 0.05:
                drain_or_repair(rng, world)
            orders += check(world, told)
            world.tick()
    assert orders > WORLDS
