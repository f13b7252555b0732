"""``gpuledger fairshare FILE`` on the cases that other schedulers publish, and on the lesson's four teams.

Cases: KAI Scheduler's ``resource_division`` table tests (T...), Kueue's fair-sharing tests and proposal 1714
(Q...), Volcano's namespace fair share, HTCondor's group quotas and priority factors (H...). Where a peer differs on
purpose: tests/unit/policy/test_peer_tables.py.
"""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.commands.running import quick
from tests.unit.policy.test_fair_tree import PLACES, TABLE


def calculated(tmp_path: Path, supply: object, accounts: dict[str, Any], **more: object) -> dict[str, Any]:
    path = tmp_path / "tree.yaml"
    path.write_text(json.dumps({"supply": supply, "accounts": accounts, **more}))  # JSON is YAML
    ran = quick("fairshare", path, "--json", settings={})
    assert ran.status == 0, ran.err
    answer: dict[str, Any] = json.loads(ran.out)
    return answer


def weighing(*shares: float, demand: float = 60) -> dict[str, Any]:
    return {f"q{n}": {"share": share, "demand": demand} for n, share in enumerate(shares)}


@pytest.mark.parametrize(
    ("supply", "accounts", "issued", "idle"),
    [
        pytest.param(
            15, {"a": {"share": 2, "demand": 6}, "b": {"share": 2, "demand": 6}}, "6 6", "3", id="T7"
        ),
        pytest.param(
            12,
            {"a": {"share": 2, "demand": 6, "limit": 5}, "b": {"share": 2, "demand": 6}},
            "5 6",
            "1",
            id="T9",
        ),
        pytest.param(
            11,
            {
                "a": {"share": 2, "demand": 6, "created": "2026-01-02"},
                "b": {"share": 2, "demand": 6, "created": "2026-01-01"},
            },
            "5 6",
            "0",
            id="T11-the-older-gets-the-odd-one",
        ),
        pytest.param(
            9999,
            {
                "a": {"share": 6, "demand": 10_000},
                "b": {"share": 2, "demand": 10_000},
                "c": {"share": 1, "demand": 10_000},
            },
            "6666 2222 1111",
            "0",
            id="T16",
        ),
        pytest.param(
            1000,
            {"a": {"share": 1, "demand": 5000}, "b": {"share": 2, "demand": 5000, "limit": 400}},
            "600 400",
            "0",
            id="T18",
        ),
        pytest.param(
            45,
            {
                "a": {"share": 12, "demand": 32.55},
                "b": {"share": 7, "demand": 9.5},
                "c": {"share": 2, "demand": 1.65, "limit": 2},
            },
            "32.550 9.500 1.650",
            "1.300",
            id="T19",
        ),
        pytest.param(
            5, {"a": {"share": 2, "demand": 3}, "b": {"share": 2, "demand": 3}}, "3 2", "0", id="T20"
        ),
        pytest.param(100, weighing(40, 30, 20, 10), "40 30 20 10", "0", id="lesson"),
        pytest.param(100, weighing(0, 30, 20, 10), "0 50 33 17", "0", id="lesson-one-budget-0"),
        pytest.param(100, weighing(25, 25, 25, 25), "25 25 25 25", "0", id="lesson-equal"),
        pytest.param(100, weighing(40, 30, 20, 10, demand=10), "10 10 10 10", "60", id="lesson-little"),
        pytest.param(100, weighing(0, 0, 0, 0), "0 0 0 0", "100", id="lesson-all-0"),
        pytest.param(
            100,
            {**weighing(40, 30, 20, 10), "q0": {"share": 40, "demand": 10}},
            "10 45 30 15",
            "0",
            id="lesson-surplus-flows",
        ),
    ],
)
def test_flat(tmp_path: Path, supply: int, accounts: dict[str, Any], issued: str, idle: str) -> None:
    answer = calculated(tmp_path, supply, accounts)
    assert (" ".join(answer["issued"][account] for account in sorted(accounts)), answer["idle"]) == (
        issued,
        idle,
    )


def test_kueue_hierarchy_q13(tmp_path: Path) -> None:
    teams = {"chemistry": 1, "physics": 1, "llm": 2}
    research = {f"research/{team}": {"share": share, "demand": 99} for team, share in teams.items()}
    answer = calculated(
        tmp_path, 12, {"best-effort": {"share": 0.5, "demand": 99}, "research": {"share": 1}, **research}
    )
    assert answer["issued"] == {
        "best-effort": "4",
        "research": "8",
        "research/chemistry": "2",
        "research/llm": "4",
        "research/physics": "2",
    }


def test_kueue_cohorts_q15(tmp_path: Path) -> None:
    shares = {"c1/a": 1, "c1/b": 1, "c1/c": 3, "c2/a": 2}
    accounts = {path: {"share": share, "demand": 300} for path, share in shares.items()}
    assert calculated(tmp_path, 300, accounts)["issued"] == {
        "c1": "150",
        "c1/a": "30",
        "c1/b": "30",
        "c1/c": "90",
        "c2": "150",
        "c2/a": "150",
    }


@pytest.mark.parametrize(
    ("queues", "namespaces", "requests", "issued"),
    [
        pytest.param((1, 1), (1, 1, 1, 1), (5, 10, 10, 2), "4 4 6 2", id="queues-1-1"),
        pytest.param((1, 3), (3, 1, 2, 6), (5, 10, 10, 2), "3 1 10 2", id="queues-1-3"),
        pytest.param((1, 3), (3, 1, 2, 6), (5, 10, 5, 20), "3 1 3 9", id="second-queue-asks-5-20"),
    ],
)
def test_volcano_namespaces(
    tmp_path: Path,
    queues: tuple[int, ...],
    namespaces: tuple[int, ...],
    requests: tuple[int, ...],
    issued: str,
) -> None:
    leaves = ("q1/ns1", "q1/ns2", "q2/ns1", "q2/ns2")
    accounts: dict[str, Any] = {f"q{n}": {"share": share} for n, share in enumerate(queues, start=1)}
    for path, share, demand in zip(leaves, namespaces, requests, strict=True):
        accounts[path] = {"share": share, "demand": demand}
    answer = calculated(tmp_path, 16, accounts)
    assert " ".join(answer["issued"][path] for path in leaves) == issued


def htcondor(**groups: tuple[float, float, float | None]) -> dict[str, Any]:
    """Groups with a quota each as share, what they ask for and a limit; __ is a slash."""
    return {
        name.replace("__", "/"): {"share": quota, "demand": asks} | ({} if most is None else {"limit": most})
        for name, (quota, asks, most) in groups.items()
    }


@pytest.mark.parametrize(
    ("supply", "accounts", "issued"),
    [
        pytest.param(30, htcondor(physics=(20, 99, 20), chemistry=(10, 99, 10)), "10 20", id="H1-pool-30"),
        pytest.param(15, htcondor(physics=(20, 99, 20), chemistry=(10, 99, 10)), "5 10", id="H1-pool-15"),
        pytest.param(60, htcondor(physics=(20, 99, 20), chemistry=(10, 99, 10)), "10 20", id="H1-pool-60"),
        pytest.param(
            30,
            htcondor(
                chemistry=(0.33334, 99, None),
                physics=(0.66667, 0, None),
                physics__hep=(0.75, 99, None),
                physics__lep=(0.25, 99, None),
            ),
            "10 20 15 5",
            id="H2-fractions-below-fractions",
        ),
        pytest.param(
            30,
            htcondor(
                chemistry=(10, 99, None), physics=(20, 0, 20), physics__hep=(15, 60, None), physics__lep=(5, 0, None)
            ),
            "10 20 20 0",
            id="H3-a-group-that-takes-no-surplus-is-a-limit",
        ),
        pytest.param(30, htcondor(a=(1 / 1000, 99, None), b=(1 / 2000, 99, None)), "20 10", id="H7-factors"),
        pytest.param(
            70, htcondor(a=(1 / 5, 99, None), b=(1 / 10, 99, None), c=(1 / 20, 99, None)), "40 20 10",
            id="H8-priorities",
        ),
    ],
)  # fmt: skip
def test_htcondor_groups_and_priorities(
    tmp_path: Path, supply: int, accounts: dict[str, Any], issued: str
) -> None:
    answer = calculated(tmp_path, supply, accounts)
    assert " ".join(answer["issued"][path] for path in sorted(accounts)) == issued


def test_a_correction_inside_a_department_of_a_tenth_is_as_strong_as_at_the_top(tmp_path: Path) -> None:
    """K9: children of a department that owns 10 % of 100 GPUs; one used all of it, the other nothing."""
    pair = {"a": {"demand": 100, "used_gpu_hours": 1680}, "b": {"demand": 100}}
    alone = calculated(tmp_path, 10, pair)
    inside = calculated(
        tmp_path,
        100,
        {
            "dept": {"share": 1},
            "rest": {"share": 9, "demand": 100, "used_gpu_hours": 15_120},
            **{f"dept/{child}": figures for child, figures in pair.items()},
        },
    )
    assert alone["issued"] == {"a": "1", "b": "9"}
    assert [inside["issued"][f"dept/{child}"] for child in "ab"] == ["1", "9"]
    assert inside["order"] == ["rest", "dept/b", "dept/a"]  # equal ratios: rest is short of more GPU-time


def test_a_limit_of_an_inner_account_holds_for_all_below_it(tmp_path: Path) -> None:
    answer = calculated(
        tmp_path,
        100,
        {"a": {"limit": 30}, "a/x": {"demand": 50}, "a/y": {"demand": 50}, "b": {"demand": 20}},
    )
    assert answer["issued"] == {"a": "30", "a/x": "15", "a/y": "15", "b": "20"}
    assert answer["idle"] == "50"


def test_order_lists_leaves_and_issued_lists_all(tmp_path: Path) -> None:
    answer = calculated(
        tmp_path,
        10,
        {
            "a/x": {"demand": 5, "used_gpu_hours": 5},
            "a/y": {"demand": 5, "used_gpu_hours": 4},
            "b": {"demand": 5, "used_gpu_hours": 3},
        },
        window_gpu_hours=20,
    )
    assert answer["order"] == ["b", "a/y", "a/x"]
    assert set(answer["issued"]) == {"a", "a/x", "a/y", "b"}


def test_fair_tree_mode_orders_as_slurm_does(tmp_path: Path) -> None:
    """Part of Slurm's table of 21 users (all of it: tests/unit/policy/test_fair_tree.py)."""
    path = tmp_path / "tree.yaml"
    path.write_text(
        """
        supply: 10
        mode: fair-tree
        accounts:
          ad/ud1: {share: parent, used_gpu_hours: 20}
          ad/ud3: {share: 50, used_gpu_hours: 25}
          ad/ada: {share: parent}
          ad/ada/uda2: {share: 30, used_gpu_hours: 10, demand: 9}
          ad/ada/uda3: {share: 50, used_gpu_hours: 35}
        """
    )
    answer = json.loads(quick("fairshare", path, "--json", settings={}).out)
    assert answer["order"] == ["ad/ud1", "ad/ada/uda2", "ad/ud3", "ad/ada/uda3"]
    assert answer["factors"] == {
        "ad/ud1": "1.000000",
        "ad/ada/uda2": "0.750000",
        "ad/ud3": "0.500000",
        "ad/ada/uda3": "0.250000",
    }
    shown = quick("fairshare", path, settings={}).out
    assert ["uda2", "37.50", "%", "9", "-", "10.0", "0.0", "0.750000", "0", "2"] in [
        line.split() for line in shown.splitlines()
    ]


def test_the_policys_own_order_is_fair_trees_level_by_level(tmp_path: Path) -> None:
    """All of Slurm's table of 21 users in the mode window: accounts that are ``parent`` in it are taken out by hand.

    What their users used is ad's own, and their users, of whom such a share says nothing, are left out. Each level is
    ordered alike. ag/ug1 and ag/aga tie: here one comes with all that is below it, there they are merged.
    """
    rows = [(path.replace("ad/ada/", "ad/"), share, used) for path, share, used in TABLE if share is not None]
    accounts = {path: {"share": share, "used_gpu_hours": used} for path, share, used in rows}
    accounts["ad"]["used_gpu_hours"] = sum(used for _, share, used in TABLE if share is None)
    order = calculated(tmp_path, 1, accounts, window_gpu_hours=240)["order"]
    order.remove("ad/~own")
    places = {path.replace("ad/ada/", "ad/"): place for path, place in PLACES.items()}
    ranked = [places[path] for path in order]
    assert sorted(order) == sorted(path for path, _, _ in rows if path in places)
    assert order[-4:-1] == ["ag/aga/uga1", "ag/aga/uga2", "ag/ug1"]
    assert ranked[-4:-1] == [4, 2, 4]
    del ranked[-2]
    assert ranked == sorted(ranked, reverse=True)


def test_people_see_the_tree(tmp_path: Path) -> None:
    path = tmp_path / "tree.yaml"
    path.write_text(
        "{supply: 9, accounts: {a/x: {demand: 4, limit: 3}, a/y: {demand: 4}, b: {used_gpu_hours: 7}}}"
    )
    ran = quick("fairshare", path, settings={})
    assert ran.status == 0
    assert "9 GPUs, of which 2 idle" in ran.out
    lines = [line.split() for line in ran.out.splitlines()]
    assert ["x", "50.00", "%", "4", "3", "0.0", "378.0", "0.000000", "3", "1"] in lines


def test_a_missing_file_is_bad_usage(tmp_path: Path) -> None:
    ran = quick("fairshare", tmp_path / "none.yaml", settings={})
    assert (ran.status, "no such file" in ran.err) == (2, True)


@pytest.mark.parametrize(
    ("supply", "by", "demands", "issued", "left"),
    [
        pytest.param(
            6, {"start": 100}, ["4 1 1", "0 3 0", "2 2 5"], ["4 1 1", "0 3 0", "1 1 4"], "101 101 101",
            id="what-was-lent-comes-back",
        ),
        pytest.param(
            6, {"start": 100}, ["6 0 0", "6 0 0", "6 6 6", "6 6 6", "0 6 6", "6 6 6"],
            ["6 0 0", "6 0 0", "1 3 2", "1 2 3", "0 3 3", "1 3 2"], None, id="alone-then-contended",
        ),
        pytest.param(
            6, {"start": 100, "shared": 0}, ["6 0 0", "6 0 0", "6 6 6", "6 6 6", "0 6 6", "6 6 6"],
            ["6 0 0", "6 0 0", "2 2 2", "2 2 2", "0 3 3", "2 2 2"], None, id="without-a-pool-no-repayment",
        ),
        pytest.param(
            12, {"start": 1000}, ["12 12 12", "12 0 0", "12 0 0", *["12 12 12"] * 4],
            ["4 4 4", "12 0 0", "12 0 0", *["2 5 5"] * 4], None, id="repayment-within-the-pool",
        ),
    ],
)  # fmt: skip
def test_credits_give_karmas_sequences(
    tmp_path: Path, supply: int, by: dict[str, Any], demands: list[str], issued: list[str], left: str | None
) -> None:  # fmt: skip
    """The reference allocator of Karma (OSDI 2023), as it was run: alpha 0.5 unless it says otherwise."""
    names = "abc"
    answer = calculated(
        tmp_path,
        supply,
        {name: {} for name in names},
        mode="credits",
        credits=by,
        quanta=[dict(zip(names, map(int, wants.split()), strict=True)) for wants in demands],
    )
    found = [" ".join(quantum["issued"][name] for name in names) for quantum in answer["quanta"]]
    assert found == issued
    assert answer["issued"] == answer["quanta"][-1]["issued"]
    if left is not None:
        assert " ".join(answer["quanta"][-1]["credits"][name] for name in names) == left


def test_credits_go_down_the_tree_and_order_the_leaves(tmp_path: Path) -> None:
    path = tmp_path / "tree.yaml"
    path.write_text(
        """
        supply: 8
        mode: credits
        accounts: {p: {}, p/x: {}, p/y: {}, q: {}}
        quanta:
          - {p/x: 8}
          - {p/x: 8, p/y: 8, q: 8}
          - {p: 3, q: 8}
        """
    )
    answer = json.loads(quick("fairshare", path, "--json", settings={}).out)
    first, second, third = answer["quanta"]
    assert first["issued"] == {"p": "8", "p/x": "8", "p/y": "0", "q": "0"}
    # p borrowed all it could, 4 of the pool and 2 of q's; inside it x owes y as much as p owes q.
    assert first["credits"] == {"p": "-4", "p/x": "-4", "p/y": "4", "q": "4"}
    # Of the 2 that p is guaranteed, a whole GPU is nobody's by itself: y has the credits for both.
    assert second["issued"] == {"p": "2", "p/x": "0", "p/y": "2", "q": "6"}
    assert third["issued"]["p/~own"] == "0", "it has no share, so p asks for nothing and lends"
    assert third["issued"]["q"] == "8"
    assert answer["order"] == ["p/y", "p/x", "q"]
    shown = quick("fairshare", path, settings={}).out
    assert "8 GPUs in each of 3 quanta" in shown
    assert ["q", "0", "6", "8", "14", "-2"] in [line.split() for line in shown.splitlines()]


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ("quanta: [{a: 1}]", "quanta: belongs to division by credits"),
        ("credits: {shared: 0.1}", "credits: belongs to division by credits"),
        ("mode: credits\nquanta: [{z: 1}]", "quanta: z is no account"),
        ("mode: credits\nquanta: []", "quanta"),
        ("mode: credits\ncredits: {alpha: 1}", "credits.alpha"),
        ("mode: credits\ncredits: {shared: 1.5}", "credits.shared"),
    ],
)
def test_a_wrong_file_of_quanta_names_the_place(tmp_path: Path, more: str, told: str) -> None:
    path = tmp_path / "tree.yaml"
    path.write_text(f"supply: 1\naccounts: {{a: {{}}}}\n{more}")
    ran = quick("fairshare", path, settings={})
    assert (ran.status, ran.out) == (2, "")
    assert told in ran.err
