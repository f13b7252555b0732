"""A workload's story over HTTP is that of ``gpuledger why``; somebody else's is not known."""

from collections.abc import Callable

import pytest
from fastapi.testclient import TestClient
from tests.integration.ledger.books import Ledger, told

from gpuledger.api.examples import EXAMPLES
from gpuledger.database.engine import reading
from gpuledger.events.workload import Updated
from gpuledger.identity.roles import Role
from gpuledger.kernel.clock import seconds
from gpuledger.policy.telling import lines_of
from gpuledger.policy.why import why

Shown = Callable[[Role], dict[str, str]]


def test_the_story_is_that_of_the_command(guarded: TestClient, own_ledger: Ledger, shown: Shown) -> None:
    answer = guarded.get("/v1/workloads/ran-video?cluster=alpha", headers=shown(Role.RESEARCHER))
    assert answer.status_code == 200, answer.text
    with reading(own_ledger.engine) as reader:
        told_by_command = why(reader, "ran-video", cluster="alpha", at_s=seconds(own_ledger.clock.now()))
    lines = lines_of(told_by_command)
    assert answer.json() == {**told_by_command.as_json(), "lines": lines, "as_of": "2026-12-01T12:00:00Z"}
    assert answer.json()["account"] == "org/vision/video"
    assert EXAMPLES["getWorkload"].keys() <= answer.json().keys()
    assert EXAMPLES["getWorkload"]["events"][0].keys() == answer.json()["events"][0].keys()


@pytest.mark.parametrize("workload", ["ran-speech", "ran-vide", "nobody"])
def test_what_is_somebody_elses_reads_as_what_there_is_not(
    guarded: TestClient, shown: Shown, workload: str
) -> None:
    answer = guarded.get(f"/v1/workloads/{workload}?cluster=alpha", headers=shown(Role.RESEARCHER))
    assert answer.status_code == 404
    assert answer.json()["detail"] == f"no workload {workload!r} is known to you"
    assert "did you mean" not in answer.text


def test_an_admin_is_told_what_is_near_and_where(guarded: TestClient, shown: Shown) -> None:
    assert (
        "ran-video"
        in guarded.get("/v1/workloads/ran-vide?cluster=alpha", headers=shown(Role.ADMIN)).json()["hint"]
    )
    assert guarded.get("/v1/workloads/ran-video", headers=shown(Role.ADMIN)).status_code == 422


def test_what_would_let_it_start(guarded: TestClient, shown: Shown) -> None:
    path = "/v1/workloads/waits-video?cluster=alpha&what_if=true"
    answer = guarded.get(path, headers=shown(Role.SCHEDULER))
    assert answer.status_code == 200, answer.text
    assert answer.json()["ahead"] is not None


def test_who_paid_for_a_part_is_told_the_story_and_who_pays_now_what_is_decided(
    guarded: TestClient, own_ledger: Ledger, shown: Shown
) -> None:
    """Moved away it is the researcher's still as far as it was theirs: its past, and no standing of another's."""
    path, theirs = "/v1/workloads/waits-video?cluster=alpha", shown(Role.RESEARCHER)
    before = guarded.get(path, headers=theirs).json()
    moved_s = seconds(own_ledger.clock.now()) - 60
    moved = Updated(cluster="alpha", workload="waits-video", account="org/speech")
    own_ledger.append(told(moved_s, moved))
    after = guarded.get(path, headers=theirs)
    assert after.status_code == 200, after.text
    assert (before["account"], after.json()["account"]) == ("org/vision/video", "org/speech")
    assert "Changed: org/speech pays." in [event["text"] for event in after.json()["events"]]
    assert (after.json()["decision"], after.json()["ahead"]) == (None, None)
    whole = guarded.get(f"{path}&what_if=true", headers=shown(Role.ADMIN)).json()
    assert whole["decision"] == before["decision"]
    assert whole["ahead"] is not None
