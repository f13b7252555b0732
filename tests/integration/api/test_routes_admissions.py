"""Admission over HTTP: decided once, and never twice for the same GPU-time."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from fastapi.testclient import TestClient
from tests.integration.ledger.books import GPU_HOUR, HOUR, Ledger, submitted, told

from gpuledger.api.examples import EXAMPLES
from gpuledger.events.budget import OverdraftSet
from gpuledger.identity.roles import Role
from gpuledger.kernel.clock import seconds
from gpuledger.ledger.audit import verify

Shown = Callable[[Role], dict[str, str]]


def test_an_attempt_is_admitted_and_asked_again_the_answer_is_the_same(
    guarded: TestClient, own_ledger: Ledger, shown: Shown
) -> None:
    body = {"cluster": "alpha", "workload": "waits-video"}
    first = guarded.post("/v1/admissions", json=body, headers=shown(Role.SCHEDULER))
    again = guarded.post("/v1/admissions", json=body, headers=shown(Role.SCHEDULER))
    assert first.status_code == 200, first.text
    told = first.json()
    assert told.keys() == EXAMPLES["admit"].keys()
    assert (told["class"], told["account"], told["attempt"]) == ("allocated", "org/vision/video", 1)
    assert (told["protected_s"], told["hold_gpu_ms"]) == (HOUR, 8 * GPU_HOUR)
    assert again.json() == {**told, "repeated": True}
    assert own_ledger.balance("org/vision/video", "2026-12").held_gpu_ms == 8 * GPU_HOUR


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"cluster": "alpha", "workload": "nobody"}, 404),
        ({"cluster": "alpha", "workload": "ran-video"}, 422),
        ({"cluster": "alpha"}, 422),
        ({"cluster": "alpha", "workload": "waits-video", "class": "allocated"}, 422),
        ({"cluster": "beta", "workload": "waits-video"}, 403),
    ],
)
def test_what_cannot_be_admitted(
    guarded: TestClient, shown: Shown, body: dict[str, str], status: int
) -> None:
    assert guarded.post("/v1/admissions", json=body, headers=shown(Role.SCHEDULER)).status_code == status


def test_many_at_once_and_a_hard_budget_that_funds_ten(
    guarded: TestClient, own_ledger: Ledger, shown: Shown
) -> None:
    now_s, account = seconds(own_ledger.clock.now()), "org/vision/video"
    own_ledger.append(
        told(0, OverdraftSet(account=account, overdraft="hard", reason="test", by="test")),
    )
    left = own_ledger.balance(account, "2026-12").available_gpu_ms // GPU_HOUR
    names = [f"job{n}" for n in range(24)]
    for name in names:  # each asks for a tenth of what is left
        asked = submitted(name, account=account, gpus_milli=left * 100, minimum_runtime_s=HOUR)
        own_ledger.append(told(now_s, asked))
    headers = shown(Role.SCHEDULER)

    def admit(name: str) -> str:
        answer = guarded.post("/v1/admissions", json={"cluster": "alpha", "workload": name}, headers=headers)
        assert answer.status_code == 200, answer.text
        found: str = answer.json()["class"]
        return found

    with ThreadPoolExecutor(8) as pool:
        classes = list(pool.map(admit, names))
    assert classes.count("allocated") == 10
    assert own_ledger.balance(account, "2026-12").available_gpu_ms >= 0
    with own_ledger.engine.connect() as connection:
        assert verify(connection).ok  # type: ignore[arg-type]
