"""How the API is asked: what is sent, and how it fails."""

import asyncio
import datetime as dt
import json

import httpx2
import pytest
import stamina
from tests.unit.client.scripted import ORDER, answering, asked, client_of

from gpuledger.api.examples import EXAMPLES
from gpuledger.client import AsyncLedgerClient, LedgerClient
from gpuledger.kernel.errors import (
    Conflict,
    Corrupt,
    Forbidden,
    GpuledgerError,
    KeyReused,
    NotFound,
    Refused,
    Unavailable,
    Unidentified,
)


@pytest.mark.parametrize("token", ["\ufeffgpl_x", "gpl_\N{EM DASH}", "gpl_x\ngpl_y", "gpl\u00a0"])
def test_a_token_that_no_header_can_hold_is_none_of_ours(token: str) -> None:
    with pytest.raises(Unidentified, match="no token has"):
        LedgerClient("http://127.0.0.1:8080", token)


def test_instants_are_sent_in_utc_and_need_a_zone() -> None:
    seen: list[httpx2.Request] = []
    client = answering("getUsage", seen)
    client.usage(as_of=dt.datetime(2026, 1, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=1))))
    assert seen[0].url.params["as_of"] == "2026-01-01T00:00:00Z"
    with pytest.raises(Refused, match="no zone"):
        client.usage(as_of=dt.datetime(2026, 1, 1))  # noqa: DTZ001 - the point of the test


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (401, Unidentified),
        (403, Forbidden),
        (404, NotFound),
        (422, Refused),
        (409, Conflict),
        (429, Unavailable),
        (503, Unavailable),
        (500, Corrupt),
    ],
)
def test_problems_become_our_errors_with_their_hint(status: int, kind: type[GpuledgerError]) -> None:
    body = {"type": "/problems/x", "title": "T", "status": status, "detail": "what", "hint": "do"}
    with pytest.raises(kind) as error:
        client_of(lambda _: httpx2.Response(status, json=body)).clusters()
    assert type(error.value) is kind
    assert (error.value.message, error.value.hint) == ("what", "do")


def test_a_key_that_stands_for_another_order_is_no_conflict_to_retry() -> None:
    body = {"type": "/problems/key-reused", "title": "T", "status": 409, "detail": "what", "hint": "do"}
    with pytest.raises(KeyReused):
        client_of(lambda _: httpx2.Response(409, json=body)).clusters()


def test_the_token_is_shown_each_time_and_stands_in_no_address() -> None:
    seen: list[httpx2.Request] = []

    def handler(request: httpx2.Request) -> httpx2.Response:
        seen.append(request)
        return httpx2.Response(200, json=EXAMPLES["getCaller"])

    with LedgerClient("http://127.0.0.1:8080", "gpl_x_y", transport=httpx2.MockTransport(handler)) as client:
        assert client.me().clusters == ("philly",)
    assert seen[0].headers["authorization"] == "Bearer gpl_x_y"
    assert "gpl" not in str(seen[0].url)
    assert "authorization" not in asked("getCaller", lambda plain: plain.me()).headers


def test_an_order_whose_answer_was_lost_is_sent_again_under_its_key() -> None:
    keys = []

    def lost(request: httpx2.Request) -> httpx2.Response:
        keys.append(request.headers["idempotency-key"])
        if len(keys) == 1:
            raise httpx2.ReadError("reset", request=request)
        return httpx2.Response(200, json=EXAMPLES["grant"])

    with stamina.set_testing(True, attempts=3):
        assert client_of(lost).grant(ORDER).applied
    assert len(keys) == 2
    assert len(set(keys)) == 1


def test_what_is_no_ledger_api_is_named() -> None:
    for answer in (
        httpx2.Response(200, text="<html>"),
        httpx2.Response(502, text="bad"),
        httpx2.Response(200, json={}),
    ):
        with pytest.raises(Unavailable, match="not the ledger API"):
            client_of(lambda _, answer=answer: answer).clusters()  # type: ignore[misc]


def test_a_refused_connection_is_tried_again_then_named_with_the_command() -> None:
    tries = []

    def refuse(request: httpx2.Request) -> httpx2.Response:
        tries.append(request)
        raise httpx2.ConnectError("refused", request=request)

    with stamina.set_testing(True, attempts=3), pytest.raises(Unavailable) as error:
        client_of(refuse).clusters()
    assert len(tries) == 3
    assert "gpuledger serve" in error.value.hint


def test_a_slow_answer_is_not_asked_for_again() -> None:
    tries = []

    def dawdle(request: httpx2.Request) -> httpx2.Response:
        tries.append(request)
        raise httpx2.ReadTimeout("slow", request=request)

    with pytest.raises(Unavailable):
        client_of(dawdle).clusters()
    assert len(tries) == 1


@pytest.mark.parametrize("url", ["", "127.0.0.1:8080", "ftp://x", "http://", "http://x:port"])
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(Refused) as error:
        LedgerClient(url)
    assert "GPULEDGER_API_URL" in error.value.hint


def test_names_of_a_newer_api_are_ignored() -> None:
    body = {**EXAMPLES["listBooks"], "later": 1}
    with client_of(lambda _: httpx2.Response(200, content=json.dumps(body))) as client:
        assert client.books().dead_letters == 0


def test_who_awaits_is_tried_as_often_and_under_the_same_key() -> None:
    keys = []

    def lost(request: httpx2.Request) -> httpx2.Response:
        keys.append(request.headers["idempotency-key"])
        if len(keys) == 1:
            raise httpx2.ReadError("reset", request=request)
        return httpx2.Response(200, json=EXAMPLES["grant"])

    async def order() -> bool:
        transport = httpx2.MockTransport(lost)
        async with AsyncLedgerClient("http://127.0.0.1:8080", transport=transport) as client:
            return (await client.grant(ORDER)).applied

    with stamina.set_testing(True, attempts=3):
        assert asyncio.run(order())
    assert (len(keys), len(set(keys))) == (2, 1)


def test_who_awaits_is_told_what_cannot_be_reached() -> None:
    def refuse(request: httpx2.Request) -> httpx2.Response:
        raise httpx2.ConnectError("refused", request=request)

    async def ask() -> None:
        transport = httpx2.MockTransport(refuse)
        async with AsyncLedgerClient("http://127.0.0.1:8080", transport=transport) as client:
            await client.clusters()

    with stamina.set_testing(True, attempts=2), pytest.raises(Unavailable, match="cannot be reached"):
        asyncio.run(ask())
