"""Periods over HTTP are those of the command, of the caller's clusters."""

from collections.abc import Callable

from fastapi.testclient import TestClient
from tests.integration.ledger.books import GPU_HOUR

from gpuledger.api.examples import EXAMPLES
from gpuledger.identity.roles import Role

Shown = Callable[[Role], dict[str, str]]


def test_periods_are_cut_to_the_callers_clusters(guarded: TestClient, shown: Shown) -> None:
    every = guarded.get("/v1/periods", headers=shown(Role.ADMIN)).json()
    assert EXAMPLES["listPeriods"]["periods"][0].keys() == every["periods"][0].keys()
    assert {row["cluster"] for row in every["periods"]} == {"alpha", "beta"}
    own = guarded.get("/v1/periods", headers=shown(Role.LEAD)).json()
    assert {row["cluster"] for row in own["periods"]} == {"alpha"}
    assert {row["granted_gpu_ms"] for row in own["periods"]} == {300 * GPU_HOUR}
