"""Balances, usage and allocations over HTTP say what the book says."""

import datetime as dt

import pytest
from fastapi.testclient import TestClient
from tests.e2e.seeding import HOUR, SHARES, START

from gpuledger.kernel.clock import FixedClock

DIALOGUE = "alpha/language/dialogue"


def test_balances_name_their_instant_and_are_filtered(api: TestClient) -> None:
    answer = api.get("/v1/balances").json()
    assert answer["as_of"] == "2026-03-11T12:00:00Z"
    assert [b["account"] for b in answer["balances"]] == [DIALOGUE, "alpha/robotics"]
    below = api.get("/v1/balances", params={"account": "alpha/language"}).json()["balances"]
    assert [b["account"] for b in below] == [DIALOGUE]
    assert api.get("/v1/balances", params={"cluster": "beta"}).json()["balances"] == []
    assert api.get("/v1/balances", params={"period": "2026-01"}).json()["balances"] == []


def test_a_name_that_only_begins_alike_is_not_below(api: TestClient) -> None:
    answer = api.get("/v1/balances", params={"account": "alpha/lang"})
    assert answer.status_code == 404
    assert "alpha/language" in answer.json()["hint"] or answer.json()["hint"]


def test_one_balance_in_both_units(api: TestClient) -> None:
    answer = api.get(f"/v1/balances/{DIALOGUE}").json()
    assert answer["available_gpu_ms"] == -500 * HOUR
    assert answer["available_gpu_hours"] == "-500.000"
    assert answer["binding_account"] == DIALOGUE


def test_an_inner_account_sums_what_is_below_it(api: TestClient) -> None:
    assert api.get("/v1/balances/alpha").json()["charged_gpu_hours"] == "4750.000"


def test_usage_is_keyed_as_asked_and_cut_to_the_window(api: TestClient) -> None:
    whole = api.get("/v1/usage", params={"by": "cluster"}).json()
    assert {row["key"]: row["gpu_hours"] for row in whole["rows"]} == {"alpha": "640.000", "beta": "20.000"}
    half = api.get(
        "/v1/usage", params={"by": "class", "cluster": "alpha", "to": "2026-01-10T05:00:00Z"}
    ).json()
    assert half["total_gpu_ms"] == sum(SHARES.values()) * 5 * HOUR
    assert half["rows"][0]["used_gpu_ms"] is None
    days = api.get("/v1/usage", params={"by": "day", "from": "2026-01-11"}).json()
    assert days["rows"] == []


def test_usage_as_of_says_which_instant_it_believes(api: TestClient) -> None:
    answer = api.get("/v1/usage", params={"by": "month", "as_of": "2026-03-11T06:30:00Z"}).json()
    assert answer["as_of"] == "2026-03-11T06:30:00Z"


def test_the_newest_cycle_under_the_published_keys(api: TestClient) -> None:
    answer = api.get("/v1/allocations/current", params={"cluster": "alpha"}).json()
    assert answer["supply_gpus"] == 64
    assert {a["account"]: a["issued_gpus"] for a in answer["allocations"]} == SHARES


@pytest.mark.parametrize(
    ("path", "hint"),
    [
        ("/v1/allocations/current?cluster=gamma", "gpuledger cycle --cluster gamma"),
        ("/v1/allocations/current?cluster=delta", "known clusters: alpha, beta, gamma"),
        ("/v1/usage?cluster=delta", "known clusters: alpha, beta, gamma"),
        ("/v1/balances?cluster=delta", "known clusters: alpha, beta, gamma"),
        ("/v1/balances/alpha/robotic", "alpha/robotics"),
    ],
)
def test_what_does_not_exist_is_404_with_the_way_on(api: TestClient, path: str, hint: str) -> None:
    answer = api.get(path)
    assert answer.status_code == 404
    assert hint in answer.json()["hint"]


def test_an_hour_later_the_same_figures_need_not_be_sent_again(api: TestClient, clock: FixedClock) -> None:
    first = api.get("/v1/balances")
    clock.at += dt.timedelta(hours=1)
    again = api.get("/v1/balances", headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    other = api.get("/v1/usage", headers={"If-None-Match": first.headers["etag"]})
    assert other.status_code == 200


def test_seeding_starts_on_a_whole_day() -> None:
    assert START.time() == dt.time()
