"""Owed and delivered over time: the warehouse's hours, summed by account and key."""

from fastapi.testclient import TestClient
from tests.e2e.seeding import HOUR, SHARES

from gpuledger.api.examples import OWED

FIRST = min(SHARES)


def rows(api: TestClient, **asked: str) -> list[dict[str, object]]:
    answer = api.get("/v1/owed", params={"cluster": "alpha", **asked})
    assert answer.status_code == 200, answer.text
    found: list[dict[str, object]] = answer.json()["rows"]
    return found


def test_the_series_is_by_key_and_account_with_the_keys_of_the_example(api: TestClient) -> None:
    answer = api.get("/v1/owed", params={"cluster": "alpha", "from": "2026-02-02", "to": "2026-02-04"}).json()
    assert answer.keys() == OWED.keys()
    assert all(row.keys() == OWED["rows"][0].keys() for row in answer["rows"])
    assert {row["key"] for row in answer["rows"]} == {"2026-02-02", "2026-02-03"}
    assert {row["account"] for row in answer["rows"]} == set(SHARES)
    assert all(row["hours"] == row["hours_with_inventory"] == 24 for row in answer["rows"])
    first = next(row for row in answer["rows"] if row["account"] == FIRST)
    assert first["entitlement_gpu_ms"] == SHARES[FIRST] * 24 * HOUR
    assert first["owed_gpu_ms"] == min(first["entitlement_gpu_ms"], first["demand_gpu_ms"])
    assert first["gpu_hours"]["entitlement"] == f"{SHARES[FIRST] * 24}.000"


def test_hours_days_and_months_add_up_to_the_total(api: TestClient) -> None:
    asked = {"account": FIRST, "from": "2026-02-02", "to": "2026-02-05"}
    sums = {by: sum(int(str(row["delivered_gpu_ms"])) for row in rows(api, by=by, **asked))
            for by in ("hour", "day", "month", "total")}  # fmt: skip
    assert len(set(sums.values())) == 1
    assert [row["key"] for row in rows(api, by="hour", **asked)][:2] == [
        "2026-02-02T00:00:00Z", "2026-02-02T01:00:00Z",
    ]  # fmt: skip
    assert [row["key"] for row in rows(api, by="total", **asked)] == ["total"]


def test_an_inner_account_lists_the_leaves_below_it_and_pages_are_cut(api: TestClient) -> None:
    inner = FIRST.rpartition("/")[0]
    below = rows(api, by="total", account=inner)
    assert {row["account"] for row in below} == {name for name in SHARES if name.startswith(inner + "/")}
    page = api.get("/v1/owed", params={"cluster": "alpha", "by": "day", "limit": 3}).json()
    assert (len(page["rows"]), page["next"]) == (3, 3)
    following = api.get("/v1/owed", params={"cluster": "alpha", "by": "day", "limit": 3, "after": 3}).json()
    assert following["rows"][0] != page["rows"][0]


def test_what_is_asked_wrongly_is_refused(api: TestClient) -> None:
    for asked, status in (
        ({}, 422),
        ({"cluster": "delta"}, 404),
        ({"cluster": "alpha", "account": "alpha/nobody"}, 404),
        ({"cluster": "alpha", "by": "year"}, 422),
        ({"cluster": "alpha", "as_of": "2026-01-01"}, 422),
    ):
        assert api.get("/v1/owed", params=asked).status_code == status, asked
