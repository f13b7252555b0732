"""Closes over HTTP: their versions, and the sealed document, whole or cut to what the caller reaches."""

import datetime as dt
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from fastapi.testclient import TestClient
from tests.integration.close.closing import NOVEMBER, Books, fill
from tests.integration.ledger.books import Ledger

from gpuledger.api.app import create_app
from gpuledger.api.examples import EXAMPLES
from gpuledger.close.document import Document, digest, encode
from gpuledger.database.engine import writing
from gpuledger.identity import store
from gpuledger.identity.caller import Scope
from gpuledger.identity.roles import Role
from gpuledger.identity.store import Order


@pytest.fixture
def books(database_url: str, tmp_path: Path) -> Iterator[Books]:
    ledger = Ledger(database_url)
    fill(ledger)
    yield Books(ledger, tmp_path / "closes")
    ledger.engine.dispose()


@pytest.fixture
def api(books: Books) -> Iterator[TestClient]:
    with TestClient(
        create_app(books.ledger.engine, books.ledger.clock), raise_server_exceptions=False
    ) as client:
        yield client


def test_a_sealed_document_is_told_with_the_digest_that_it_gives(books: Books, api: TestClient) -> None:
    assert api.get("/v1/closes").json()["closes"] == []
    assert api.get(f"/v1/closes/alpha/{NOVEMBER}").status_code == 404
    sealed = books.close()
    (row,) = api.get("/v1/closes?cluster=alpha").json()["closes"]
    assert (row["state"], row["digest"], row["period"]) == ("sealed", sealed.digest, NOVEMBER)
    assert EXAMPLES["listCloses"]["closes"][0].keys() == row.keys()
    one = api.get(f"/v1/closes/alpha/{NOVEMBER}").json()
    assert EXAMPLES["getClose"].keys() == one.keys()
    assert one["whole"]
    assert digest(encode(msgspec.convert(one["document"], Document))) == sealed.digest
    assert api.get(f"/v1/closes/alpha/{NOVEMBER}").json()["document"] == one["document"]
    header, *lines = api.get(f"/v1/exports/statements/alpha/{NOVEMBER}").text.splitlines()
    charged = header.split(",").index("charged_gpu_ms_weighted")
    assert [(line.split(",")[3], int(line.split(",")[charged])) for line in lines] == [
        (line["account"], line["weighted"]["charged"]) for line in one["document"]["accounts"]
    ]
    assert api.get(f"/v1/closes/alpha/{NOVEMBER}?version=2").status_code == 404


def test_who_reaches_one_program_reads_its_lines_and_their_sum(books: Books) -> None:
    books.close()
    ledger = books.ledger
    with writing(ledger.engine) as writer:
        order = Order("pi", Role.MANAGER, Scope("org/speech"), dt.timedelta(days=1), "test")
        token, _ = store.create(writer, order, ledger.clock.now())
    app = create_app(ledger.engine, ledger.clock, mode="token")
    with TestClient(app, raise_server_exceptions=False) as api:
        headers = {"Authorization": f"Bearer {token}"}
        one = api.get(f"/v1/closes/alpha/{NOVEMBER}", headers=headers).json()
    assert not one["whole"]
    assert [line["account"] for line in one["document"]["accounts"]] == ["org/speech"]
    assert one["document"]["totals"]["accounts"] == 1
    assert one["document"]["totals"]["weighted"] == one["document"]["accounts"][0]["weighted"]
    assert "org/vision" not in str(one)


def test_a_journal_that_gives_something_else_is_a_fault_and_not_an_answer(
    books: Books, api: TestClient
) -> None:
    sealed = books.close()
    books.ledger.change("ALTER TABLE ledger.journal DISABLE TRIGGER ALL")
    books.ledger.change(
        "UPDATE ledger.journal SET body = jsonb_set(body::jsonb, '{digest}', to_jsonb(repeat('0', 64)))::json"
        " WHERE type = 'period.sealed'"
    )
    answer = api.get(f"/v1/closes/alpha/{NOVEMBER}")
    assert answer.status_code == 500
    assert sealed.digest not in answer.text
    assert "not what was sealed" in answer.json()["detail"]
