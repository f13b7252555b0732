"""The newest cycle over HTTP, and what does not exist."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from fastapi.testclient import TestClient
from tests.e2e.seeding import SHARES
from tests.integration.enforce.worlds import HOUR, World
from tests.integration.policy.worlds import CLOCK, NOON, contended
from tests.unit.enforce.told import allocation, leaves, starts

from gpuledger.api.app import create_app
from gpuledger.api.examples import DIRECTIVES
from gpuledger.database.engine import make_engine


def test_the_newest_cycle_under_the_published_keys(api: TestClient) -> None:
    answer = api.get("/v1/allocations/current", params={"cluster": "alpha"}).json()
    assert answer["supply_gpus"] == 64
    assert {a["account"]: a["issued_gpus"] for a in answer["allocations"]} == SHARES


def test_a_cycle_of_the_past_that_is_recorded_later_is_not_the_newest(database_url: str) -> None:
    engine = make_engine(database_url)
    world = contended(engine)
    newest = world.cycle(NOON)["cycle"]
    world.cycle(NOON - 60)
    with TestClient(create_app(engine, CLOCK)) as client:
        for path in ("/v1/allocations/current", "/v1/directives/current"):
            assert client.get(path, params={"cluster": "c"}).json()["cycle"] == newest
    engine.dispose()


def test_orders_come_once_for_a_cursor(api: TestClient) -> None:
    first = api.get("/v1/directives/current", params={"cluster": "alpha"}).json()
    assert (first["cursor"], first["cycle"], first["starts"]) == (1200, "alpha@1773205200", [])
    again = api.get("/v1/directives/current", params={"cluster": "alpha", "after": 1200}).json()
    assert (again["cursor"], again["cycle"]) == (1200, None)
    assert api.get("/v1/directives/current", params={"cluster": "gamma"}).json()["cursor"] is None


def test_orders_have_the_keys_of_the_example_and_an_old_cycle_gives_none(database_url: str) -> None:
    engine = make_engine(database_url)
    world = World(engine)
    for name, minimum_s in (("young", HOUR), ("free", 0)):
        world.submit(name, "c/a", 4, minimum_s=minimum_s)
        world.start(name, "1", 4, "h1")
    world.submit("new", "c/a", 8)
    orders = (starts("new", 1, h2=8000), leaves("young", "1"), leaves("free", "1"))
    world.record(*orders, allocations=(allocation("c", 1_000_000, 16, 16),))
    world.pass_time(HOUR - 9)
    asked = {"cluster": "c", "stale_after_s": HOUR}
    with TestClient(create_app(engine, world.clock)) as client:
        answer = client.get("/v1/directives/current", params=asked).json()
        stale = client.get("/v1/directives/current", params={"cluster": "c"}).json()
    engine.dispose()
    assert answer.keys() == DIRECTIVES.keys()
    assert (answer["stale"], answer["decided_at"]) == (False, "2026-11-30T12:00:00Z")
    named = ("starts", "preemptions", "protected")
    assert {key: [one["workload"] for one in answer[key]] for key in named} == {
        "starts": ["new"], "preemptions": ["free"], "protected": ["young"],
    }  # fmt: skip
    assert all(answer[key][0].keys() == DIRECTIVES[key][0].keys() for key in named)
    assert (stale["stale"], stale["starts"], stale["preemptions"]) == (True, [], [])


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


def test_who_waits_is_told_of_a_cycle_once_it_is_recorded(database_url: str) -> None:
    engine = make_engine(database_url)
    world = contended(engine)
    world.cycle(NOON - 60)
    asked = {"cluster": "c", "stale_after_s": HOUR}
    with TestClient(create_app(engine, CLOCK)) as client, ThreadPoolExecutor(1) as pool:
        cursor = client.get("/v1/directives/current", params=asked).json()["cursor"]
        nothing = client.get("/v1/directives/current", params={**asked, "after": cursor, "wait_s": 1}).json()
        assert (nothing["cursor"], nothing["cycle"]) == (cursor, None)
        waiting = pool.submit(
            client.get, "/v1/directives/current", params={**asked, "after": cursor, "wait_s": 5}
        )
        cycle = world.cycle(NOON)["cycle"]
        assert waiting.result(20).json()["cycle"] == cycle
        refused = client.get("/v1/directives/current", params={**asked, "wait_s": 6})
        assert refused.status_code == 422
    engine.dispose()


def test_allocations_come_once_for_a_cursor_and_are_waited_for(database_url: str) -> None:
    engine = make_engine(database_url)
    world = contended(engine)
    path = "/v1/allocations/current"
    with TestClient(create_app(engine, CLOCK)) as client, ThreadPoolExecutor(1) as pool:
        assert client.get(path, params={"cluster": "c", "after": 0, "wait_s": 1}).status_code == 404
        earlier = world.cycle(NOON - 60)
        first = client.get(path, params={"cluster": "c", "wait_s": 5}).json()
        assert (first["cycle"], len(first["allocations"])) == (earlier["cycle"], len(earlier["allocations"]))
        asked = {"cluster": "c", "after": first["cursor"]}
        nothing = client.get(path, params=asked).json()
        assert (nothing["cursor"], nothing["cycle"], nothing["allocations"]) == (first["cursor"], None, [])
        waiting = pool.submit(client.get, path, params={**asked, "wait_s": 5})
        newest = world.cycle(NOON)
        told = waiting.result(20).json()
        assert (told["cycle"], told["decisions"]) == (newest["cycle"], newest["decisions"])
        assert told["cursor"] > first["cursor"]
        assert client.get(path, params={**asked, "wait_s": 6}).status_code == 422
    engine.dispose()
