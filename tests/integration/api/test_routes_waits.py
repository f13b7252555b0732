"""Waits over HTTP: all waits of a key together, cut to the caller's subtree."""

from collections.abc import Callable

import pytest
from fastapi.testclient import TestClient

from gpuledger.identity.roles import Role


def rows(api: TestClient, **asked: str) -> dict[str, dict[str, object]]:
    params = {"cluster": "alpha", **{name.rstrip("_"): value for name, value in asked.items()}}
    found = api.get("/v1/waits", params=params).json()["rows"]
    return {row["key"]: row for row in found}


def test_sizes_from_the_smallest_up_with_quantiles_of_all_their_waits(api: TestClient) -> None:
    found = rows(api)
    assert list(found) == ["<1", "3-4", "17-32"]
    assert found["3-4"] == {
        "key": "3-4", "request_count": 5, "started_count": 4, "at_once_count": 1, "waiting_count": 1,
        "withdrawn_count": 0,
        # 0, 60 and 120 s, one that waits still after 300 s, 600 s: three in five are over after 120 s.
        "p50_s": 120, "p90_s": 600, "p99_s": 600, "longest_s": 600,
    }  # fmt: skip
    assert found["17-32"]["p50_s"] is None
    assert found["17-32"]["longest_s"] == 7200


def test_every_key(api: TestClient) -> None:
    assert list(rows(api, by="class")) == ["allocated", "unallocated"]
    assert list(rows(api, by="account")) == ["alpha/language/dialogue", "alpha/robotics"]
    assert list(rows(api, by="day")) == ["2026-03-09", "2026-03-10"]
    assert list(rows(api, by="turn")) == ["first"]
    assert rows(api, by="total")["total"]["request_count"] == 7


def test_the_window_is_one_of_days_and_half_open(api: TestClient) -> None:
    assert list(rows(api, by="day", from_="2026-03-09", to="2026-03-10")) == ["2026-03-09"]
    assert list(rows(api, by="day", from_="2026-03-09T12:00:00Z", to="2026-03-10T00:00:01Z")) == [
        "2026-03-09", "2026-03-10",
    ]  # fmt: skip
    assert rows(api, from_="2026-03-11") == {}


def test_a_class_and_an_account_cut_it(api: TestClient) -> None:
    assert list(rows(api, class_="unallocated")) == ["17-32"]
    assert list(rows(api, account="alpha/language")) == ["3-4"]
    answer = api.get("/v1/waits", params={"cluster": "alpha", "class": "allocated"}).json()
    assert (answer["class"], answer["by"], answer["timezone"]) == ("allocated", "size", "UTC")
    assert answer["as_of"] == "2026-03-11T06:00:00Z"


def test_nothing_rolled_up_is_no_row(api: TestClient) -> None:
    assert api.get("/v1/waits", params={"cluster": "gamma"}).json()["rows"] == []


@pytest.mark.parametrize(
    ("path", "status", "word"),
    [
        ("/v1/waits?by=week", 422, "/docs"),
        ("/v1/waits?class=all", 422, "/docs"),
        ("/v1/waits?as_of=2026-02-02", 422, "ask for a later time"),
        ("/v1/waits?cluster=delta", 404, "alpha, beta, gamma"),
        ("/v1/waits?account=alpha/robotic", 404, "did you mean alpha/robotics"),
    ],
)
def test_a_question_that_cannot_be_answered_says_how_to_ask(
    api: TestClient, path: str, status: int, word: str
) -> None:
    answer = api.get(path)
    assert answer.status_code == status
    assert word in answer.json()["hint"]


def test_who_has_a_subtree_is_answered_of_it(
    guarded: TestClient, shown: Callable[[Role], dict[str, str]]
) -> None:
    answer = guarded.get("/v1/waits?cluster=alpha", headers=shown(Role.MANAGER))
    assert answer.json()["account"] == "org/vision"
    refused = guarded.get("/v1/waits?cluster=alpha&account=org/speech", headers=shown(Role.MANAGER))
    assert refused.status_code == 403
