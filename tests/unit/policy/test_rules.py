"""Rules have numbers: what each decides is held here, so that nobody changes a decision without the next number."""

import hashlib
import json
import random

from tests.property.policy.simulation import (
    CONFIG,
    World,
    divided_by_turns,
    drain_or_repair,
    random_job,
    random_world,
)

from gpuledger.policy.published import as_json
from gpuledger.policy.rules import RULES, UNNUMBERED, told

WORLDS, TICKS = 20, 12

DECIDED = {
    1: "dee4a8b2c1579575e16e47c199d67cd76a80011ee92302049283c850628cc185",
    2: "d21afe56b4fa347ada3745d6561834380f0be53640bc7ca80d8e93b2553cd89c",
}
"""Version of the rules -> SHA-256 of what it decides in some worlds; from version 2 on, in those whose shares changed,
too. A version stands for ever: where the decisions are others now, a new one is added, RULES takes its number, and
docs/fairness.md says what is decided otherwise."""


def with_other_shares_before(rng: random.Random, world: World) -> World:
    """Let shares have been others until now: what accounts were entitled to is divided anew."""
    parts = {path: rng.choice([0, 1, 2, 5]) for path in world.shares}
    whole = max(sum(parts.values()), 1)
    window_gpu_ms = world.healthy_milli * CONFIG.window_s
    world.entitled = {path: window_gpu_ms * part // whole for path, part in parts.items()}
    return world


def digest() -> str:
    """Decide in clusters that carry out what is decided, with drains, priorities, reservations and credits."""
    found = hashlib.sha256()
    for seed in range(2 * WORLDS):
        rng = random.Random(f"rules {seed}")
        world = divided_by_turns(random_world(rng), seed)
        if seed >= WORLDS:
            with_other_shares_before(rng, world)
        for _ in range(TICKS):
            while rng.random() < 0.8:
                world.submit(random_job(rng, world))
            if rng.random() < 0.1:
                drain_or_repair(rng, world)
            found.update(json.dumps(as_json(world.tick()), sort_keys=True).encode())
    return found.hexdigest()


def test_what_the_rules_decide_is_what_their_number_stands_for() -> None:
    assert digest() == DECIDED[RULES]
    assert max(DECIDED) == RULES
    assert len(set(DECIDED.values())) == len(DECIDED)


def test_a_version_is_spoken_of_by_its_number() -> None:
    assert told(UNNUMBERED) == "before rules had numbers"
    assert told(7) == "by version 7 of the rules"
