"""Balances over HTTP say what the book says."""

import datetime as dt

from fastapi.testclient import TestClient
from tests.e2e.seeding import HOUR
from tests.integration.ledger.books import CLUSTER, NOON, Ledger, granted, told

from gpuledger.api.app import create_app
from gpuledger.events.budget import AccountCreated
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


def test_an_hour_later_the_same_figures_need_not_be_sent_again(api: TestClient, clock: FixedClock) -> None:
    first = api.get("/v1/balances")
    clock.at += dt.timedelta(hours=1)
    again = api.get("/v1/balances", headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    other = api.get("/v1/usage", headers={"If-None-Match": first.headers["etag"]})
    assert other.status_code == 200


def test_what_was_believed_then_is_asked_by_recorded_time(database_url: str) -> None:
    ledger = Ledger(database_url)
    ledger.append(told(0, AccountCreated(account="org/vision")))
    ledger.append(told(0, granted("org/vision", "2026-12", 5 * HOUR)))
    ledger.clock = FixedClock(NOON + dt.timedelta(days=2))
    ledger.append(told(0, granted("org/vision", "2026-12", 7 * HOUR)))
    then = "2026-12-02T12:00:00Z"
    with TestClient(create_app(ledger.engine, ledger.clock)) as api:
        one, every, now = (
            api.get(path, params=params).json()
            for path, params in (
                ("/v1/balances/org/vision", {"cluster": CLUSTER, "as_of": then}),
                ("/v1/balances", {"as_of": then}),
                ("/v1/balances/org/vision", {"cluster": CLUSTER}),
            )
        )
        before = api.get("/v1/balances", params={"as_of": "2026-11-30T00:00:00Z"}).json()
    ledger.engine.dispose()
    assert (one["granted_gpu_ms"], now["granted_gpu_ms"]) == (5 * HOUR, 12 * HOUR)
    assert [b["granted_gpu_ms"] for b in every["balances"]] == [5 * HOUR]
    assert (one["as_of"], every["as_of"], before["balances"]) == (then, then, [])
