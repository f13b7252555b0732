"""Victims of one gang, against a search of everything: none without need, none too many, none out of bounds."""

from collections import Counter
from fractions import Fraction
from itertools import chain, combinations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.property.policy.test_cycle_laws import part_of
from tests.property.policy.test_placement import Host, placements

from gpuledger.policy.cycle import (
    AccountState,
    ClusterState,
    Cycle,
    HostState,
    PendingWorkload,
    PolicyConfig,
    RunningRun,
    run_cycle,
)

CONFIGS = {
    "no floors": PolicyConfig(floor_alpha_permille=1000),
    "floors": PolicyConfig(floor_alpha_permille=500),
    "whole floors": PolicyConfig(floor_alpha_permille=0),
    "credits": PolicyConfig(division="credits"),
}
NOW_S = 100_000
SIZES = (2, 4)

some = st.fixed_dictionaries(
    {
        "account": st.sampled_from(["a", "b", "c"]),
        "gpus": st.sampled_from([1, 1, 2, 4]),
        "free": st.booleans(),
        "age": st.sampled_from([100, 1000, 5000]),
        "protected": st.booleans(),
        "priority": st.integers(0, 1),
    }
)
settled = st.fixed_dictionaries(
    {
        "account": st.sampled_from(["b", "b", "b", "c"]),
        "gpus": st.sampled_from([1, 1, 2, 3, 4]),
        "free": st.sampled_from([False]),
        "age": st.sampled_from([1000, 3000, 5000]),
        "protected": st.sampled_from([False, False, False, True]),
        "priority": st.just(0),
    }
)
"""Of those only floors keep anybody."""
runs = st.one_of(st.lists(some, max_size=6), st.lists(settled, min_size=3, max_size=8))
used = st.fixed_dictionaries({name: st.sampled_from([0, 1, 4]) for name in "abc"})
departments = st.sampled_from([{"a": "", "b": "", "c": ""}, {"a": "", "b": "p/", "c": "p/"}])
"""Above whom: nobody, or p, as which b and c are entitled to as much as a together."""


def placed(sizes: list[int], drawn: list[dict[str, Any]], above: dict[str, str]) -> list[RunningRun]:
    """Every run is on the first host that has room for it; what finds none is left out."""
    free = dict(enumerate(sizes))
    running = []
    for n, entry in enumerate(drawn):
        host = next((h for h, left in free.items() if left >= entry["gpus"]), None)
        if host is None:
            continue
        free[host] -= entry["gpus"]
        running.append(
            RunningRun(
                workload=f"r{n}",
                run="1",
                account=above[entry["account"]] + entry["account"],
                gpus_milli=entry["gpus"] * 1000,
                started_at_s=NOW_S - entry["age"],
                protected_until_s=NOW_S + 1 if entry["protected"] else NOW_S - 1,
                klass="unallocated" if entry["free"] else "allocated",
                placement={f"h{host}": entry["gpus"] * 1000},
                priority=entry["priority"],
            )
        )
    return running


def drawn_cycle(
    sizes: list[int],
    running: list[RunningRun],
    usage: dict[str, int],
    gpus: int,
    above: dict[str, str],
    config: PolicyConfig,
) -> Cycle:
    """A gang of account a asks."""
    healthy_milli = sum(sizes) * 1000
    demand = paid(running)
    demand["a"] += gpus * 1000
    state = ClusterState(
        cluster="c",
        at_s=NOW_S,
        healthy_milli=healthy_milli,
        capacity_window_gpu_ms=healthy_milli * config.window_s,
        accounts=tuple(
            AccountState(
                account=above[name] + name,
                share=1,
                used_gpu_ms=times * healthy_milli * config.window_s // 4,
                demand_milli=demand[above[name] + name],
            )
            for name, times in usage.items()
        ),
        running=tuple(running),
        pending=(
            PendingWorkload(
                workload="gang",
                account="a",
                gpus_milli=gpus * 1000,
                submitted_at_s=0,
                eligible_at_s=0,
                minimum_runtime_s=3600,
                priority=1,
            ),
        ),
        hosts=tuple(
            HostState(host=f"h{n}", gpus_milli=size * 1000, gpu_model="a") for n, size in enumerate(sizes)
        ),
    )
    return run_cycle(state, config)


def fits(sizes: list[int], running: list[RunningRun], gone: set[str], gpus: int) -> bool:
    """Say whether any choice of hosts could take the gang once some runs are gone."""
    taken = [0] * len(sizes)
    for run in running:
        if run.workload not in gone:
            for host, milli in run.placement.items():
                taken[int(host[1:])] += milli
    hosts: list[Host] = [("a", size, milli) for size, milli in zip(sizes, taken, strict=True)]
    return bool(placements(hosts, gpus * 1000, None))


def paid(running: list[RunningRun]) -> Counter[str]:
    """What every account and every department pays for, in milli-GPU."""
    found: Counter[str] = Counter()
    for run in running:
        for account in {run.account, run.account.split("/")[0]}:
            found[account] += run.gpus_milli if run.klass == "allocated" else 0
    return found


def beyond(usage: dict[str, int], above: dict[str, str], account: str) -> Fraction:
    """By how much of the cluster's weeks the side of an account, seen from a, used more than its part allows."""
    side = [name for name in usage if (above[name] + name).split("/")[0] == account.split("/", maxsplit=1)[0]]
    sides = len({(above[name] + name).split("/")[0] for name in usage})
    return Fraction(sum(usage[name] for name in side) * sides)


def may_leave(
    run: RunningRun, usage: dict[str, int], above: dict[str, str], config: PolicyConfig, *, has_claim: bool
) -> bool:
    """The rule in one sentence: unpaid; or past protection, and own and lower, or of a higher account and settled.

    With a claim to what credits issue it is against any account.
    """
    if run.klass == "unallocated":
        return True
    if run.protected_until_s > NOW_S:
        return False
    if run.account == "a":
        return run.priority < 1
    # A quarter of a cluster's week is 0.477 of what a half of it is entitled to, or more: any step exceeds delta.
    exceeds = beyond(usage, above, run.account) > beyond(usage, above, "a")
    return (has_claim or exceeds) and NOW_S - run.started_at_s >= config.quantum_s


def leaves_floors(
    running: list[RunningRun], gone: set[str], floors: dict[str, int], present: dict[str, Fraction]
) -> bool:
    """Say whether nobody who loses something is below its floor, but for runs each larger than what is left to it."""
    stays = paid([run for run in running if run.workload not in gone])
    for name, floor in floors.items():
        lost = [
            run.gpus_milli
            for run in running
            if run.workload in gone
            and run.klass == "allocated"
            and name in (run.account, run.account.split("/")[0])
        ]
        if name == "a" or not lost or stays[name] >= floor:
            continue
        if any(stays[name] + milli <= present[name] for milli in lost):
            return False
    return True


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
@settings(deadline=None)
@given(
    sizes=st.lists(st.sampled_from(SIZES), min_size=1, max_size=4),
    drawn=runs,
    usage=used,
    gpus=st.sampled_from([1, 2, 4, 6, 8]),
    above=departments,
)
def test_victims_suffice_are_all_needed_and_are_found_whenever_there_are_any(
    config: PolicyConfig,
    sizes: list[int],
    drawn: list[dict[str, Any]],
    usage: dict[str, int],
    gpus: int,
    above: dict[str, str],
) -> None:
    running = placed(sizes, drawn, above)
    cycle = drawn_cycle(sizes, running, usage, gpus, above, config)
    victims = {decision.workload for decision in cycle.decisions if decision.action == "preempt"}
    parts = {
        row.account: part_of(dict.fromkeys((above[n] + n for n in usage), 1), row.account)
        for row in cycle.allocations
    }
    present = {name: part * sum(sizes) * 1000 for name, part in parts.items()}
    floors = {
        name: -(-entitled * (1000 - config.floor_alpha_permille) // 1000)
        for name, entitled in present.items()
    }
    has_claim = False
    if config.division == "credits":
        floors = {one.account: one.issued_milli for one in cycle.allocations}
        present = {one.account: Fraction(one.issued_milli) for one in cycle.allocations}
        has_claim = paid(running)["a"] < floors["a"] and paid(running)["a"] + gpus * 1000 <= floors["a"]
    candidates = {
        run.workload for run in running if may_leave(run, usage, above, config, has_claim=has_claim)
    }
    gang = next(decision for decision in cycle.decisions if decision.workload == "gang")
    assert victims <= candidates
    if fits(sizes, running, set(), gpus):
        assert (gang.action, victims) == ("start", set())
        return
    sets = chain.from_iterable(
        combinations(sorted(candidates), count) for count in range(len(candidates) + 1)
    )
    assert bool(victims) == any(
        fits(sizes, running, set(gone), gpus) and leaves_floors(running, set(gone), floors, present)
        for gone in sets
    )
    if victims:
        assert fits(sizes, running, victims, gpus)
        assert leaves_floors(running, victims, floors, present)
        assert not any(
            fits(sizes, running, set(fewer), gpus) for fewer in combinations(victims, len(victims) - 1)
        )


def in_order(run: RunningRun) -> tuple[int, int]:
    """Who leaves first: unpaid, of other accounts, its own; of these whoever loses least."""
    group = 0 if run.klass == "unallocated" else 1 if run.account != "a" else 2
    return group, run.gpus_milli * (NOW_S - run.started_at_s)


@settings(deadline=None)
@given(
    sizes=st.lists(st.sampled_from(SIZES), min_size=1, max_size=4),
    drawn=runs,
    usage=used,
    gpus=st.sampled_from([1, 2, 4]),
)
def test_no_victim_loses_more_than_a_run_that_alone_would_have_made_room(
    sizes: list[int], drawn: list[dict[str, Any]], usage: dict[str, int], gpus: int
) -> None:
    config, above = CONFIGS["no floors"], dict.fromkeys("abc", "")
    running = placed(sizes, drawn, above)
    cycle = drawn_cycle(sizes, running, usage, gpus, above, config)
    victims = {decision.workload for decision in cycle.decisions if decision.action == "preempt"}
    alone = [
        run
        for run in running
        if may_leave(run, usage, above, config, has_claim=False)
        and fits(sizes, running, {run.workload}, gpus)
    ]
    if victims and alone:
        worst = max(in_order(run) for run in running if run.workload in victims)
        assert worst <= min(in_order(run) for run in alone)
