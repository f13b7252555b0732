"""The application as a whole: errors, compression, the document, the database going away."""

import gzip
from collections.abc import Iterator

import pytest
import sqlalchemy as sa
from fastapi.testclient import TestClient
from tests.integration.api.conftest import NOW

from gpuledger.api.app import create_app
from gpuledger.database.engine import make_engine
from gpuledger.kernel.clock import FixedClock


@pytest.fixture
def lost() -> Iterator[TestClient]:
    """The API over a database that is not there."""
    engine = make_engine("postgresql+psycopg://nobody@127.0.0.1:1/nothing?connect_timeout=2")
    with TestClient(create_app(engine, FixedClock(NOW)), raise_server_exceptions=False) as client:
        yield client


def _is_problem(response: object, status: int) -> bool:
    body = response.json()  # type: ignore[attr-defined]
    return (
        response.status_code == status  # type: ignore[attr-defined]
        and response.headers["content-type"] == "application/problem+json"  # type: ignore[attr-defined]
        and body["status"] == status
        and body["type"].startswith("/problems/")
        and bool(body["hint"])
    )


def test_building_it_connects_to_nothing() -> None:
    create_app(make_engine("postgresql+psycopg://nobody@127.0.0.1:1/nothing"), FixedClock(NOW))


@pytest.mark.parametrize("path", ["/v1/clusters", "/v1/layers", "/v1/usage", "/readyz"])
def test_a_lost_database_is_503_with_a_time_to_retry(lost: TestClient, path: str) -> None:
    answer = lost.get(path)
    assert _is_problem(answer, 503)
    assert answer.headers["retry-after"] == "5"


def test_a_lost_database_leaves_health_and_metrics_answering(lost: TestClient) -> None:
    assert lost.get("/healthz").status_code == 200
    assert "gpuledger_database_up 0.0" in lost.get("/metrics").text


def test_every_error_is_a_problem(api: TestClient) -> None:
    assert _is_problem(api.get("/nowhere"), 404)
    refused = api.post("/v1/usage")
    assert _is_problem(refused, 405)
    assert "GET" in refused.headers["allow"]
    assert _is_problem(api.get("/v1/usage?by=nothing"), 422)
    assert api.get("/v1/usage?by=nothing").json()["errors"][0]["pointer"] == "/query/by"


def test_a_fault_of_ours_tells_a_stranger_nothing(seeded: sa.Engine, clock: FixedClock) -> None:
    app = create_app(seeded, clock)

    @app.get("/broken")
    def broken() -> None:
        raise RuntimeError("password=hunter2")

    with TestClient(app, raise_server_exceptions=False) as client:
        answer = client.get("/broken")
    assert _is_problem(answer, 500)
    assert "hunter2" not in answer.text


@pytest.mark.parametrize(
    "text", ["' OR 1=1 --", "%00", "%0a", "a" * 300, "\N{ZERO WIDTH SPACE}", "../..", "%ff%fe"]
)
def test_strange_names_are_refused_or_not_found(api: TestClient, text: str) -> None:
    for path in (f"/v1/usage?cluster={text}", f"/v1/balances/{text}", f"/v1/balances?account={text}"):
        assert api.get(path).status_code in {404, 422}


def test_long_answers_travel_compressed(api: TestClient) -> None:
    with api.stream("GET", "/v1/layers?by=hour", headers={"Accept-Encoding": "gzip"}) as answer:
        raw = b"".join(answer.iter_raw())
    assert answer.headers["content-encoding"] == "gzip"
    assert b'"rows"' in gzip.decompress(raw)


def test_the_document_has_names_examples_and_problems(api: TestClient) -> None:
    document = api.get("/openapi.json").json()
    assert document["openapi"].startswith("3.1")
    operations = [op for methods in document["paths"].values() for op in methods.values()]
    names = [op["operationId"] for op in operations]
    assert len(set(names)) == len(names)
    for path, methods in document["paths"].items():
        for operation in methods.values():
            if path.startswith("/v1/exports/"):
                assert set(operation["responses"]["200"]["content"]) == {
                    "text/csv", "application/vnd.apache.parquet", "application/vnd.apache.arrow.stream",
                }  # fmt: skip
            elif path.startswith("/v1/"):
                good = operation["responses"]["200"]["content"]["application/json"]
                assert good["example"]
                assert "as_of" in good["example"] or "as_of" not in str(operation.get("parameters"))
                assert "$ref" in good["schema"]
                assert {"404", "422", "503"} <= operation["responses"].keys()
                assert "application/problem+json" in operation["responses"]["422"]["content"]


FACTS = (
    "/v1/workloads/{workload}", "/v1/movements/{account}", "/v1/periods", "/v1/proposals", "/v1/proposals/{name}",
    "/v1/accounts", "/v1/hosts", "/v1/drains", "/v1/incidents", "/v1/closes", "/v1/closes/{cluster}/{period}",
    "/v1/tokens", "/v1/exports/entries", "/v1/queue", "/v1/exports/usage", "/v1/exports/statements/{cluster}/{period}",
)  # fmt: skip
"""Paths that answer from the journal, or to administrators alone; tests of their own hold them to their examples."""


def test_examples_have_the_keys_of_real_answers(api: TestClient) -> None:
    document = api.get("/openapi.json").json()
    asked = {
        "/v1/layers": "/v1/layers?cluster=alpha",
        "/v1/budget-vs-actual": "/v1/budget-vs-actual?cluster=alpha",
        "/v1/allocations/current": "/v1/allocations/current?cluster=alpha",
        "/v1/directives/current": "/v1/directives/current?cluster=alpha",
        "/v1/balances/{account}": "/v1/balances/alpha/robotics",
        "/v1/balance-trees/{account}": "/v1/balance-trees/alpha/robotics?cluster=alpha",
        "/v1/owed": "/v1/owed?cluster=alpha",
    }
    for path, methods in document["paths"].items():
        # Workloads, and what is sent, have tests of their own: here nothing but tables is filled.
        if path.startswith("/v1/") and "get" in methods and path not in FACTS:
            example = methods["get"]["responses"]["200"]["content"]["application/json"]["example"]
            answer = api.get(asked.get(path, path)).json()
            if path == "/v1/directives/current":  # nothing is ordered here; orders have a test of their own
                example = {**example, "starts": [], "preemptions": [], "protected": []}
            assert _keys(example) <= _keys(answer), path


def _keys(value: object, prefix: str = "") -> set[str]:
    match value:
        case dict() if not prefix.endswith("reasons"):
            return {
                p
                for key, inner in value.items()
                for p in _keys(inner, f"{prefix}.{key}") | {f"{prefix}.{key}"}
            }
        case [first, *_]:
            return _keys(first, f"{prefix}[]")
        case _:
            return set()
