"""Bodies that are too large or stand still end with a status; nobody waits for them."""

import asyncio
from collections.abc import Iterator

import pytest
from fastapi import FastAPI, Request
from fastapi.testclient import TestClient
from starlette.exceptions import HTTPException
from starlette.types import Message, Receive, Scope, Send

from gpuledger.api import problems
from gpuledger.api.limits import BoundedBody

MAX = 100


@pytest.fixture
def client() -> Iterator[TestClient]:
    app = FastAPI()
    problems.install(app)

    @app.post("/it")
    async def it(request: Request) -> int:
        return len(await request.body())

    app.add_api_route("/large", it, methods=["POST"])
    app.add_middleware(BoundedBody, larger={"/large": 3 * MAX}, bytes_max=MAX)
    with TestClient(app) as client:
        yield client


@pytest.mark.parametrize(("size", "status"), [(0, 200), (MAX, 200), (MAX + 1, 413)])
def test_a_declared_size(client: TestClient, size: int, status: int) -> None:
    answer = client.post("/it", content=b"a" * size)
    assert answer.status_code == status
    if status == 413:
        assert answer.headers["content-type"] == problems.MEDIA_TYPE
        assert str(MAX) in answer.json()["detail"]


@pytest.mark.parametrize(
    ("path", "size", "status"),
    [("/large", 3 * MAX, 200), ("/large", 3 * MAX + 1, 413), ("/large/", 3 * MAX, 413)],
)
def test_one_path_takes_more_than_others(client: TestClient, path: str, size: int, status: int) -> None:
    assert client.post(path, content=b"a" * size).status_code == status
    assert client.post(path, content=(b"a" * 50 for _ in range(size // 50 + 1))).status_code == 413


@pytest.mark.parametrize(("pieces", "status"), [(10, 200), (11, 413)])
def test_a_size_that_is_not_declared(client: TestClient, pieces: int, status: int) -> None:
    answer = client.post("/it", content=(b"a" * 10 for _ in range(pieces)))
    assert answer.status_code == status


def test_a_declared_size_that_is_a_lie(client: TestClient) -> None:
    assert client.post("/it", content=b"a", headers={"Content-Length": "9" * 30}).status_code == 413


def test_a_body_that_stands_still() -> None:
    async def reads(scope: Scope, receive: Receive, send: Send) -> None:
        while (await receive()).get("more_body"):
            pass

    async def never() -> Message:
        await asyncio.sleep(60)
        raise AssertionError

    async def send(message: Message) -> None:
        raise AssertionError(message)

    bounded = BoundedBody(reads, patience_s=0.01)
    with pytest.raises(HTTPException) as ended:
        asyncio.run(bounded({"type": "http", "path": "/it", "headers": []}, never, send))
    assert ended.value.status_code == 408


def test_the_end_of_a_connection_may_be_waited_for() -> None:
    said = iter([{"type": "http.request", "body": b"a", "more_body": False}, {"type": "http.disconnect"}])
    heard = []

    async def reads(scope: Scope, receive: Receive, send: Send) -> None:
        heard.extend([await receive(), await receive()])

    async def slow() -> Message:
        message = next(said)
        if message["type"] == "http.disconnect":
            await asyncio.sleep(0.05)
        return message

    async def send(message: Message) -> None:
        raise AssertionError(message)

    asyncio.run(BoundedBody(reads, patience_s=0.01)({"type": "http", "path": "/", "headers": []}, slow, send))
    assert heard[-1]["type"] == "http.disconnect"
