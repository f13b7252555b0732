"""Whatever is asked for and whatever breaks: no world orders what cannot be done, and everybody gets a turn."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.property.simulator.drawing import OUTAGES, break_hosts
from tests.simulating import T0, job, scenario

from gpuledger.simulator.engine import simulate
from gpuledger.simulator.facts import Cancelled, Left, Started, Submitted
from gpuledger.simulator.jobs import Job
from gpuledger.simulator.scenario import AccountSpec
from gpuledger.simulator.worlds.registry import make_world

HOSTS = (4, 2, 4)
ACCOUNTS = (
    AccountSpec(account="org/a", share=2, team_limit_milli=3000),
    AccountSpec(account="org/b", share=1, team_limit_milli=0),
    AccountSpec(account="org/c", share=0),
)
SETTINGS = {
    "old": {"long_wait_s": 20, "hold_after_s": 15, "answer_s": 10, "stay_permille": 500},
    "multifactor": {"compute_s": 10, "backfill_s": 3, "reservations": 2, "tested": 6},
}
JOB = st.fixed_dictionaries(
    {
        "gpus": st.sampled_from([0.5, 1, 1, 2, 3, 4, 6, 8]),
        "work_s": st.integers(0, 40),
        "startup_s": st.integers(0, 3),
        "idle_s": st.sampled_from([0, 0, 9]),
        "time_limit_s": st.none() | st.integers(1, 90),
        "patience_s": st.none() | st.integers(0, 60),
        "priority": st.integers(-1, 3),
        "user": st.sampled_from(["ann", "bob", "cat"]),
        "account": st.sampled_from(["org/a", "org/b", "org/c", "org/d/e"]),
        "resumable": st.booleans(),
        "checkpoint_s": st.just(5),
    }
)
ROWS = st.lists(st.tuples(st.integers(0, 6), JOB), max_size=40)


def listed(rows: Sequence[tuple[int, dict[str, Any]]]) -> list[Job]:
    at_s, jobs = 0, []
    for number, (gap_s, asked) in enumerate(rows):
        at_s += gap_s
        jobs.append(job(f"j{number}", at_s=at_s, **asked))
    return jobs


@pytest.mark.parametrize("world", ["old", "fifo", "multifactor"])
@given(ROWS, OUTAGES, st.sampled_from([0, 2, 30]), st.integers(0, 3))
def test_nothing_impossible_is_ordered_and_nobody_waits_for_ever(
    world: str, rows: Sequence[tuple[int, dict[str, Any]]], broken: Sequence[Any], grace_s: int, seed: int
) -> None:
    played = scenario(listed(rows), hosts=HOSTS, accounts=ACCOUNTS, grace_s=grace_s, worlds=SETTINGS)
    asked, over, last_s = set(), set(), 0
    with pytest.MonkeyPatch.context() as patch:
        break_hosts(patch, broken)
        for fact in simulate(played, make_world(world, played, seed), seed=seed):
            last_s = fact.at_s - T0
            if isinstance(fact, Submitted):
                asked.add(fact.job.job)
            elif isinstance(fact, Cancelled) or (isinstance(fact, Left) and not fact.requeued):
                over.add(fact.job)
            elif isinstance(fact, Started):
                assert fact.job not in over
    assert over == asked
    assert last_s < 40_000
