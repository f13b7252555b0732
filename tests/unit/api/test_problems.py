"""Each error has one status, and only this module knows it."""

import json

import psycopg
import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy.exc import OperationalError, ProgrammingError

from gpuledger.api import problems
from gpuledger.kernel.errors import (
    BadRecord,
    Conflict,
    Corrupt,
    Fenced,
    Forbidden,
    GpuledgerError,
    NotFound,
    Refused,
    Unavailable,
    Unidentified,
)


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (Refused("a"), 422),
        (BadRecord("a", code="b"), 422),
        (NotFound("a"), 404),
        (Unidentified("a"), 401),
        (Forbidden("a"), 403),
        (Conflict("a"), 409),
        (Fenced("a"), 409),
        (Unavailable("a"), 503),
        (Corrupt("a"), 500),
        (GpuledgerError("a"), 500),
    ],
)
def test_status_follows_what_the_caller_can_do(error: GpuledgerError, status: int) -> None:
    assert problems.kind_of(error).status == status


def _raise(error: Exception) -> dict[str, object]:
    app = FastAPI()
    problems.install(app)

    @app.get("/it")
    def it() -> None:
        raise error

    with TestClient(app, raise_server_exceptions=False) as client:
        answer = client.get("/it")
    assert answer.headers["content-type"] == problems.MEDIA_TYPE
    body: dict[str, object] = json.loads(answer.text)
    assert body["status"] == answer.status_code
    return body


def test_message_and_hint_travel() -> None:
    body = _raise(NotFound("account 'x' does not exist", hint="did you mean y?"))
    assert body["detail"] == "account 'x' does not exist"
    assert body["hint"] == "did you mean y?"
    assert body["type"] == "/problems/not-found"
    assert body["instance"] == "/it"


def test_a_hint_is_never_empty() -> None:
    assert _raise(Conflict("somebody wrote"))["hint"] == problems.CONFLICT.help


@pytest.mark.parametrize(
    "error",
    [
        psycopg.errors.UndefinedTable("no table"),
        ProgrammingError("SELECT", {}, psycopg.errors.UndefinedTable("no table")),
    ],
)
def test_a_missing_table_means_migrate(error: Exception) -> None:
    body = _raise(error)
    assert (body["status"], body["hint"]) == (503, "gpuledger db upgrade")


@pytest.mark.parametrize(
    "error",
    [psycopg.OperationalError("gone"), OperationalError("SELECT", {}, psycopg.OperationalError("gone"))],
)
def test_a_lost_connection_means_later(error: Exception) -> None:
    assert _raise(error)["status"] == 503


def test_any_other_fault_of_the_database_is_ours() -> None:
    body = _raise(psycopg.errors.DivisionByZero("secret"))
    assert body["status"] == 500
    assert "secret" not in str(body)
