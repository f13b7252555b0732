"""A cycle by event against a full cycle on the same state, on clusters that carry out what is decided."""

import random
from collections import Counter
from dataclasses import replace

import pytest
from tests.conftest import FORM
from tests.property.policy.simulation import (
    World,
    divided_by_turns,
    drain_or_repair,
    random_job,
    random_world,
)

from gpuledger.policy.cycle import (
    Action,
    ClusterState,
    Cycle,
    Decision,
    PendingWorkload,
    RunId,
    RunningRun,
    Shared,
    run_cycle,
)
from gpuledger.policy.incremental import Prepared, carried_out, prepare, with_submission
from gpuledger.policy.turnover import Turnover, with_turnover

WORLDS = {"short": 40, "full": 600}[FORM]
TICKS, EVENTS, PARTS = 12, 4, 4


def stated(cycle: Cycle, submitted: str) -> list[Decision | Shared]:
    """Starts, orders to leave, and what the submitted workload is told; in their order."""
    return [d for d in cycle.decisions if d.action is not Action.WAIT or d.workload == submitted]


def check(prepared: Prepared, workload: PendingWorkload, at_s: int) -> Prepared:
    config = prepared.config
    told = with_submission(carried_out(prepared.state, prepared.cycle, config), workload, at_s)
    full = run_cycle(told, config)
    after, cycle = prepared.submitted(workload, at_s)
    assert stated(cycle, workload.workload) == stated(full, workload.workload)
    assert cycle.reservations == full.reservations
    everything = {(d.workload, d.run): d for d in full.decisions}
    assert all(everything[d.workload, d.run] == d for d in cycle.decisions)
    assert after.cycle is cycle
    assert same_work(after, told)
    return after


def same_work(after: Prepared, told: object) -> bool:
    state = after.state
    return replace(state, pending=tuple(sorted(state.pending, key=lambda w: w.workload))) == replace(
        told,
        pending=tuple(sorted(told.pending, key=lambda w: w.workload)),  # type: ignore[type-var, attr-defined]
    )


def below_one_root(world: World) -> None:
    """Hang all accounts below one, so that the tree branches further down."""
    world.shares = {f"org/{path}": share for path, share in world.shares.items()}
    for path in list(world.used):
        world.used[f"org/{path}"] = world.used.pop(path)


def random_submission(rng: random.Random, world: World, name: str, at_s: int) -> PendingWorkload:
    job = random_job(rng, world)
    return PendingWorkload(
        workload=name,
        account=job.account if rng.random() < 0.97 else "new/comer",
        gpus_milli=job.gpus * 1000 if rng.random() < 0.9 else 500,
        submitted_at_s=at_s,
        eligible_at_s=at_s + (rng.choice([-900, 0, 0, 0, 30, 90])),
        priority=job.priority,
        minimum_runtime_s=job.minimum_s,
        gpu_model=job.model,
    )


@pytest.mark.parametrize("part", range(PARTS))
def test_a_cycle_by_event_decides_what_a_full_cycle_would(part: int) -> None:
    for seed in range(part, WORLDS, PARTS):
        rng = random.Random(f"event {seed}")
        world, busy = divided_by_turns(random_world(rng), seed), 0.3 + 0.65 * rng.random()
        if seed % 3 == 0:
            below_one_root(world)
        for tick in range(TICKS):
            while rng.random() < busy:
                world.submit(random_job(rng, world))
            if rng.random() < 0.05:
                drain_or_repair(rng, world)
            prepared, at_s = prepare(world.state(), world.config), world.at_s
            for event in range(EVENTS):
                at_s += rng.choice([0, 0, 7, 61, 300])
                name = f"late{tick}.{event}"
                prepared = check(prepared, random_submission(rng, world, name, at_s), at_s)
            world.tick()


@pytest.mark.parametrize("part", range(PARTS))
def test_in_a_long_queue_of_few_kinds_nobody_is_passed_over_who_could_change_something(part: int) -> None:
    """Many ask for the same, and runs are past their protection: much is given back in the middle of a walk."""
    for seed in range(part, WORLDS, PARTS):
        rng = random.Random(f"m {seed}")
        world, _ = divided_by_turns(random_world(rng), seed), 0.3 + 0.65 * rng.random()
        if seed % 3 == 0:
            below_one_root(world)
        for tick in range(8):
            for _ in range(12):
                job = random_job(rng, world)
                job.gpus, job.minimum_s = rng.choice([1, 2, 4]), rng.choice([60, 60, 900])
                job.length_s, job.model, job.priority = 20_000, None, rng.choice([0, 1, 2])
                world.submit(job)
            world.at_s += rng.choice([0, 240, 900])
            prepared, at_s = prepare(world.state(), world.config), world.at_s
            for event in range(3):
                at_s += rng.choice([0, 0, 7, 61, 300])
                name = f"late{tick}.{event}"
                prepared = check(prepared, random_submission(rng, world, name, at_s), at_s)
            world.tick()


def random_turnover(rng: random.Random, standing: ClusterState, at_s: int) -> Turnover:
    """Runs end, are named or say that their work is saved; work is withdrawn."""
    gone, come, left = list[RunId](), list[RunningRun](), list[str]()
    held: Counter[str] = Counter()
    room = {one.account: one.held_gpu_ms for one in standing.accounts}
    for run in standing.running:
        match rng.choice(["stays", "stays", "stays", "ends", "is named", "is saved"]):
            case "ends":
                gone.append(run.id)
                freed = run.gpus_milli * max(run.protected_until_s - at_s, 0)
                freed = min(freed, room.get(run.account, 0))
                room[run.account] = room.get(run.account, 0) - freed
                held[run.account] -= freed
            case "is named" if not run.run:
                gone.append(run.id)
                come.append(replace(run, run="named", started_at_s=run.started_at_s + rng.randrange(3)))
            case "is saved":
                gone.append(run.id)
                come.append(replace(run, checkpointed_at_s=at_s))
    left += [one.workload for one in standing.pending if rng.random() < 0.1]
    return Turnover(gone=tuple(gone), come=tuple(come), left=tuple(left), held_gpu_ms=held)


def check_turnover(
    rng: random.Random, prepared: Prepared, late: PendingWorkload | None, at_s: int
) -> Prepared:
    """Compare what is decided after turnover, of a submission or of nobody, with a full cycle on the state of then."""
    config = prepared.config
    done = carried_out(prepared.state, prepared.cycle, config)
    turnover = random_turnover(rng, done, at_s)
    told = replace(with_turnover(done, turnover), at_s=at_s)
    moved = prepared.after(turnover, at_s)
    if late is not None:
        told = with_submission(told, late, at_s)
        after, cycle = moved.submitted(late, at_s)
    else:
        found = moved.decided(at_s)
        if found is None:  # many became eligible at once
            return prepare(told, config)
        after, cycle = found
    full = run_cycle(told, config)
    name = "" if late is None else late.workload
    assert stated(cycle, name) == stated(full, name)
    assert cycle.reservations == full.reservations
    everything = {(d.workload, d.run): d for d in full.decisions}
    assert all(everything[d.workload, d.run] == d for d in cycle.decisions)
    assert same_work(after, told)
    return after


@pytest.mark.parametrize("part", range(PARTS))
def test_after_runs_ended_and_work_was_withdrawn_a_cycle_by_event_decides_what_a_full_one_would(
    part: int,
) -> None:
    for seed in range(part, WORLDS, PARTS):
        rng = random.Random(f"turnover {seed}")
        world, busy = divided_by_turns(random_world(rng), seed), 0.3 + 0.65 * rng.random()
        if seed % 3 == 0:
            below_one_root(world)
        for tick in range(TICKS):
            while rng.random() < busy:
                world.submit(random_job(rng, world))
            if rng.random() < 0.05:
                drain_or_repair(rng, world)
            prepared, at_s = prepare(world.state(), world.config), world.at_s
            for event in range(EVENTS):
                at_s += rng.choice([0, 1, 7, 61])
                late = (
                    random_submission(rng, world, f"late{tick}.{event}", at_s) if rng.random() < 0.5 else None
                )
                prepared = check_turnover(rng, prepared, late, at_s)
            world.tick()
