"""Hosts, drains and incidents over HTTP: cut to the caller's clusters and accounts, as of any recorded time."""

import datetime as dt
from collections.abc import Callable, Iterator

import pytest
from fastapi.testclient import TestClient
from tests.integration.api.matrix import NOON_S
from tests.integration.ledger.books import Ledger, ended, registered, started, submitted, told

from gpuledger.api.examples import EXAMPLES
from gpuledger.database.engine import writing
from gpuledger.events.envelope import Event
from gpuledger.events.host import StateChanged
from gpuledger.identity.roles import Role
from gpuledger.kernel.clock import instant, iso
from gpuledger.ledger.incidents import credit

Shown = Callable[[Role], dict[str, str]]


def changed(host: str, state: str, at_s: int, cluster: str = "alpha", **keys: object) -> Event:
    fact = StateChanged(cluster=cluster, host=host, gpus=8, gpu_model="H100", state=state, **keys)  # type: ignore[arg-type]
    return told(at_s, fact)


@pytest.fixture
def drained(own_ledger: Ledger, guarded: TestClient) -> Iterator[TestClient]:
    """Host h1 of alpha is being emptied since eleven; the runs of three accounts are still there."""
    own_ledger.append(changed("h1", "draining", NOON_S - 3600, reason="drained"))
    own_ledger.append(told(NOON_S - 3600, registered("h0", 4)))
    return guarded


def test_hosts_are_told_with_their_state_and_since_when(drained: TestClient, shown: Shown) -> None:
    every = drained.get("/v1/hosts", headers=shown(Role.ADMIN)).json()
    assert [(row["cluster"], row["host"]) for row in every["hosts"]] == [
        ("alpha", "h0"), ("alpha", "h1"), ("beta", "h1")
    ]  # fmt: skip
    assert EXAMPLES["listHosts"]["hosts"][0].keys() == every["hosts"][0].keys()
    h1 = every["hosts"][1]
    assert (h1["state"], h1["gpus"], h1["usable_gpus"], h1["since"]) == (
        "draining", 8, 0, iso(instant(NOON_S - 3600)),
    )  # fmt: skip
    own = drained.get("/v1/hosts", headers=shown(Role.LEAD)).json()
    assert {row["cluster"] for row in own["hosts"]} == {"alpha"}


def test_pages_tell_each_host_once(own_ledger: Ledger, drained: TestClient, shown: Shown) -> None:
    own_ledger.clock.at += dt.timedelta(seconds=60)
    headers, seen, query = shown(Role.ADMIN), [], ""
    for _ in range(3):
        page = drained.get(f"/v1/hosts?limit=1{query}", headers=headers).json()
        seen += [(row["cluster"], row["host"]) for row in page["hosts"]]
        query = f"&after={page['next']}&as_of={page['as_of']}"
    assert seen == [("alpha", "h0"), ("alpha", "h1"), ("beta", "h1")]
    assert page["next"] is None


def test_who_is_still_on_a_draining_host_is_told_to_those_who_reach_them(
    drained: TestClient, shown: Shown
) -> None:
    everybody = drained.get("/v1/drains", headers=shown(Role.ADMIN)).json()["drains"]
    assert [(row["host"], {run["account"] for run in row["runs"]}) for row in everybody] == [
        ("h1", {"org/vision/video", "org/vision/faces", "org/speech"})
    ]
    assert EXAMPLES["listDrains"]["drains"][0].keys() == everybody[0].keys()
    team = drained.get("/v1/drains", headers=shown(Role.RESEARCHER)).json()["drains"]
    assert [run["account"] for run in team[0]["runs"]] == ["org/vision/video"]
    assert drained.get("/v1/drains?cluster=beta", headers=shown(Role.ADMIN)).json()["drains"] == []


def test_before_it_was_told_nothing_drained(own_ledger: Ledger, drained: TestClient, shown: Shown) -> None:
    before = drained.get("/v1/clusters", headers=shown(Role.ADMIN)).json()["clusters"][0]
    own_ledger.clock.at += dt.timedelta(seconds=60)
    own_ledger.append(changed("h0", "draining", NOON_S - 10))
    path = f"/v1/drains?as_of={before['last_recorded_at']}"
    hosts = [row["host"] for row in drained.get(path, headers=shown(Role.ADMIN)).json()["drains"]]
    assert hosts == ["h1"]


def test_incidents_are_told_with_the_runs_and_credits_within_reach(
    own_ledger: Ledger, guarded: TestClient, shown: Shown
) -> None:
    """One failure at eleven ends a run of two accounts; each team is told of its own credit."""
    failed_s = NOON_S - 3600
    for account in ("org/vision/video", "org/speech"):
        name = f"fails-{account[-5:]}"
        own_ledger.append(
            told(failed_s - 3600, submitted(name, account=account)),
            told(failed_s - 3600, started(name)),
            told(failed_s + 30, ended(name, reason="failed")),
        )
    own_ledger.append(changed("h1", "unhealthy", failed_s, reason="xid-79"))
    with writing(own_ledger.engine) as writer:
        credit(
            writer, "alpha", from_s=failed_s - 3600, to_s=failed_s + 3600,
            clock=own_ledger.clock, calendar=own_ledger.calendar,
        )  # fmt: skip
    (found,) = guarded.get("/v1/incidents", headers=shown(Role.ADMIN)).json()["incidents"]
    assert EXAMPLES["listIncidents"]["incidents"][0].keys() == found.keys()
    assert {run["account"] for run in found["runs"]} == {"org/vision/video", "org/speech"}
    assert found["credited_gpu_ms"] == sum(run["credited_gpu_ms"] for run in found["runs"]) > 0
    (own,) = guarded.get("/v1/incidents", headers=shown(Role.MANAGER)).json()["incidents"]
    assert [run["account"] for run in own["runs"]] == ["org/vision/video"]
    assert 0 < own["credited_gpu_ms"] < found["credited_gpu_ms"]
    later = guarded.get(f"/v1/incidents?from={iso(instant(NOON_S))}", headers=shown(Role.ADMIN)).json()
    assert later["incidents"] == []
