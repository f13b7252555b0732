"""What is ordered for an account that waits alone against what a full cycle orders, on clusters that carry it out."""

import random
from collections import Counter
from dataclasses import replace

import pytest
from tests.conftest import FORM
from tests.property.policy.simulation import CONFIG, random_job, random_world
from tests.property.policy.test_incremental import below_one_root

from gpuledger.policy.alone import alone
from gpuledger.policy.cycle import Action, ClusterState, run_cycle, tree_of
from gpuledger.policy.placement import Room

WORLDS = {"short": 200, "full": 4_000}[FORM]
TICKS, PARTS = 12, 4


@pytest.mark.parametrize("part", range(PARTS))
def test_what_is_ordered_for_one_account_is_what_a_full_cycle_orders(part: int) -> None:
    seen: Counter[str] = Counter()
    for seed in range(part, WORLDS, PARTS):
        rng = random.Random(f"alone {seed}")
        world = random_world(rng)
        if seed % 3 == 0:
            below_one_root(world)
        for _ in range(TICKS):
            if not world.waiting():
                first = random_job(rng, world)
                world.submit(first)
                for _ in range(rng.choice([0, 0, 1, 2, 3])):
                    world.submit(replace(random_job(rng, world), account=first.account))
            state = world.state()
            if state.pending and not state.reservations and len({one.account for one in state.pending}) == 1:
                seen.update(compared(state))
            world.tick()
    assert min(seen[what] for what in ("alone", "several", "unfunded", "only a cycle")) > 10


def compared(state: ClusterState) -> list[str]:
    """Compare with a full cycle, and say what there was to be seen."""
    account = state.pending[0].account
    tree = tree_of(state, state.pending, CONFIG)
    room = Room(state.hosts, [run.placement for run in state.running])
    found = alone(state.pending, room, state.at_s, is_funded=tree.nodes[tree.leaf_path(account)].funded)
    if found is None:
        return ["only a cycle"]
    full = run_cycle(state, CONFIG)
    assert [decision.action for decision in full.decisions] == [Action.START] * len(state.pending)
    assert [(said.workload, said.placement, said.klass) for said in full.decisions] == list(found)
    assert full.reservations == ()
    unfunded = ["unfunded"] if any(lone.klass == "unallocated" for lone in found) else []
    return ["several" if len(found) > 1 else "alone", *unfunded]
