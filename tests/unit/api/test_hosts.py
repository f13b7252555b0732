"""An open API answers to the names of its own machine, and to none that somebody else may have lead here."""

from collections.abc import Iterator

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from gpuledger.api import problems
from gpuledger.api.hosts import OwnNames, is_loopback


@pytest.fixture
def client() -> Iterator[TestClient]:
    app = FastAPI()

    @app.get("/it")
    def it() -> str:
        return "read"

    app.add_middleware(OwnNames)
    with TestClient(app) as client:
        yield client


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.1:8080", "localhost:8080", "LOCALHOST", "[::1]:8080"])
def test_own_names_are_answered(client: TestClient, host: str) -> None:
    assert client.get("/it", headers={"Host": host}).json() == "read"


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:8080",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "10.0.0.1",
        "localhost@evil.example",
        "[::1",
        "[::2]:8080",
        "",
    ],
)
def test_a_name_that_was_made_to_lead_here_is_answered_nothing(client: TestClient, host: str) -> None:
    answer = client.get("/it", headers={"Host": host})
    assert answer.status_code == 421
    assert answer.headers["content-type"] == problems.MEDIA_TYPE
    assert "localhost" in answer.json()["hint"]
    assert "read" not in answer.text


@pytest.mark.parametrize(
    ("host", "is_own"), [("127.8.9.1", True), ("::1", True), ("0.0.0.0", False), ("", False)]
)
def test_which_addresses_are_this_machines_own(host: str, is_own: bool) -> None:  # noqa: FBT001 - a case
    assert is_loopback(host) is is_own
