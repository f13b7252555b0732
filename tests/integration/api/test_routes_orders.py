"""Grants and transfers over HTTP: booked once per key, kept with the name of who gave them, checked as any order."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from fastapi.testclient import TestClient
from httpx import Response
from tests.integration.ledger.books import GPU_HOUR, Ledger

from gpuledger.api.examples import EXAMPLES
from gpuledger.identity.roles import Role

Shown = Callable[[Role], dict[str, str]]
VIDEO, FACES = "org/vision/video", "org/vision/faces"
ORDER = {
    "account": VIDEO,
    "cluster": "alpha",
    "period": "2026-12",
    "gpu_ms": 5 * GPU_HOUR,
    "reason": "a deadline",
}


@pytest.fixture
def give(guarded: TestClient, shown: Shown) -> Callable[..., Response]:
    def give(order: dict[str, object], key: str | None, what: str = "grants", **params: str) -> Response:
        headers = shown(Role.MANAGER) | ({} if key is None else {"Idempotency-Key": key})
        return guarded.post(f"/v1/budget/{what}", json=order, headers=headers, params=params)

    return give


def granted(ledger: Ledger, account: str = VIDEO) -> int:
    return ledger.balance(account, "2026-12").granted_gpu_ms // GPU_HOUR


def test_a_grant_is_booked_with_who_gave_it(own_ledger: Ledger, give: Callable[..., Response]) -> None:
    answer = give(ORDER, "k1")
    assert answer.status_code == 200, answer.text
    told = answer.json()
    assert told.keys() == EXAMPLES["grant"].keys() == EXAMPLES["transfer"].keys()
    assert (told["applied"], told["repeated"], told["key"]) == (True, False, "k1")
    assert granted(own_ledger) == 105
    ((by, seq),) = own_ledger.rows(  # people stand in the journal as tokens, which can be erased
        "SELECT k.name, j.seq FROM ledger.journal AS j JOIN side.user_keys AS k ON k.token = j.body->>'by'"
        " WHERE j.event_id = 'k1'"
    )
    assert (by, seq) == ("the manager", told["seq"])


def test_the_same_key_is_the_same_order(own_ledger: Ledger, give: Callable[..., Response]) -> None:
    first = give(ORDER, "k1").json()
    assert give(ORDER, "k1").json() == {**first, "repeated": True}
    other = give({**ORDER, "gpu_ms": GPU_HOUR}, "k1")
    assert other.status_code == 409
    assert other.json()["type"] == "/problems/key-reused"
    assert granted(own_ledger) == 105


def test_whose_order_a_key_stands_for_is_told_to_who_sees_everything(
    guarded: TestClient, shown: Shown, give: Callable[..., Response]
) -> None:
    def speech(gpu_ms: int) -> Response:
        order = {**ORDER, "account": "org/speech", "gpu_ms": gpu_ms}
        headers = shown(Role.ADMIN) | {"Idempotency-Key": "k1"}
        return guarded.post("/v1/budget/grants", json=order, headers=headers)

    assert speech(777).status_code == 200
    seen_by_admin, seen_by_manager = speech(778), give(ORDER, "k1")
    assert seen_by_admin.status_code == seen_by_manager.status_code == 409
    assert "org/speech" in seen_by_admin.json()["hint"]
    assert "777" in seen_by_admin.json()["hint"]
    assert "speech" not in seen_by_manager.text
    assert "777" not in seen_by_manager.text


def test_nobody_gives_to_their_own_node(
    own_ledger: Ledger, guarded: TestClient, shown: Shown, give: Callable[..., Response]
) -> None:
    own = {**ORDER, "account": "org/vision/~own"}
    assert give(own, "k1").status_code == 403
    assert give({**ORDER, "to": "org/vision/~own"}, "k2", "transfers").status_code == 403
    by_admin = guarded.post(
        "/v1/budget/grants", json=own, headers=shown(Role.ADMIN) | {"Idempotency-Key": "k3"}
    )
    assert by_admin.status_code == 200, by_admin.text
    assert give({**own, "to": VIDEO}, "k4", "transfers").status_code == 200  # what it has it may divide
    assert own_ledger.balance(VIDEO, "2026-12").transferred_gpu_ms == 5 * GPU_HOUR


def test_fifty_at_once_under_one_key_are_one_row(own_ledger: Ledger, give: Callable[..., Response]) -> None:
    with ThreadPoolExecutor(10) as pool:
        answers = list(pool.map(lambda _: give(ORDER, "k1").json(), range(50)))
    assert {answer["seq"] for answer in answers} == {answers[0]["seq"]}
    assert sum(not answer["repeated"] for answer in answers) == 1
    assert granted(own_ledger) == 105


def test_a_transfer_moves_what_is_there(own_ledger: Ledger, give: Callable[..., Response]) -> None:
    assert give({**ORDER, "to": FACES}, "k1", "transfers").status_code == 200
    moved = [own_ledger.balance(account, "2026-12").transferred_gpu_ms for account in (VIDEO, FACES)]
    assert moved == [-5 * GPU_HOUR, 5 * GPU_HOUR]
    too_much = give({**ORDER, "to": FACES, "gpu_ms": 500 * GPU_HOUR}, "k2", "transfers")
    assert too_much.status_code == 422
    assert "GPU-hours left" in too_much.json()["detail"]


def test_a_dry_run_checks_and_books_nothing(own_ledger: Ledger, give: Callable[..., Response]) -> None:
    before = own_ledger.digest()
    answer = give(ORDER, "k1", dry_run="true")
    assert answer.json() == {"applied": False, "repeated": False, "seq": None, "key": "k1"}
    assert (
        give({**ORDER, "period": "2026-12", "account": "org/vision/nobody"}, "k2", dry_run="true").status_code
        == 404
    )
    assert own_ledger.digest() == before


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"gpu_ms": 0}, 422),
        ({"gpu_ms": -1}, 422),
        ({"gpu_ms": 1.5}, 422),
        ({"gpu_ms": "1"}, 422),
        ({"gpu_ms": 10**30}, 422),
        ({"by": "somebody else"}, 422),
        ({"limit": True}, 422),
        ({"period": "soon"}, 422),
        ({"reason": ""}, 422),
        ({"account": "org/vision/nobody"}, 404),
        ({"account": "org/speech"}, 403),
        ({"account": "org/vision/'; DROP TABLE ledger.journal; --"}, 404),
        ({"rollover": "sometimes"}, 422),
        ({"expires_at": "tomorrow"}, 422),
        ({"expires_at": "2026-12-05T00:00:00"}, 422),
        ({"expires_at": "0001-01-01T00:00:00+14:00"}, 422),
        ({"expires_at": "9999-12-31T23:59:59-12:00"}, 422),
    ],
)
def test_what_cannot_be_ordered(
    own_ledger: Ledger, give: Callable[..., Response], change: dict[str, object], status: int
) -> None:
    before = own_ledger.digest()
    answer = give({**ORDER, **change}, "k1")
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert own_ledger.digest() == before


@pytest.mark.parametrize("key", [None, "", "x" * 201])
def test_an_order_needs_a_key(give: Callable[..., Response], key: str | None) -> None:
    assert give(ORDER, key).status_code == 422


def test_a_grant_with_an_end_and_a_rule(own_ledger: Ledger, give: Callable[..., Response]) -> None:
    order = {**ORDER, "priority": 1, "expires_at": "2026-12-20T00:00:00Z", "rollover": "max 2"}
    assert give(order, "k1").status_code == 200
    ((body,),) = own_ledger.rows("SELECT body FROM ledger.journal WHERE event_id = 'k1'")
    assert (body["priority"], body["rollover"]) == (1, "max 2")
    assert body["expires_at"].startswith("2026-12-20T00:00:00")
