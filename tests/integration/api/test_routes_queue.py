"""The queue over HTTP: everybody's places, one's own work."""

from collections.abc import Callable

from fastapi.testclient import TestClient
from tests.integration.policy.worlds import CLOCK, NOON, contended

from gpuledger.api.app import create_app
from gpuledger.api.examples import QUEUE
from gpuledger.database.engine import make_engine
from gpuledger.identity.roles import Role

Shown = Callable[[Role], dict[str, str]]


def test_the_queue_has_the_keys_of_the_example_and_is_read_in_pages(database_url: str) -> None:
    engine = make_engine(database_url)
    world = contended(engine)
    cycle = world.cycle(NOON)["cycle"]
    with TestClient(create_app(engine, CLOCK)) as client:
        whole = client.get("/v1/queue", params={"cluster": "c"}).json()
        first = client.get("/v1/queue", params={"cluster": "c", "limit": 2}).json()
        rest = client.get("/v1/queue", params={"cluster": "c", "limit": 2, "after": first["next"]}).json()
        own = client.get("/v1/queue", params={"cluster": "c", "account": "c/a"}).json()
        nobody = client.get("/v1/queue", params={"cluster": "c", "account": "c/x"})
        before = client.get("/v1/queue", params={"cluster": "c", "as_of": "2026-01-01"}).json()
    engine.dispose()
    assert whole.keys() == QUEUE.keys()
    assert all(row.keys() == QUEUE["rows"][0].keys() for row in whole["rows"])
    assert whole["cycle"] == cycle
    assert [row["position"] for row in whole["rows"]] == [1, 2, 3]
    assert first["rows"] + rest["rows"] == whole["rows"]
    assert rest["next"] is None
    assert [(row["workload"], row["position"]) for row in own["rows"]] == [
        (row["workload"], row["position"]) for row in whole["rows"] if row["account"] == "c/a"
    ]
    assert nobody.status_code == 404
    assert (before["rows"], before["cycle"]) == ([], None)


def test_a_researcher_sees_the_work_of_the_team_alone(guarded: TestClient, shown: Shown) -> None:
    asked = {"cluster": "alpha"}
    told = guarded.get("/v1/queue", params=asked, headers=shown(Role.RESEARCHER)).json()
    every = guarded.get("/v1/queue", params=asked, headers=shown(Role.AUDITOR)).json()
    assert [row["workload"] for row in told["rows"]] == ["waits-video"]
    assert {row["workload"] for row in every["rows"]} == {"waits-video", "waits-faces", "waits-speech"}
    assert told["reason"] == "the policy has not run for this cluster"
