"""Tables as files: what is asked for, and that a file is whole or is not there."""

import asyncio
import datetime as dt
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import httpx2
import pytest
from tests.unit.client.scripted import client_of

from gpuledger.client import AsyncLedgerClient, exports
from gpuledger.client.exports import Export
from gpuledger.kernel.errors import NotFound, Refused, Unavailable

TABLE = b"seq,account\r\n1,philly\r\n"


@pytest.mark.parametrize(
    ("export", "url"),
    [
        (exports.entries("philly", period="2017-10"), "entries?format=csv&cluster=philly&period=2017-10"),
        (
            exports.usage("user", form="arrow", from_=dt.date(2017, 10, 1)),
            "usage?format=arrow&by=user&from=2017-10-01",
        ),
        (
            exports.statement("a/b", "2017-10", form="parquet", version=2),
            "statements/a%2Fb/2017-10?format=parquet&version=2",
        ),
    ],
)
def test_each_table_is_asked_for_by_its_path_and_query(tmp_path: Path, export: Export, url: str) -> None:
    seen: list[httpx2.Request] = []

    def handler(request: httpx2.Request) -> httpx2.Response:
        seen.append(request)
        return httpx2.Response(200, content=TABLE)

    assert client_of(handler).export(export, tmp_path / "table") == len(TABLE)
    assert seen[0].url.raw_path.decode() == f"/v1/exports/{url}"
    assert (tmp_path / "table").read_bytes() == TABLE


def test_a_refusal_is_an_error_with_its_hint_and_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    problem = {"type": "/problems/not-found", "title": "", "status": 404, "detail": "no such", "hint": "look"}
    client = client_of(lambda _: httpx2.Response(404, json=problem))
    (tmp_path / "table").write_text("before")
    with pytest.raises(NotFound, match="no such") as refused:
        client.export(exports.entries("philly"), tmp_path / "table")
    assert refused.value.hint == "look"
    assert [path.read_text() for path in tmp_path.iterdir()] == ["before"]


class _Cut(httpx2.SyncByteStream, httpx2.AsyncByteStream):
    """A table of which the end never comes."""

    def __iter__(self) -> Iterator[bytes]:
        yield TABLE
        raise httpx2.RemoteProtocolError("peer closed connection")

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield TABLE
        raise httpx2.RemoteProtocolError("peer closed connection")


def test_what_ends_early_is_no_file(tmp_path: Path) -> None:
    client = client_of(lambda _: httpx2.Response(200, stream=_Cut()))
    with pytest.raises(Unavailable, match="peer closed"):
        client.export(exports.entries("philly"), tmp_path / "table")
    assert list(tmp_path.iterdir()) == []


def test_a_connection_that_broke_begins_anew(tmp_path: Path) -> None:
    answers = [httpx2.ReadError("reset"), httpx2.Response(200, content=TABLE)]

    def handler(_: httpx2.Request) -> httpx2.Response:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    assert client_of(handler).export(exports.entries("philly"), tmp_path / "table") == len(TABLE)
    assert not answers


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    client = client_of(lambda _: httpx2.Response(200, content=TABLE))
    with pytest.raises(Refused, match="nowhere/table cannot be written"):
        client.export(exports.entries("philly"), tmp_path / "nowhere" / "table")


def test_so_it_is_where_the_answer_is_awaited(tmp_path: Path) -> None:
    problem = {"type": "/problems/not-found", "title": "", "status": 404, "detail": "no such", "hint": "look"}
    answers = [
        httpx2.Response(200, content=TABLE),
        httpx2.Response(404, json=problem),
        httpx2.Response(200, stream=_Cut()),
    ]

    async def ask() -> None:
        transport = httpx2.MockTransport(lambda _: answers.pop(0))
        async with AsyncLedgerClient("http://127.0.0.1:8080", transport=transport) as client:
            assert await client.export(exports.entries("philly"), tmp_path / "table") == len(TABLE)
            with pytest.raises(NotFound, match="no such"):
                await client.export(exports.entries("philly"), tmp_path / "other")
            with pytest.raises(Unavailable, match="peer closed"):
                await client.export(exports.entries("philly"), tmp_path / "other")

    asyncio.run(ask())
    assert [path.name for path in tmp_path.iterdir()] == ["table"]
