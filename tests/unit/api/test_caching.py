"""Tags follow the figures, not the clock."""

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from gpuledger.api.caching import NotModified, TaggedResponse


def _tag(content: object) -> str:
    return TaggedResponse(content).headers["etag"]


def test_the_instant_does_not_count() -> None:
    assert _tag({"rows": [1], "as_of": "noon"}) == _tag({"rows": [1], "as_of": "one"})
    assert _tag({"rows": [1], "as_of": "noon"}) != _tag({"rows": [2], "as_of": "noon"})
    assert _tag([1]) != _tag([2])


@pytest.fixture
def client() -> TestClient:
    app = FastAPI(default_response_class=TaggedResponse)
    app.add_middleware(NotModified)

    @app.get("/rows")
    def rows() -> dict[str, list[int]]:
        return {"rows": [1]}

    return TestClient(app)


@pytest.mark.parametrize("form", ["{tag}", '"other", {tag}', "*"])
def test_who_has_it_gets_no_body(client: TestClient, form: str) -> None:
    tag = client.get("/rows").headers["etag"]
    answer = client.get("/rows", headers={"If-None-Match": form.format(tag=tag)})
    assert (answer.status_code, answer.content) == (304, b"")
    assert answer.headers["etag"] == tag


def test_who_has_something_else_gets_it_all(client: TestClient) -> None:
    assert client.get("/rows", headers={"If-None-Match": 'W/"other"'}).json() == {"rows": [1]}
    assert client.get("/missing", headers={"If-None-Match": "*"}).status_code == 404
