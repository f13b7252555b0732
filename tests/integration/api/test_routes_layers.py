"""The four layers over HTTP."""

import pytest
from fastapi.testclient import TestClient
from tests.e2e.seeding import DAYS, GPUS, HOUR, NO_INVENTORY


def test_layers_by_day_with_sums_beside_every_ratio(api: TestClient) -> None:
    answer = api.get("/v1/layers", params={"cluster": "alpha", "by": "day"}).json()
    assert len(answer["rows"]) == DAYS
    first = answer["rows"][0]
    assert first["key"] == "2026-01-10"
    assert first["installed_gpu_ms"] == GPUS * 24 * HOUR
    assert first["availability"] == "0.9688"
    assert first["utilisation"]["rung"] == "gpu_util"
    assert first["gpu_hours"]["healthy"] == str(62 * 24) + ".000"
    assert answer["as_of"] == "2026-03-11T06:00:00Z"
    assert answer["timezone"] == "UTC"


def test_the_window_is_half_open_and_stated(api: TestClient) -> None:
    window = {"from": "2026-02-01", "to": "2026-02-03", "cluster": "alpha", "by": "day"}
    answer = api.get("/v1/layers", params=window).json()
    assert [row["key"] for row in answer["rows"]] == ["2026-02-01", "2026-02-02"]
    assert (answer["from"], answer["to"]) == ("2026-02-01T00:00:00Z", "2026-02-03T00:00:00Z")
    hours = api.get("/v1/layers", params={**window, "by": "hour"}).json()["rows"]
    assert len(hours) == 48
    total = api.get("/v1/layers", params={**window, "by": "total"}).json()["rows"][0]
    assert total["occupied_gpu_ms"] == sum(row["occupied_gpu_ms"] for row in hours)
    assert total["owed_gpu_ms"] == sum(row["owed_gpu_ms"] for row in answer["rows"])


def test_without_inventory_the_layers_that_need_it_are_null_with_the_reason(api: TestClient) -> None:
    row = api.get("/v1/layers", params={"cluster": "beta"}).json()["rows"][0]
    assert (row["availability"], row["occupancy"], row["impact"]["window"]) == (None, None, None)
    assert row["reasons"]["occupancy"] == NO_INVENTORY
    assert row["occupied_gpu_ms"] == 960 * HOUR
    assert row["gpu_hours"]["installed"] is None


def test_nothing_rolled_up_is_no_row_rather_than_a_zero(api: TestClient) -> None:
    answer = api.get("/v1/layers", params={"cluster": "gamma", "by": "total"}).json()
    assert answer["rows"] == []
    assert answer["as_of"] == "2026-03-11T12:00:00Z"


@pytest.mark.parametrize(
    ("path", "status", "word"),
    [
        ("/v1/budget-vs-actual?cluster=alpha&period=2019-01", 404, "2026-01 to 2026-02"),
        ("/v1/budget-vs-actual?period=January", 422, "/docs"),
        ("/v1/layers?from=2026-02-02&to=2026-02-02", 422, "exclusive"),
        ("/v1/layers?by=week", 422, "/docs"),
        ("/v1/layers?asof=2026-02-02", 422, "as_of, by, cluster, from, to"),
        ("/v1/layers?as_of=2026-02-02", 422, "ask for a later time"),
        ("/v1/layers?cluster=delta", 404, "alpha, beta, gamma"),
    ],
)
def test_a_question_that_cannot_be_answered_says_how_to_ask(
    api: TestClient, path: str, status: int, word: str
) -> None:
    answer = api.get(path)
    assert answer.status_code == status
    assert word in answer.json()["hint"]
