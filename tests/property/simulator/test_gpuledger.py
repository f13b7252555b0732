"""Laws of the world gpuledger, on small clusters whose jobs, faults and drains are drawn."""

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest
from tests.conftest import FORM
from tests.simulating import T0, job, scenario

from gpuledger.simulator.engine import simulate
from gpuledger.simulator.facts import Fact, Left, Started, Submitted
from gpuledger.simulator.jobs import Job
from gpuledger.simulator.scenario import AccountSpec, FaultModel, Scenario
from gpuledger.simulator.worlds.gpuledger import Gpuledger
from gpuledger.simulator.worlds.protocol import Cluster, Start

SEEDS = {"short": 4, "full": 60}[FORM]
HOUR_S = 3_600
OWNERS = ("org/a", "org/b/x", "org/b/y", "org/none")
ACCOUNTS = tuple(
    AccountSpec(account=account, share=share) for account, share in zip(OWNERS, (3, 1, 2, 0), strict=True)
)


class Restless(Gpuledger):
    """It has every cycle that is due, though nobody waits."""

    def _is_idle(self, cluster: Cluster) -> bool:
        return False


class InFull(Gpuledger):
    """It has every cycle, and each in full."""

    def __init__(self, world: Scenario) -> None:
        super().__init__(world)
        self._ordering = None

    def _is_idle(self, cluster: Cluster) -> bool:
        return False

    def _alone(self, cluster: Cluster) -> list[Start]:
        return []


class Seldom(Gpuledger):
    """It counts whom it starts without a cycle: those who wait alone, and those who do beside work of their account."""

    def __init__(self, world: Scenario) -> None:
        super().__init__(world)
        self.lone: Counter[bool] = Counter()

    def _alone(self, cluster: Cluster) -> list[Start]:
        found = super()._alone(cluster)
        self.lone[len(found) > 1] += len(found)
        return found


class Careful(Gpuledger):
    """It looks at every run when it is said which have saved their work."""

    def __init__(self, world: Scenario) -> None:
        super().__init__(world)
        self.seen: dict[tuple[str, int], int] = {}

    def _saved_s(self, cluster: Cluster) -> dict[str, int]:
        found = super()._saved_s(cluster)
        running = cluster.running
        self.seen.update({(name, running[name].run): saved_s for name, saved_s in found.items()})
        for name, run in running.items():
            saved_s = run.checkpointed_s(cluster.at_s)
            assert self.seen.get((name, run.run), run.started_s) == saved_s
        return found


BURSTS_S = (0, 0, 1, 5, 40, 300, 300, 2_000, 9_000)


def drawn(rng: random.Random, number: int, pauses_s: Sequence[int] = BURSTS_S) -> Iterator[Job]:
    """Jobs in bursts, with quiet times between."""
    at_s = 0
    for name in range(number):
        at_s += rng.choice(pauses_s)
        yield job(
            f"j{name:03}",
            rng.choice([1, 1, 2, 4, 8, 8, 12, 16]),
            rng.choice([60, 500, 4_000, 20_000]),
            at_s=at_s,
            account=rng.choice(OWNERS),
            priority=rng.randrange(3),
            minimum_runtime_s=rng.choice([0, 300, 300, HOUR_S, 4 * HOUR_S]),
            startup_s=rng.choice([0, 30]),
            checkpoint_s=rng.choice([None, 600]),
            patience_s=rng.choice([None, None, 50, HOUR_S]),
            resumable=rng.random() < 0.9,
        )


def world(seed: int, number: int = 50, **more: Any) -> Scenario:  # noqa: ANN401 - what a scenario takes
    rng = random.Random(f"gpuledger {seed}")
    faults = FaultModel(
        mtbf_s=rng.choice([None, 60_000]),
        repair_s=2_000,
        drain_mtbf_s=rng.choice([None, 40_000]),
        drain_repair_s=900,
    )
    return scenario(
        list(drawn(rng, number)), hosts=(8, 8, 8, 4), faults=faults, accounts=ACCOUNTS, seed=seed, **more
    )


@pytest.mark.parametrize("gap_s", [0, 20])
@pytest.mark.parametrize("seed", range(SEEDS))
def test_cycles_that_are_left_out_or_cut_short_change_nothing(seed: int, gap_s: int) -> None:
    given = world(seed, worlds={"gpuledger": {"gap_s": gap_s}})
    facts = [repr(fact) for fact in simulate(given, Gpuledger(given))]
    assert facts == [repr(fact) for fact in simulate(given, Restless(given))]
    assert facts == [repr(fact) for fact in simulate(given, InFull(given))]
    assert len(facts) > 120


@pytest.mark.parametrize("seed", range(SEEDS))
def test_an_account_that_alone_waits_has_starts_without_a_cycle_as_with_one(seed: int) -> None:
    rng = random.Random(f"calm {seed}")
    jobs: list[Job] = []
    for one in drawn(rng, 60, pauses_s=(0, 0, 2_000, 9_000, 9_000)):
        account = jobs[-1].account if jobs and jobs[-1].submitted_s == one.submitted_s else one.account
        jobs.append(replace(one, account=account))
    faults = FaultModel(mtbf_s=60_000, repair_s=2_000, drain_mtbf_s=80_000, drain_repair_s=900)
    given = scenario(jobs, hosts=(8, 8, 8, 4), faults=faults, accounts=ACCOUNTS, seed=seed, days=4)
    seldom = Seldom(given)
    facts = [repr(fact) for fact in simulate(given, seldom)]
    assert seldom.lone[False] > 10
    assert seldom.lone[True] > 3
    assert facts == [repr(fact) for fact in simulate(given, InFull(given))]


@pytest.mark.parametrize("seed", range(SEEDS))
def test_every_run_that_saves_its_work_is_said_to(seed: int) -> None:
    given = world(seed)
    careful = Careful(given)
    assert sum(1 for _ in simulate(given, careful)) > 120
    assert len(careful.seen) > 5


@pytest.mark.parametrize("seed", range(SEEDS))
def test_raising_all_priorities_of_an_account_changes_nothing(seed: int) -> None:
    """Inflation: the order inside the account is the same, and nobody else has ever been compared with it."""
    given = world(seed)
    jobs = list(given.demand(0).first())
    inflated = [
        replace(one, priority=one.priority * 1_000 + 7) if one.account == "org/a" else one for one in jobs
    ]
    assert happened(given) == happened(_of(given, inflated))


@pytest.mark.parametrize("seed", range(SEEDS))
def test_priorities_inside_an_account_move_no_gpu_time_between_accounts(seed: int) -> None:
    """Its jobs are alike, so whichever of them is first, at each instant each account runs as much."""
    rng = random.Random(f"alike {seed}")
    jobs = [
        job(f"j{n:03}", 2, 5_000, at_s=rng.choice([0, 0, 600]), account=rng.choice(OWNERS[:3]), minimum_runtime_s=5_000)
        for n in range(80)
    ]  # fmt: skip
    jobs.sort(key=lambda one: one.submitted_s)
    shuffled = [replace(one, priority=rng.randrange(9)) if one.account == "org/a" else one for one in jobs]
    plain, otherwise = (scenario(some, hosts=(8, 8, 4), accounts=ACCOUNTS) for some in (jobs, shuffled))
    assert happened(plain) != happened(otherwise)
    assert by_account(plain) == by_account(otherwise)


def _of(given: Scenario, jobs: list[Job]) -> Scenario:
    return scenario(
        jobs,
        specs=given.hosts,
        faults=given.faults,
        accounts=given.accounts,
        seed=given.seed,
        worlds=given.worlds,
    )


def happened(given: Scenario) -> list[Fact]:
    return [fact for fact in simulate(given, Gpuledger(given)) if not isinstance(fact, Submitted)]


def by_account(given: Scenario) -> dict[int, dict[str, int]]:
    """Return at each instant by how much the GPUs of each account change."""
    owners: dict[str, str] = {}
    placed: dict[str, Started] = {}
    found: dict[int, Counter[str]] = {}
    for fact in simulate(given, Gpuledger(given)):
        if isinstance(fact, Submitted):
            owners[fact.job.job] = fact.job.account
        elif isinstance(fact, Started):
            placed[fact.job] = fact
            found.setdefault(fact.at_s - T0, Counter())[owners[fact.job]] += sum(fact.placement.values())
        elif isinstance(fact, Left):
            gpus_milli = sum(placed[fact.job].placement.values())
            found.setdefault(fact.at_s - T0, Counter())[owners[fact.job]] -= gpus_milli
    return {at_s: {owner: by for owner, by in changes.items() if by} for at_s, changes in found.items()}


def test_squatting_costs_its_own_account() -> None:
    """Two alike accounts; one keeps its GPUs for hours after twenty minutes of work. The other gets no less for it."""
    honest, squatting = used(idle_s=0), used(idle_s=5 * HOUR_S)
    assert squatting["org/b", "worked"] >= honest["org/b", "worked"] * 95 // 100
    assert squatting["org/a", "held"] <= squatting["org/b", "held"] * 110 // 100
    assert squatting["org/a", "worked"] < honest["org/a", "worked"] // 2


def used(idle_s: int) -> Counter[tuple[str, str]]:
    """Return the milli-GPU x seconds that each account held, and those in which it worked, over two days."""
    jobs = [
        job(
            f"{owner[-1]}{n:04}",
            2,
            1_200,
            account=owner,
            minimum_runtime_s=1_200,
            idle_s=idle_s if owner == "org/a" else 0,
        )
        for n in range(500)
        for owner in ("org/a", "org/b")
    ]
    given = scenario(
        jobs,
        hosts=(8, 4),
        days=2,
        accounts=(AccountSpec(account="org/a", share=1), AccountSpec(account="org/b", share=1)),
        cycle_s=600,
    )
    owners = {one.job: one.account for one in jobs}
    started: dict[str, Started] = {}
    found: Counter[tuple[str, str]] = Counter()
    for fact in simulate(given, Gpuledger(given)):
        if isinstance(fact, Started):
            started[fact.job] = fact
        elif isinstance(fact, Left):
            run = started.pop(fact.job)
            gpus_milli, owner = sum(run.placement.values()), owners[fact.job]
            found[owner, "held"] += gpus_milli * (fact.at_s - run.at_s)
            found[owner, "worked"] += gpus_milli * (fact.kept_s + fact.lost_s)
    return found
