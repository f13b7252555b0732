"""Waste over HTTP: by account, person and day, beside the budget, cut to who may see what."""

from collections.abc import Callable
from typing import Any

import pytest
from fastapi.testclient import TestClient
from tests.e2e.seeding import HOUR

from gpuledger.identity.roles import Role


def asked(api: TestClient, **params: str) -> dict[str, Any]:
    answer: dict[str, Any] = api.get("/v1/waste", params={"cluster": "alpha", **params}).json()
    return answer


def test_accounts_who_squatted_most_first_with_the_share_of_their_budgets(api: TestClient) -> None:
    answer = asked(api)
    assert (answer["period"], answer["periods"], answer["from"]) == (
        "2026-02", ["2026-02"], "2026-02-01T00:00:00Z",
    )  # fmt: skip
    first, second = answer["rows"]
    assert (first["key"], first["account"], first["cluster"]) == ("alpha/robotics", "alpha/robotics", "alpha")
    assert (first["allocated_gpu_ms"], first["idle_gpu_ms"], first["squatted_gpu_ms"]) == (
        150 * HOUR, 40 * HOUR, 30 * HOUR,
    )  # fmt: skip
    assert (first["coverage"], first["idle_of_sampled"]) == ("0.8667", "0.3077")
    # 30 of 4 GPUs x 672 h.
    assert (first["budget_gpu_ms"], first["squatted_of_budget"]) == (2688 * HOUR, "0.0112")
    assert first["gpu_hours"]["squatted"] == "30.000"
    assert (second["key"], second["coverage"], second["idle_of_sampled"]) == (
        "alpha/biology/folding", "0.0000", None,
    )  # fmt: skip


def test_people_stand_beside_the_accounts_that_paid(api: TestClient) -> None:
    found = [(row["key"], row["account"], row["idle_gpu_ms"]) for row in asked(api, by="user")["rows"]]
    assert found[0] == ("u1", "alpha/robotics", 40 * HOUR)
    assert {key for key, _, _ in found} == {"u1", "u2", "u3"}


def test_days_in_their_order_and_all_together(api: TestClient) -> None:
    days = asked(api, by="day")["rows"]
    assert [(row["key"], row["budget_gpu_ms"]) for row in days] == [
        ("2026-02-05", None),
        ("2026-02-06", None),
    ]
    (total,) = asked(api, by="total")["rows"]
    assert (total["key"], total["account"], total["allocated_gpu_ms"]) == ("total", None, 170 * HOUR)
    assert total["budget_gpu_ms"] == 64 * 672 * HOUR


def test_an_account_is_it_and_what_is_below_it(api: TestClient) -> None:
    assert [row["key"] for row in asked(api, account="alpha/biology")["rows"]] == ["alpha/biology/folding"]
    (total,) = asked(api, by="total", account="alpha/biology")["rows"]
    assert total["budget_gpu_ms"] == 8 * 672 * HOUR


def test_nothing_rolled_up_has_no_period(api: TestClient) -> None:
    answer = asked(api, cluster="gamma")
    assert (answer["rows"], answer["period"], answer["periods"], answer["from"]) == ([], None, [], None)


@pytest.mark.parametrize(
    ("path", "status", "word"),
    [
        ("/v1/waste?cluster=alpha&period=2019-01", 404, "2026-02 to 2026-02"),
        ("/v1/waste?period=January", 422, "/docs"),
        ("/v1/waste?as_of=2026-02-02", 422, "ask for a later time"),
    ],
)
def test_a_question_that_cannot_be_answered_says_how_to_ask(
    api: TestClient, path: str, status: int, word: str
) -> None:
    answer = api.get(path)
    assert answer.status_code == status
    assert word in answer.json()["hint"]


def test_whose_work_it_is_is_not_for_viewers(
    guarded: TestClient, shown: Callable[[Role], dict[str, str]]
) -> None:
    assert guarded.get("/v1/waste?cluster=alpha", headers=shown(Role.VIEWER)).status_code == 200
    assert guarded.get("/v1/waste?cluster=alpha&by=user", headers=shown(Role.VIEWER)).status_code == 403
    assert guarded.get("/v1/waste?cluster=alpha&by=user", headers=shown(Role.MANAGER)).status_code == 200
