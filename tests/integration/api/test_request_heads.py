"""A request whose headers have no end is ended, whichever parser reads them; a long body is none of that."""

import socket
from collections.abc import Iterator
from typing import Any

import pytest
import uvicorn
from fastapi import FastAPI, Request
from tests.integration.api.served import free_port, served

from gpuledger.api import request_heads
from gpuledger.api.request_heads import HEAD_BYTES_MAX, protocol


@pytest.fixture(params=["fast", "h11"])
def port(request: pytest.FixtureRequest) -> Iterator[int]:
    app = FastAPI()

    @app.post("/length")
    async def length(request: Request) -> int:
        return len(await request.body())

    port = free_port()
    http: Any = protocol() if request.param == "fast" else "h11"
    with served(app, port, http=http, h11_max_incomplete_event_size=HEAD_BYTES_MAX):
        yield port


def said(port: int, *pieces: bytes) -> bytes:
    """Send pieces until the other side has had enough; return what it answered."""
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        try:
            for piece in pieces:
                connection.sendall(piece)
            answer = b""
            while more := connection.recv(65536):
                answer += more
        except ConnectionError:
            return b""
        return answer


START = b"POST /length HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"


def test_headers_without_an_end_are_refused(port: int) -> None:
    """Long before the time is over: who waits for more of them lets the test run into its own."""
    for endless in ([b"X: " + b"a" * 2**16] * 40, [b"X-Many: a\r\n" * 500] * 400):
        answer = said(port, START, *endless)
        assert not answer or answer.startswith(b"HTTP/1.1 400")


def test_a_large_body_after_a_small_head_is_read(port: int) -> None:
    body = b"a" * (8 * HEAD_BYTES_MAX)
    answer = said(port, START + b"Content-Length: %d\r\n\r\n" % len(body) + body)
    assert answer.startswith(b"HTTP/1.1 200")
    assert answer.endswith(str(len(body)).encode())
    fits = said(port, START + b"X: " + b"a" * (HEAD_BYTES_MAX // 2) + b"\r\nContent-Length: 1\r\n\r\nb")
    assert fits.startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize("port", ["fast"], indirect=True)
def test_who_never_says_what_they_want_is_let_go(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_heads, "HEAD_PATIENCE_S", 1)
    assert said(port, b"POST /length HT") == b""
    assert said(port) == b""


def test_the_fast_parser_is_used_where_it_is_installed() -> None:
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

    assert issubclass(protocol(), HttpToolsProtocol)
    assert uvicorn.Config("x", http=protocol()).http
