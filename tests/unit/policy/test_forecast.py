"""When a workload starts if nobody does anything; against whole worlds: tests/property/policy/test_quotes.py."""

from dataclasses import replace

import pytest

from gpuledger.policy.cycle import (
    AccountState,
    ClusterState,
    HostState,
    PendingWorkload,
    PolicyConfig,
    RunningRun,
    run_cycle,
)
from gpuledger.policy.forecast import _Ahead, forecast, shares_of

CONFIG = PolicyConfig(protection_cap_s=3600, quantum_s=300, notice_s=300, grace_s=60)


def waiting(
    name: str, gpus: int, *, account: str = "a", minimum_s: int = 600, eligible_s: int = 0
) -> PendingWorkload:
    return PendingWorkload(
        workload=name, account=account, gpus_milli=gpus * 1000, submitted_at_s=0, eligible_at_s=eligible_s,
        minimum_runtime_s=minimum_s,
    )  # fmt: skip


def running(name: str, gpus: int, *, until_s: int, account: str = "a") -> RunningRun:
    return RunningRun(
        workload=name, run="1", account=account, gpus_milli=gpus * 1000, started_at_s=0, protected_until_s=until_s,
        placement={"h": gpus * 1000},
    )  # fmt: skip


def cluster(*pending: PendingWorkload, runs: tuple[RunningRun, ...] = ()) -> ClusterState:
    return ClusterState(
        cluster="c",
        at_s=0,
        healthy_milli=8000,
        capacity_window_gpu_ms=8000 * CONFIG.window_s,
        accounts=(AccountState(account="a", share=1), AccountState(account="b", share=1)),
        running=runs,
        pending=pending,
        hosts=(HostState(host="h", gpus_milli=8000, gpu_model="x"),),
    )


def test_what_fits_starts_now() -> None:
    assert forecast(cluster(waiting("w", 8)), CONFIG, "w").starts_at_s == 0


def test_a_run_ends_at_its_declared_limit() -> None:
    state = cluster(waiting("w", 8, minimum_s=0), runs=(running("r", 8, until_s=600),))
    assert forecast(state, CONFIG, "w", limits_s={"r": 2000}).starts_at_s == 2000
    # Nobody leaves for unallocated work, and nobody said when the run ends.
    unknown = forecast(state, CONFIG, "w")
    assert (unknown.starts_at_s, unknown.seen_until_s) == (None, 600)


def test_funded_work_gets_what_its_reservation_takes_from_others() -> None:
    state = cluster(waiting("w", 8, account="b"), runs=(running("r", 8, until_s=900),))
    found = forecast(state, CONFIG, "w")
    assert found.starts_at_s == 900 + CONFIG.grace_s
    assert found.reserved is not None


def test_who_starts_before_is_waited_for() -> None:
    state = cluster(waiting("v", 8, minimum_s=3600), waiting("w", 8))
    assert forecast(state, CONFIG, "w", limits_s={"v": 1000}).starts_at_s == 1000


def test_it_starts_no_earlier_than_it_may() -> None:
    assert forecast(cluster(waiting("w", 1, eligible_s=500)), CONFIG, "w").starts_at_s == 500


def test_it_looks_no_further_than_it_was_told() -> None:
    state = cluster(waiting("w", 1, eligible_s=500))
    assert forecast(state, CONFIG, "w", steps_max=1).starts_at_s is None


def test_what_is_over_is_asked_for_no_more_and_credits_go_on() -> None:
    config = replace(CONFIG, division="credits")
    asked_milli = {"a": 8000, "b": 2000}
    ahead = _Ahead(
        replace(
            cluster(runs=(running("r", 4, until_s=0), running("s", 2, until_s=0, account="b"))),
            accounts=tuple(
                AccountState(account=name, share=1, demand_milli=milli) for name, milli in asked_milli.items()
            ),
            credits_gpu_ms={"a": 5000, "b": -5000},
        ),
        config,
        {"r": 600},
    )
    expected = {"a": 5000, "b": -5000}
    while ahead.at_s < 600:
        began_s, cycle = ahead.at_s, run_cycle(ahead.state(), config)
        flow = {row.account: row.credit.flow_milli for row in cycle.allocations if row.credit is not None}
        assert flow["b"] > 0 > flow["a"]  # b lends what it does not ask for
        assert ahead.advance(cycle)
        expected = {name: has + (ahead.at_s - began_s) * flow[name] for name, has in expected.items()}
    assert ahead.state().credits_gpu_ms == expected
    assert {one.account: one.demand_milli for one in ahead.state().accounts} == {"a": 4000, "b": 2000}


def test_funding_needs_a_minimum_runtime_and_shares() -> None:
    tree = shares_of(cluster(waiting("w", 1, account="nobody")))
    assert tree.is_funded("a", 60)
    assert not tree.is_funded("a", 0)
    assert not tree.is_funded("nobody", 60)


def test_a_run_that_had_to_leave_waits_for_the_model_that_it_had() -> None:
    """w takes r's host, and r does not go on beside it on a host of another model, however free that is."""
    state = replace(
        cluster(waiting("w", 8, account="b"), runs=(running("r", 8, until_s=0),)),
        hosts=(
            HostState(host="h", gpus_milli=8000, gpu_model="x"),
            HostState(host="other", gpus_milli=8000, gpu_model="y"),
        ),
        pending=(replace(waiting("w", 8, account="b"), gpu_model="x"),),
    )
    ahead = _Ahead(state, CONFIG, {})
    for _ in range(4):
        cycle = run_cycle(ahead.state(), CONFIG)
        if any(run.workload == "r" and "other" in run.placement for run in ahead.state().running):
            pytest.fail("r went on, on a host of model y")
        again = [work for work in ahead.state().pending if work.workload == "r"]
        if again:
            assert again[0].gpu_model == "x"
            return
        assert ahead.advance(cycle)
    pytest.fail("r did not have to leave")
