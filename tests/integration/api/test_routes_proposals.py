"""Proposals over HTTP: who may make, see and decide which; what is approved is booked with the approval."""

import datetime as dt
from collections.abc import Callable
from typing import Any

import pytest
from fastapi.testclient import TestClient
from httpx import Response
from tests.integration.api.matrix import FOREIGN, OWN
from tests.integration.ledger.books import GPU_HOUR, Ledger

from gpuledger.api.app import create_app
from gpuledger.api.examples import EXAMPLES
from gpuledger.database.engine import reading
from gpuledger.identity.roles import Role
from gpuledger.ledger import queries

Shown = Callable[[Role], dict[str, str]]
Ask = Callable[..., Response]

VIDEO, FACES = "org/vision/video", "org/vision/faces"
PERIOD = "2026-12"
SPLIT = {"reason": "a deadline", "shares": [{"account": VIDEO, "share": 3}]}
GRANT = {
    "reason": "a deadline", "cluster": "alpha",
    "grants": [{"account": VIDEO, "period": PERIOD, "gpu_ms": 5 * GPU_HOUR}],
}  # fmt: skip
TRANSFER = {
    "reason": "a deadline", "cluster": "alpha",
    "transfers": [{"account": FACES, "to": VIDEO, "period": PERIOD, "gpu_ms": 5 * GPU_HOUR}],
}  # fmt: skip
SAID = {"reason": "fine"}


@pytest.fixture
def post(own_ledger: Ledger, guarded: TestClient, shown: Shown) -> Ask:
    count = iter(range(1000))

    def post(role: Role, path: str, body: object, key: str | None = None) -> Response:
        own_ledger.clock.at += dt.timedelta(seconds=1)
        headers = shown(role) | {"Idempotency-Key": key or f"key {next(count)}"}
        return guarded.post(f"/v1/proposals{path}", json=body, headers=headers)

    return post


@pytest.fixture
def get(guarded: TestClient, shown: Shown) -> Callable[..., Any]:
    def get(role: Role, path: str = "") -> Any:  # noqa: ANN401 - a JSON document
        answer = guarded.get(f"/v1/proposals{path}", headers=shown(role))
        assert answer.status_code == 200, answer.text
        return answer.json()

    return get


def made(answer: Response) -> str:
    assert answer.status_code == 200, answer.text
    name: str = answer.json()["proposal"]
    return name


def granted(ledger: Ledger, account: str = VIDEO) -> int:
    return ledger.balance(account, PERIOD).granted_gpu_ms // GPU_HOUR


def test_a_researcher_asks_and_a_manager_gives(
    own_ledger: Ledger, post: Ask, get: Callable[..., Any]
) -> None:
    answer = post(Role.RESEARCHER, "", GRANT)
    assert answer.json().keys() == EXAMPLES["propose"].keys()
    left = 84 * GPU_HOUR - 8000  # a run of 8 GPUs goes on for a second
    assert answer.json()["effect"]["budgets"] == [
        {"account": VIDEO, "period": PERIOD, "added_gpu_ms": 5 * GPU_HOUR, "available_gpu_ms": left}
    ]
    name = made(answer)
    assert post(Role.MANAGER, f"/{name}/comments", {"reason": "until when?"}).status_code == 200
    assert granted(own_ledger) == 100
    assert post(Role.RESEARCHER, f"/{name}/approval", SAID).status_code == 403
    assert post(Role.MANAGER, f"/{name}/approval", SAID).status_code == 200
    assert granted(own_ledger) == 105
    found = get(Role.RESEARCHER, f"/{name}")
    assert found.keys() == EXAMPLES["getProposal"].keys()
    assert (found["state"], found["by"]) == ("approved", "the researcher")
    assert found["decided"]["by"] == "the manager"
    assert [said["text"] for said in found["comments"]] == ["until when?"]


def test_a_split_holds_once_it_is_approved(own_ledger: Ledger, post: Ask) -> None:
    name = made(post(Role.RESEARCHER, "", SPLIT))
    assert post(Role.MANAGER, f"/{name}/approval", SAID).status_code == 200
    with reading(own_ledger.engine) as reader:
        assert queries.shares_at(reader, own_ledger.clock.now()) == {VIDEO: 3}


def test_a_transfer_needs_both_ends(post: Ask) -> None:
    assert post(Role.RESEARCHER, "", TRANSFER).status_code == 403, "faces are not the video team's to see"
    name = made(post(Role.LEAD, "", TRANSFER))
    assert post(Role.MANAGER, f"/{name}/approval", SAID).status_code == 200


def test_nobody_approves_for_their_own_node(post: Ask) -> None:
    own = {"reason": "more", "shares": [{"account": "org/vision", "share": 9}]}
    name = made(post(Role.LEAD, "", own))
    refused = post(Role.MANAGER, f"/{name}/approval", SAID)
    assert refused.status_code == 403
    assert "org/vision" in refused.json()["detail"]
    assert post(Role.MANAGER, f"/{name}/rejection", SAID).status_code == 403
    assert post(Role.ADMIN, f"/{name}/approval", SAID).status_code == 200


def test_who_reaches_some_clusters_decides_no_shares(post: Ask) -> None:
    name = made(post(Role.RESEARCHER, "", SPLIT))
    assert post(Role.LEAD, f"/{name}/approval", SAID).status_code == 403
    assert post(Role.LEAD, f"/{name}/comments", SAID).status_code == 200


def test_another_person_approves(own_ledger: Ledger, post: Ask, shown: Shown) -> None:
    name = made(post(Role.MANAGER, "", GRANT))
    refused = post(Role.MANAGER, f"/{name}/approval", SAID)
    assert refused.status_code == 403
    assert "another person" in refused.json()["detail"]
    app = create_app(own_ledger.engine, own_ledger.clock, mode="token", by_another=False)
    with TestClient(app) as client:
        headers = shown(Role.MANAGER) | {"Idempotency-Key": "k"}
        assert client.post(f"/v1/proposals/{name}/approval", json=SAID, headers=headers).status_code == 200


def test_it_is_decided_once(post: Ask, get: Callable[..., Any]) -> None:
    name = made(post(Role.RESEARCHER, "", GRANT))
    assert post(Role.MANAGER, f"/{name}/withdrawal", SAID).status_code == 403, "it is not theirs"
    assert post(Role.MANAGER, f"/{name}/rejection", SAID, "k1").json()["repeated"] is False
    assert post(Role.MANAGER, f"/{name}/rejection", SAID, "k1").json()["repeated"] is True
    late = post(Role.ADMIN, f"/{name}/approval", SAID)
    assert late.status_code == 409
    assert late.json()["type"] == "/problems/conflict"
    assert get(Role.MANAGER, f"/{name}")["state"] == "rejected"


def test_one_sees_what_is_all_within_reach(post: Ask, get: Callable[..., Any]) -> None:
    both = {
        "reason": "a deadline", "cluster": "beta",
        "grants": [
            {"account": account, "period": PERIOD, "gpu_ms": GPU_HOUR} for account in (VIDEO, "org/speech")
        ],
    }  # fmt: skip
    wide = made(post(Role.ADMIN, "", both))
    split = made(post(Role.ADMIN, "", SPLIT))
    booked = {OWN["proposal"], FOREIGN["proposal"]}
    for role, names in (
        (Role.ADMIN, {wide, split, *booked}),
        (Role.AUDITOR, {wide, split, *booked}),
        (Role.MANAGER, {split, OWN["proposal"]}),
        (Role.RESEARCHER, {split, OWN["proposal"]}),
    ):
        assert {row["proposal"] for row in get(role)["proposals"]} == names
    hidden = post(Role.MANAGER, f"/{wide}/comments", SAID)
    assert hidden.status_code == 404
    assert "speech" not in hidden.text


def test_what_it_changes_for_others_is_not_told(post: Ask, get: Callable[..., Any]) -> None:
    """A new share moves the siblings' parts too, and who they are is theirs to see who reach them."""

    def told(document: dict[str, Any]) -> set[tuple[str, str]]:
        return {(row["account"], row["cluster"]) for row in document["effect"]["shares"]}

    dry = post(Role.RESEARCHER, "?dry_run=true", SPLIT).json()
    made_ = post(Role.RESEARCHER, "", SPLIT).json()
    own = {(VIDEO, "alpha"), (VIDEO, "beta")}
    assert told(dry) == told(made_) == told(get(Role.RESEARCHER, f"/{made_['proposal']}")) == own
    assert told(get(Role.RESEARCHER)["proposals"][0]) == own
    assert told(get(Role.MANAGER, f"/{made_['proposal']}")) == own | {(FACES, "alpha"), (FACES, "beta")}
    assert told(get(Role.LEAD, f"/{made_['proposal']}")) == {(VIDEO, "alpha"), (FACES, "alpha")}
    account = {"before_gpu_ms": 0, "after_gpu_ms": 0, "before_wait_p90_s": None, "after_wait_p90_s": None}
    simulation = {
        "scenario": "institute", "seed": 1, "days": 1,
        "accounts": [{**account, "account": VIDEO}, {**account, "account": "org/speech"}],
    }  # fmt: skip
    wide = made(post(Role.ADMIN, "", {**SPLIT, "simulation": simulation}))
    seen = get(Role.RESEARCHER, f"/{wide}")["simulation"]["accounts"]
    assert [row["account"] for row in seen] == [VIDEO]


def test_a_list_comes_in_pages_and_parts(post: Ask, get: Callable[..., Any]) -> None:
    names = [made(post(Role.RESEARCHER, "", SPLIT)) for _ in range(3)]
    first = get(Role.RESEARCHER, "?limit=2")
    assert first.keys() == EXAMPLES["listProposals"].keys()
    assert first["proposals"][0].keys() == EXAMPLES["listProposals"]["proposals"][0].keys()
    assert [row["proposal"] for row in first["proposals"]] == names[:0:-1]
    rest = get(Role.RESEARCHER, f"?limit=2&after={first['next']}&as_of={first['as_of']}")
    assert [row["proposal"] for row in rest["proposals"]] == [names[0], OWN["proposal"]]
    assert rest["next"] is None
    post(Role.RESEARCHER, f"/{names[0]}/withdrawal", SAID)
    assert [row["proposal"] for row in get(Role.RESEARCHER, "?state=withdrawn")["proposals"]] == names[:1]
    assert [row["proposal"] for row in get(Role.ADMIN, "?cluster=beta")["proposals"]] == [FOREIGN["proposal"]]
    assert [row["proposal"] for row in get(Role.ADMIN, "?account=org/speech")["proposals"]] == [
        FOREIGN["proposal"]
    ]
    assert get(Role.RESEARCHER, "?as_of=2026-11-30")["proposals"] == []


@pytest.fixture
def bad() -> dict[str, dict[str, Any]]:
    account = {"account": VIDEO, "period": PERIOD}
    return {
        "nothing": {"reason": "more"},
        "no reason": {**SPLIT, "reason": ""},
        "no time": {**GRANT, "grants": [{**account, "gpu_ms": 0}]},
        "no period": {**GRANT, "grants": [{**account, "gpu_ms": 1, "period": "2026-13"}]},
        "no cluster": {key: value for key, value in GRANT.items() if key != "cluster"},
        "a share below zero": {**SPLIT, "shares": [{"account": VIDEO, "share": -1}]},
        "a share that is text": {**SPLIT, "shares": [{"account": VIDEO, "share": "3"}]},
        "somebody else's name": {**SPLIT, "by": "the admin"},
        "decided at once": {**SPLIT, "state": "approved"},
        "its effect": {**SPLIT, "effect": {}},
        "the last instant that can be written": {**SPLIT, "effective_at": "9999-12-31T23:59:59Z"},
        "a zone left out": {**SPLIT, "effective_at": "2026-12-15T00:00:00"},
        "no rollover": {**GRANT, "grants": [{**account, "gpu_ms": 1, "rollover": "some"}]},
        "words in a scenario": {
            **SPLIT, "simulation": {"scenario": "ada's own", "seed": 1, "days": 1, "accounts": []},
        },
    }  # fmt: skip


def test_what_cannot_be_is_refused(
    post: Ask, get: Callable[..., Any], bad: dict[str, dict[str, Any]]
) -> None:
    for what, body in bad.items():
        answer = post(Role.RESEARCHER, "", body)
        assert answer.status_code == 422, (what, answer.text)
        assert answer.headers["content-type"] == "application/problem+json"
    assert len(get(Role.RESEARCHER)["proposals"]) == 1
    simulated = {"account": "org/speech", "before_gpu_ms": 0, "after_gpu_ms": 0, "before_wait_p90_s": None,
                 "after_wait_p90_s": None}  # fmt: skip
    told = {"scenario": "institute", "seed": 1, "days": 1, "accounts": [simulated]}
    assert post(Role.RESEARCHER, "", {**SPLIT, "simulation": told}).status_code == 403
    told["accounts"] = [{**simulated, "account": VIDEO}]
    assert post(Role.RESEARCHER, "", {**SPLIT, "simulation": told}).status_code == 200
    assert get(Role.RESEARCHER)["proposals"][0]["simulation"] == told


def test_an_order_repeated_under_its_key_is_the_same_proposal(post: Ask) -> None:
    first = post(Role.RESEARCHER, "", SPLIT, "k1").json()
    assert post(Role.RESEARCHER, "", SPLIT, "k1").json() == {**first, "repeated": True}
    assert (
        post(Role.RESEARCHER, "", {**SPLIT, "shares": [{"account": VIDEO, "share": 4}]}, "k1").status_code
        == 409
    )
    assert post(Role.RESEARCHER, "?dry_run=true", SPLIT, "k2").json()["applied"] is False
