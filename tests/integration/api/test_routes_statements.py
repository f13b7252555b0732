"""Movements over HTTP add up to the difference of two balances, page by page."""

from collections.abc import Callable

import msgspec
from fastapi.testclient import TestClient
from tests.integration.ledger.books import GPU_HOUR, Ledger, ended, granted, told

from gpuledger.api.examples import EXAMPLES
from gpuledger.identity.roles import Role
from gpuledger.kernel.clock import seconds

Shown = Callable[[Role], dict[str, str]]
VIDEO = "org/vision/video"


def ran_out(ledger: Ledger) -> None:
    """The run of the account ends after two hours on eight GPUs."""
    ledger.append(told(seconds(ledger.clock.now()), ended("ran-video")))


def test_movements_are_the_difference_of_two_balances(
    guarded: TestClient, own_ledger: Ledger, shown: Shown
) -> None:
    ran_out(own_ledger)
    told = guarded.get(f"/v1/movements/{VIDEO}?cluster=alpha", headers=shown(Role.RESEARCHER)).json()
    assert EXAMPLES["listMovements"].keys() == told.keys()
    assert EXAMPLES["listMovements"]["movements"][0].keys() == told["movements"][0].keys()
    assert [(row["code"], row["gpu_ms"]) for row in told["movements"]] == [
        ("grant", 100 * GPU_HOUR), ("charge", -16 * GPU_HOUR),
    ]  # fmt: skip
    balance = own_ledger.balance(VIDEO)
    assert told["total_gpu_ms"] == balance.granted_gpu_ms - balance.charged_gpu_ms == 84 * GPU_HOUR
    assert told["next"] is None
    assert told["limits"] == []


def test_limits_above_an_account_are_told_on_every_page_as_far_as_the_caller_reaches(
    guarded: TestClient, own_ledger: Ledger, shown: Shown
) -> None:
    ran_out(own_ledger)
    period = own_ledger.balance(VIDEO).period
    for account in ("org", "org/vision"):
        limit = msgspec.structs.replace(granted(account, period, 40 * GPU_HOUR), limit=True)
        own_ledger.append(told(0, limit))
    path = f"/v1/movements/{VIDEO}?cluster=alpha&limit=1"
    for role, reached in ((Role.ADMIN, ["org", "org/vision"]), (Role.MANAGER, ["org/vision"])):
        for after in (0, 1, 2):
            limits = guarded.get(f"{path}&after={after}", headers=shown(role)).json()["limits"]
            assert [(m["account"], m["period"], m["gpu_ms"]) for m in limits] == [
                (account, period, 40 * GPU_HOUR) for account in reached
            ]
            assert EXAMPLES["listMovements"]["limits"][0].keys() == limits[0].keys()


def test_pages_are_the_whole(guarded: TestClient, own_ledger: Ledger, shown: Shown) -> None:
    ran_out(own_ledger)
    path, headers = "/v1/movements/org?cluster=alpha", shown(Role.ADMIN)
    whole = guarded.get(path, headers=headers).json()
    rows, after = [], 0
    while after is not None:
        page = guarded.get(f"{path}&limit=2&after={after}", headers=headers).json()
        assert page["total_gpu_ms"] == whole["total_gpu_ms"]
        rows += page["movements"]
        after = page["next"]
    assert rows == whole["movements"]
    assert len(rows) > 2
    beyond = guarded.get(f"{path}&after=1000000", headers=headers).json()
    assert (beyond["movements"], beyond["next"]) == ([], None)
    for wrong in ("after=-1", "after=x", "limit=0", "limit=1001", f"after={10**30}", "since=soon"):
        assert guarded.get(f"{path}&{wrong}", headers=headers).status_code == 422


def test_who_may_not_read_of_work_is_told_of_no_workload(
    guarded: TestClient, own_ledger: Ledger, shown: Shown
) -> None:
    ran_out(own_ledger)
    path = f"/v1/movements/{VIDEO}?cluster=alpha"
    told = {role: guarded.get(path, headers=shown(role)) for role in (Role.VIEWER, Role.RESEARCHER)}
    assert "ran-video" not in told[Role.VIEWER].text
    assert "ran-video" in told[Role.RESEARCHER].text
    cut, whole = (told[role].json()["movements"] for role in (Role.VIEWER, Role.RESEARCHER))
    assert cut == [{**row, "workload": None, "run": None} for row in whole]
