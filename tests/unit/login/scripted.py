"""A login node whose ledger API answers as it is told."""

from collections.abc import Mapping
from typing import Any

import httpx2
import pytest
from tests.unit.client.scripted import client_of

from gpuledger.client import LedgerClient
from gpuledger.login import asking

HOUR = 3_600_000
AS_OF = "2026-12-08T09:00:00Z"


def balance(
    account: str, *, period: str = "2026-12", cluster: str = "alpha", **amounts: int
) -> dict[str, Any]:
    """A balance in GPU-hours: granted 100, charged 40, and what is said otherwise."""
    hours = {
        "granted": 100, "transferred": 0, "charged": 40, "held": 0, "credited": 0, "expired": 0, "available": 60,
        "unallocated": 0, "own_available": 60, "rolled_over": 0,
    } | amounts  # fmt: skip
    named = {f"{name}_gpu_ms": amount * HOUR for name, amount in hours.items()}
    return {"account": account, "cluster": cluster, "period": period, "binding_account": account, **named}


def account(path: str, share: int | None) -> dict[str, Any]:
    """An account with a share."""
    return {
        "account": path, "parent": path.rpartition("/")[0] or None, "is_leaf": True, "created_seq": 1,
        "created_at": AS_OF, "share": share, "overdraft": None, "shares": [], "overdrafts": [],
    }  # fmt: skip


def allocation(path: str, ppm: int, used: int, entitled: int, ratio: str | None) -> dict[str, Any]:
    """What a cycle says of an account; use and entitlement in GPU-hours."""
    return {
        "account": path, "share_ppm": ppm, "used_gpu_ms": used * HOUR, "entitled_gpu_ms": entitled * HOUR,
        "ratio": ratio, "demand_gpus": 8, "issued_gpus": "2.5",
    }  # fmt: skip


def used(person: str, hours: int) -> dict[str, Any]:
    """What somebody used."""
    return {
        "key": person, "gpu_ms": hours * HOUR, "gpu_hours": f"{hours}.000", "used_gpu_ms": None, "coverage": None,
    }  # fmt: skip


def usage(*rows: dict[str, Any]) -> dict[str, Any]:
    """An answer about use."""
    totals = {"total_gpu_ms": 0, "provisional_gpu_ms": 0, "estimated_gpu_ms": 0}
    return {"rows": list(rows), **totals, "as_of": AS_OF}


def clusters(*names: str) -> dict[str, Any]:
    """The clusters that there are."""
    rest = {
        "rows": 1, "last_recorded_at": AS_OF, "rolled_up_from": None, "rolled_up_to": None, "periods": [],
        "reason": None,
    }  # fmt: skip
    return {"clusters": [{"cluster": name, **rest} for name in names], "as_of": AS_OF}


def answer_with(monkeypatch: pytest.MonkeyPatch, answers: Mapping[str, Any]) -> list[httpx2.Request]:
    """Have the API answer by path; return what it is asked, as it is asked."""
    seen: list[httpx2.Request] = []

    def handler(request: httpx2.Request) -> httpx2.Response:
        seen.append(request)
        found = answers.get(request.url.path)
        found = found(request) if callable(found) else found
        if found is None:
            problem = {
                "type": "not-found", "title": "Not found", "status": 404, "detail": f"no {request.url.path}",
                "hint": "look elsewhere",
            }  # fmt: skip
            return httpx2.Response(404, json=problem, headers={"Content-Type": "application/problem+json"})
        return httpx2.Response(200, json=found)

    def opened() -> LedgerClient:
        return client_of(handler)

    monkeypatch.setattr(asking, "open_client", opened)
    return seen
