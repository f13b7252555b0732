"""Balances over HTTP say what the book says."""

import datetime as dt

from fastapi.testclient import TestClient
from tests.e2e.seeding import HOUR
from tests.integration.ledger.books import CLUSTER, NOON, Ledger, ended, granted, started, submitted, told

from gpuledger.api.app import create_app
from gpuledger.events.budget import AccountCreated
from gpuledger.kernel.clock import FixedClock, seconds

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


def test_what_is_kept_of_a_second_is_what_the_books_say(database_url: str) -> None:
    """An open run, a grant, a hold that lapses, an inner account: after each step as it is read anew."""
    ledger = Ledger(database_url)
    accounts = ("org", "org/vision", "org/speech")
    ledger.append(*(told(0, AccountCreated(account=account)) for account in accounts))
    now_s = seconds(NOON)
    steps = (
        [told(0, granted("org/vision", "2026-12", 5 * HOUR))],
        [told(now_s, submitted()), told(now_s, started())],
        [],
        [
            told(0, granted("org/speech", "2026-12", 7 * HOUR)),
            told(0, granted("org/vision", "2027-01", HOUR)),
        ],
        [told(now_s + 600, ended())],
        [],
    )
    seen = []
    with TestClient(create_app(ledger.engine, ledger.clock)) as api:
        for events in steps:
            ledger.clock.at += dt.timedelta(minutes=len(seen) % 2)  # every other step within the same second
            if events:
                ledger.append(*events)
            for account in accounts[: 3 if len(seen) > 2 else 2]:
                told_now = api.get(f"/v1/balances/{account}", params={"cluster": CLUSTER}).json()
                again = api.get(f"/v1/balances/{account}", params={"cluster": CLUSTER}).json()
                anew = ledger.balance(account, None, now=ledger.clock.now().isoformat()).as_json()
                assert told_now == again == {**anew, "as_of": told_now["as_of"]}
            everybody = api.get("/v1/balances", params={"period": "2026-12"}).json()["balances"]
            assert {row["period"] for row in everybody} == {"2026-12"}
            seen.append([row["charged_gpu_ms"] for row in everybody])
        later = api.get("/v1/balances/org/vision", params={"cluster": CLUSTER, "period": "2027-01"}).json()
        nobody = api.get("/v1/balances/org/visio", params={"cluster": CLUSTER})
        nothing = api.get("/v1/balances/org/speech", params={"cluster": CLUSTER, "period": "2027-01"})
    ledger.engine.dispose()
    assert later["granted_gpu_ms"] == HOUR
    assert (nobody.status_code, nothing.status_code) == (404, 404)
    assert "org/vision" in nobody.json()["hint"]
    assert len({tuple(row) for row in seen}) > 2, seen


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


def test_a_tree_sums_what_is_below_each_node(api: TestClient) -> None:
    tree = api.get("/v1/balance-trees/alpha").json()
    nodes = {node["account"]: node for node in tree["nodes"]}
    assert list(nodes) == ["alpha", "alpha/language", DIALOGUE, "alpha/robotics"]
    assert [(node["depth"], node["is_leaf"]) for node in tree["nodes"]] == [
        (0, False), (1, False), (2, True), (1, True),
    ]  # fmt: skip
    for account, node in nodes.items():
        alone = api.get(f"/v1/balances/{account}").json()
        assert alone == {**{key: node[key] for key in alone if key != "as_of"}, "as_of": tree["as_of"]}
    assert nodes["alpha"]["charged_gpu_ms"] == sum(
        nodes[leaf]["charged_gpu_ms"] for leaf in (DIALOGUE, "alpha/robotics")
    )
    below = api.get("/v1/balance-trees/alpha/language", params={"period": tree["period"]}).json()
    assert [node["account"] for node in below["nodes"]] == ["alpha/language", DIALOGUE]
    assert below["nodes"][0]["depth"] == 0
    assert api.get("/v1/balance-trees/alpha/lang").status_code == 404
    assert api.get("/v1/balance-trees/alpha", params={"period": "2020-01"}).status_code == 404
