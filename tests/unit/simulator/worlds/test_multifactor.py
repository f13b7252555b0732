"""Slurm-like priorities and backfill, in cases by hand."""

from collections.abc import Sequence
from typing import Any

import pytest
from tests.simulating import T0, job, scenario

from gpuledger.kernel.errors import Refused
from gpuledger.simulator.engine import simulate
from gpuledger.simulator.facts import Fact, Left, Started, Submitted, Told, UserAsked
from gpuledger.simulator.jobs import Job
from gpuledger.simulator.scenario import AccountSpec, FaultModel
from gpuledger.simulator.worlds.multifactor import Multifactor
from gpuledger.simulator.worlds.protocol import Cluster, Host, Waiting

ACCOUNTS = (AccountSpec(account="org/a", share=1), AccountSpec(account="org/b", share=1))
BY_AGE = {"fair_weight": 0, "size_weight": 0}


def facts(jobs: Sequence[Job], settings: dict[str, int] | None = None, **more: Any) -> list[Fact]:  # noqa: ANN401 - what a scenario takes
    """A pass of backfill whenever something happened, unless given."""
    worlds = {"multifactor": {"backfill_s": 1, **(settings or {})}}
    played = scenario(jobs, worlds=worlds, accounts=ACCOUNTS, **more)
    return list(simulate(played, Multifactor(played, 1)))


def starts(jobs: Sequence[Job], settings: dict[str, int] | None = None, **more: Any) -> dict[str, int]:  # noqa: ANN401 - what a scenario takes
    return {fact.job: fact.at_s - T0 for fact in facts(jobs, settings, **more) if isinstance(fact, Started)}


def limited(name: str, gpus: float, work_s: int, *, at_s: int = 0, **more: Any) -> Job:  # noqa: ANN401 - what a job takes
    return job(name, gpus, work_s, at_s=at_s, time_limit_s=more.pop("limit_s", work_s), **more)


def test_who_used_less_comes_first_whatever_users_state() -> None:
    """ann's account had the host before. bob asks later, and for a lower priority."""
    jobs = [
        limited("before", 8, 1000, user="ann", account="org/a"),
        limited("ann", 8, 100, at_s=10, user="ann", account="org/a", priority=9),
        limited("bob", 8, 100, at_s=20, user="bob", account="org/b"),
    ]
    assert starts(jobs) == {"before": 0, "bob": 1000, "ann": 1100}


def test_old_use_is_forgotten() -> None:
    """bob used 200 GPU-hours half a day ago, ann 100 just now; with an hour's half-life his weigh nothing."""
    jobs = [
        limited("bob0", 8, 20_000, user="bob", account="org/b"),
        limited("ann0", 8, 10_000, at_s=40_000, user="ann", account="org/a"),
        limited("ann", 8, 100, at_s=41_000, user="ann", account="org/a"),
        limited("bob", 8, 100, at_s=42_000, user="bob", account="org/b"),
    ]
    decays, keeps = starts(jobs, {"half_life_s": 3600}), starts(jobs, {"half_life_s": 0})
    assert (decays["bob"], decays["ann"]) == (50_000, 50_100)
    assert (keeps["bob"], keeps["ann"]) == (50_100, 50_000)


def test_the_larger_comes_first_where_size_counts() -> None:
    jobs = [limited("runs", 8, 1000), limited("small", 6, 100, at_s=1), limited("large", 8, 100, at_s=2)]
    assert starts(jobs, {"fair_weight": 0, "age_weight": 0}) == {"runs": 0, "large": 1000, "small": 1100}
    assert starts(jobs, BY_AGE) == {"runs": 0, "small": 1000, "large": 1100}


def test_an_order_stands_until_it_is_computed_anew() -> None:
    """ann asks first; what bob used less shows only when factors are computed, which they never are again."""
    jobs = [
        limited("before", 8, 1000, user="ann", account="org/a"),
        limited("ann", 8, 100, at_s=10, user="ann", account="org/a"),
        limited("bob", 8, 100, at_s=20, user="bob", account="org/b"),
    ]
    assert starts(jobs, {"compute_s": 80_000}) == {"before": 0, "ann": 1000, "bob": 1100}


def test_a_short_one_overtakes_and_a_long_one_does_not() -> None:
    jobs = [
        limited("runs", 6, 100),
        limited("first", 8, 50, at_s=1),
        limited("long", 2, 99, at_s=2),
        limited("short", 2, 90, at_s=3),
    ]
    assert starts(jobs, BY_AGE) == {"runs": 0, "first": 100, "short": 3, "long": 150}


def test_without_reservations_small_ones_go_first_for_ever() -> None:
    """Two GPUs at a time are asked for, each for 100; one who needs all eight gets them only with a reservation."""
    jobs = [limited("whole", 8, 50, at_s=10)] + [limited(f"s{n:03}", 2, 100, at_s=20 * n) for n in range(200)]
    jobs.sort(key=lambda each: each.submitted_s)
    assert starts(jobs, {**BY_AGE, "reservations": 0})["whole"] > 4000
    assert starts(jobs, BY_AGE)["whole"] <= 120


def test_several_who_wait_have_a_reservation_each() -> None:
    """``second`` needs h1 at 200. With one reservation ``long`` may have it until 700."""
    jobs = [
        limited("a", 8, 100),
        limited("b", 4, 200),
        limited("first", 8, 1000, at_s=1),
        limited("second", 8, 50, at_s=2),
        limited("long", 4, 600, at_s=3),
    ]
    one = starts(jobs, {**BY_AGE, "reservations": 1}, hosts=(8, 8))
    two = starts(jobs, {**BY_AGE, "reservations": 2}, hosts=(8, 8))
    assert (one["long"], one["second"]) == (3, 603)
    assert (two["long"], two["second"]) == (250, 200)


def test_a_pass_looks_at_so_many_jobs() -> None:
    jobs = [
        limited("runs", 6, 1000),
        limited("first", 8, 50, at_s=1),
        limited("second", 8, 50, at_s=1),
        limited("ends", 2, 10, at_s=2),
        limited("short", 1, 20, at_s=3),
        limited("other", 1, 20, at_s=3),
    ]
    assert starts(jobs, {**BY_AGE, "tested": 2})["short"] > 1000
    assert starts(jobs, BY_AGE)["short"] == 12


def test_a_pass_comes_at_most_so_often_but_who_is_first_starts_at_once() -> None:
    jobs = [
        limited("runs", 6, 1000),
        limited("first", 8, 50, at_s=1),
        limited("ends", 2, 10, at_s=1),
        limited("short", 2, 20, at_s=2),
    ]
    found = starts(jobs, {**BY_AGE, "backfill_s": 300})
    assert found["first"] == 1000
    assert found["short"] == 301


def test_nobody_is_taken_and_nobody_is_asked() -> None:
    """A draining host is repaired when its runs are over."""
    jobs = [
        limited(f"j{n}", 1 + n % 8, 500 + 97 * n % 3000, at_s=60 * n, user=f"u{n % 5}") for n in range(100)
    ]
    found = facts(jobs, hosts=(8, 8), days=2, faults=FaultModel(drain_mtbf_s=20_000))
    assert not [fact for fact in found if isinstance(fact, Told | UserAsked)]
    assert {fact.why for fact in found if isinstance(fact, Left)} == {"done"}
    assert {fact.job for fact in found if isinstance(fact, Started)} == {each.job for each in jobs}


def test_what_was_used_fades_though_nobody_waits() -> None:
    """A week of use with a half-life of a day, looked at each hour: 1 / ln 2 days of it are left, less the tail."""
    day_s, runs = 86_400, limited("j", 8, 800_000)
    told = scenario([runs], worlds={"multifactor": {"half_life_s": day_s}}, days=9)
    world, placement = Multifactor(told, 0), {told.hosts[0].host: 8_000}
    hosts = {
        spec.host: Host(host=spec.host, gpus_milli=8_000, gpu_model=spec.gpu_model, free_milli=8_000)
        for spec in told.hosts
    }
    cluster = Cluster(cluster="c", at_s=T0, hosts=hosts, waiting={"j": Waiting(job=runs, since_s=T0)})
    world.told(Submitted(at_s=T0, job=runs))
    world.decide(cluster)
    cluster.waiting.clear()
    world.told(Started(at_s=T0, job="j", run=1, placement=placement, klass="allocated"))
    for hour in range(1, 7 * 24 + 1):
        cluster.at_s = T0 + hour * 3_600
        world.decide(cluster)
    (used,) = (use.gpu_ms for use in world._usage._uses.values())
    assert 1.35 < used / (8_000 * day_s) < 1.45


def test_a_setting_that_is_not_known_is_refused() -> None:
    with pytest.raises(Refused, match="the world multifactor has no setting 'weight'"):
        facts([], {"weight": 1})
