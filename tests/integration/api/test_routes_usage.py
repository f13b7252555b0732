"""Usage over HTTP says what the book says."""

from fastapi.testclient import TestClient
from tests.e2e.seeding import HOUR, SHARES


def test_usage_is_keyed_as_asked_and_cut_to_the_window(api: TestClient) -> None:
    whole = api.get("/v1/usage", params={"by": "cluster"}).json()
    assert {row["key"]: row["gpu_hours"] for row in whole["rows"]} == {"alpha": "640.000", "beta": "20.000"}
    half = api.get(
        "/v1/usage", params={"by": "class", "cluster": "alpha", "to": "2026-01-10T05:00:00Z"}
    ).json()
    assert half["total_gpu_ms"] == sum(SHARES.values()) * 5 * HOUR
    assert half["rows"][0]["used_gpu_ms"] is None
    days = api.get("/v1/usage", params={"by": "day", "from": "2026-01-11"}).json()
    assert days["rows"] == []


def test_usage_is_keyed_by_a_label_that_is_named(api: TestClient) -> None:
    whole = api.get("/v1/usage").json()
    answer = api.get("/v1/usage", params={"by": "label:nobody"}).json()
    assert [row["key"] for row in answer["rows"]] == ["unknown"]
    assert answer["total_gpu_ms"] == whole["total_gpu_ms"]
    for by in ("label:", "label", "label:a\nb", "xlabel:a"):
        refused = api.get("/v1/usage", params={"by": by})
        assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (422, "/query/by")


def test_usage_as_of_says_which_instant_it_believes(api: TestClient) -> None:
    answer = api.get("/v1/usage", params={"by": "month", "as_of": "2026-03-11T06:30:00Z"}).json()
    assert answer["as_of"] == "2026-03-11T06:30:00Z"
