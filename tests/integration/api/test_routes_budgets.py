"""Budget versus actual over HTTP."""

from fastapi.testclient import TestClient
from tests.e2e.seeding import SHARES


def test_the_newest_period_unless_given(api: TestClient) -> None:
    answer = api.get("/v1/budget-vs-actual", params={"cluster": "alpha"}).json()
    assert answer["period"] == "2026-02"
    assert answer["periods"] == ["2026-01", "2026-02"]
    assert (answer["from"], answer["to"]) == ("2026-02-01T00:00:00Z", "2026-03-01T00:00:00Z")
    assert {row["account"] for row in answer["rows"]} == set(SHARES)


def test_the_causes_sum_to_the_variance(api: TestClient) -> None:
    for row in api.get("/v1/budget-vs-actual", params={"cluster": "alpha"}).json()["rows"]:
        causes = [value for name, value in row.items() if name.startswith("variance_")]
        assert len(causes) == 6
        assert row["budget_gpu_ms"] - row["delivered_gpu_ms"] == sum(causes)


def test_a_budget_without_inventory_says_why(api: TestClient) -> None:
    answer = api.get("/v1/budget-vs-actual", params={"cluster": "beta"}).json()
    assert answer["rows"][0]["owed_gpu_ms"] is None
    assert "gpuledger budget apply" in answer["rows"][0]["reason"]
    empty = api.get("/v1/budget-vs-actual", params={"cluster": "gamma"}).json()
    assert (empty["rows"], empty["period"], empty["periods"]) == ([], None, [])
