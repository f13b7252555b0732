"""From what a scenario file says of people to users."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import pytest

from gpuledger.kernel.errors import Refused
from gpuledger.simulator.demand.described import demand
from gpuledger.simulator.demand.listed import Listed, Together
from gpuledger.simulator.jobs import Job
from gpuledger.simulator.scenario_keys import AccountKeys, DemandKeys

MIX = {"small": {"gpus": 1, "work": 600}, "gang": {"gpus": {16: 1}, "work": 600, "part": 0.5}}


def first(
    accounts: dict[str, dict[str, Any]],
    supply: int = 1000,
    seed: int = 1,
    **closed_loop: Any,  # noqa: ANN401 - whatever stands in a file
) -> list[Job]:
    keys = DemandKeys.model_validate({"closed_loop": {"mix": MIX, **closed_loop}})
    made = demand(
        keys,
        {path: AccountKeys.model_validate(account) for path, account in accounts.items()},
        supply_milli=supply * 1000,
        start_s=0,
        trace=None,
    )
    return list(made(seed).first())


def by(jobs: list[Job], key: str) -> dict[str, int]:
    sums: dict[str, int] = defaultdict(int)
    for job in jobs:
        sums[getattr(job, key)] += job.gpus_milli // 1000
    return dict(sums)


ONLY_SMALL = {"mix": ["small"]}


def test_the_stock_is_shared_by_demand_and_sums_to_the_multiple_of_the_supply() -> None:
    accounts = {
        "org/a": {"users": 4, "demand": 3, **ONLY_SMALL},
        "org/b": {"users": 9, "demand": 1, **ONLY_SMALL},
    }
    assert by(first(accounts, stock=2), "account") == pytest.approx({"org/a": 1500, "org/b": 500}, abs=9)


def test_shares_have_no_part_in_what_people_ask_for() -> None:
    accounts = {"a": {"users": 3, "share": 1}, "b": {"users": 3, "share": 1}}
    richer = {"a": {"users": 3, "share": 9}, "b": {"users": 3, "share": 1}}
    assert first(accounts) == first(richer)


def test_without_a_demand_the_number_of_people_counts() -> None:
    accounts = {"a": {"users": 1, **ONLY_SMALL}, "b": {"users": 3, **ONLY_SMALL}}
    assert by(first(accounts, stock=1), "account") == pytest.approx({"a": 250, "b": 750}, abs=3)


def test_a_fixed_stock_comes_first_and_the_others_share_the_rest() -> None:
    accounts = {"a": {"users": 1, "stock_gpus": 600, **ONLY_SMALL}, "b": {"users": 1, **ONLY_SMALL}}
    assert by(first(accounts, stock=2), "account") == {"a": 600, "b": 1400}


def test_with_no_skew_users_are_alike_and_with_some_the_first_asks_for_most() -> None:
    accounts = {"a": {"users": 4, **ONLY_SMALL}}
    assert set(by(first(accounts, skew=0, stock=1), "user").values()) == {250}
    assert by(first(accounts, skew=1, stock=1), "user") == pytest.approx(
        {"a-01": 480, "a-02": 240, "a-03": 160, "a-04": 120}, abs=1
    )


def test_users_are_called_by_their_team_and_by_its_whole_path_where_two_are_alike() -> None:
    accounts = {"x/a": {"users": 1}, "y/a": {"users": 1}, "y/b": {"users": 1}}
    assert by(first(accounts), "user").keys() == {"x.a-01", "y.a-01", "b-01"}


def test_no_two_teams_call_their_users_alike() -> None:
    """With dots ``x/b`` would be called like the team ``x.b``: then it is called by its path."""
    accounts = {"x/b": {"users": 1}, "y/b": {"users": 1}, "x.b": {"users": 1}}
    assert by(first(accounts), "user").keys() == {"x/b-01", "y.b-01", "x.b-01"}


def test_nobody_works_or_waits_for_no_time_at_all() -> None:
    """Whoever did would ask again in the same instant, for ever."""
    none = {"median_s": 0, "most_s": 0}
    jobs = first({"a": {"users": 1}}, mix={"none": {"gpus": 1, "work": none, "patience": none}})
    assert {(job.work_s, job.patience_s) for job in jobs} == {(1, 1)}


def test_a_team_asks_for_its_part_of_the_mix_only() -> None:
    accounts = {"a": {"users": 2, "mix": ["gang"]}, "b": {"users": 2}}
    jobs = first(accounts)
    assert {job.gpus_milli for job in jobs if job.account == "a"} == {16_000}
    assert {job.gpus_milli for job in jobs if job.account == "b"} == {1_000, 16_000}


def test_seasons_of_teams_are_apart() -> None:
    accounts = {name: {"users": 1, **ONLY_SMALL} for name in "abcd"}
    stocks = by(first(accounts, stock=4, season={"swing": 0.5}, spread_hours=0), "account")
    assert len(set(stocks.values())) == 4
    assert sum(stocks.values()) == pytest.approx(4000, rel=0.1)


@pytest.mark.parametrize(
    ("accounts", "more", "message", "hint"),
    [
        ({"a": {"users": 1, "mix": ["smal"]}}, {}, "accounts.a.mix: smal is no kind of work", "did you mean small?"),
        ({"a": {}}, {}, "accounts: nobody works there", "write users: 10"),
        ({"a": {"users": 1}, "a/b": {}}, {}, "accounts.a.users: there are accounts below it", "give the users"),
        (
            {"a": {"users": 1, "stock_gpus": 2000}, "b": {"users": 1}},
            {"stock": 2},
            "demand.closed_loop.stock: 2 times 1000 GPUs leave nothing",
            "raise it",
        ),
        (
            {"a": {"users": 1}},
            {"mix": {"batch": {"gpus": 1, "work": 9, "session": True}}},
            "demand.closed_loop.mix.batch: sessions of that name",
            "another name",
        ),
    ],
)  # fmt: skip
def test_what_does_not_fit_together_is_refused(
    accounts: dict[str, dict[str, Any]], more: dict[str, Any], message: str, hint: str
) -> None:
    with pytest.raises(Refused, match=message) as caught:
        first(accounts, **more)
    assert hint in caught.value.hint


def listed(
    *jobs: dict[str, Any],
    users: int = 0,
    start_s: int = 1000,
    models: Sequence[str] = (),
) -> Any:  # noqa: ANN401 - a demand
    keys = DemandKeys.model_validate({"jobs": list(jobs)})
    return demand(
        keys,
        {"org/a": AccountKeys(users=users)},
        supply_milli=8000,
        start_s=start_s,
        trace=None,
        models=models,
    )


def test_listed_jobs_begin_with_the_simulation() -> None:
    made = listed(
        {"job": "probe", "account": "org/a", "work_s": 60, "at_s": 30, "gpus": 0.5, "count": 2, "every_s": 9}
    )
    jobs = list(made(1).first())
    assert isinstance(made(1), Listed)
    assert [(job.job, job.submitted_s, job.gpus_milli, job.user) for job in jobs] == [
        ("probe-1", 1030, 500, "a"), ("probe-2", 1039, 500, "a"),
    ]  # fmt: skip


def test_listed_jobs_come_beside_people_who_keep_asking() -> None:
    keys = DemandKeys.model_validate(
        {"closed_loop": {"mix": MIX}, "jobs": [{"job": "probe", "account": "a", "work_s": 60}]}
    )
    made = demand(keys, {"a": AccountKeys(users=1)}, supply_milli=8000, start_s=0, trace=None)
    assert isinstance(made(1), Together)
    assert {job.user for job in made(1).first()} == {"a", "a-01"}


def test_a_listed_job_of_no_account_is_refused() -> None:
    with pytest.raises(Refused, match=r"demand\.jobs\.0\.account: org/b is no account") as caught:
        listed({"job": "probe", "account": "org/b", "work_s": 60})
    assert "did you mean org/a" in caught.value.hint


def test_a_name_that_stands_twice_is_refused() -> None:
    probe = {"job": "probe", "account": "org/a", "work_s": 60}
    with pytest.raises(Refused, match=r"demand\.jobs\.1\.job: probe is the name of demand\.jobs\.0, too"):
        listed(probe, {**probe, "at_s": 9_000})


def test_a_model_is_spelt_as_the_hosts_spell_it() -> None:
    probe = {"account": "org/a", "work_s": 60}
    asked = {"a": "H100", "b": "h100", "c": "V100", "d": None}
    made = listed(
        *({"job": name, "gpu_model": model, **probe} for name, model in asked.items()), models=["h100"]
    )
    found = {job.job: job.gpu_model for job in made(1).first()}
    assert found == {"a-1": "h100", "b-1": "h100", "c-1": "V100", "d-1": None}


def test_users_without_a_closed_loop_are_refused() -> None:
    with pytest.raises(Refused, match=r"accounts\.org/a\.users: only demand\.closed_loop has users"):
        listed({"job": "probe", "account": "org/a", "work_s": 60}, users=3)
