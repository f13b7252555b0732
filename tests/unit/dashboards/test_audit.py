"""The page of the audit: heads, dead letters and closes, and how to prove them."""

import msgspec
from tests.unit.dashboards.pages import AUDIT, FakeClient, run_page, text_of

from gpuledger.api.examples import EXAMPLES
from gpuledger.client.answers import Books
from gpuledger.client.records import CloseRow
from gpuledger.kernel.errors import Forbidden
from gpuledger_dashboards import audit

BOOKS = msgspec.convert(EXAMPLES["listBooks"], Books)
CLOSE = msgspec.convert(EXAMPLES["listCloses"]["closes"][0], CloseRow)


def close(**changes: object) -> CloseRow:
    return msgspec.structs.replace(CLOSE, **changes)


def test_what_is_sealed_and_how_to_prove_it(client: FakeClient) -> None:
    client.all_books, client.sealed = BOOKS, (CLOSE,)
    app = run_page(AUDIT)
    text = text_of(app)
    assert "164,494 rows in 1 books; every record could be read." in text
    assert f"gpuledger close verify {CLOSE.period} --cluster {CLOSE.cluster}" in text
    shown = "".join(element.proto.body for element in app.get("html"))
    assert BOOKS.books[0].head in shown
    assert CLOSE.digest is not None
    assert CLOSE.digest in shown


def test_what_could_not_be_read_waits_for_a_person(client: FakeClient) -> None:
    client.all_books = msgspec.structs.replace(BOOKS, dead_letters=3)
    text = text_of(run_page(AUDIT))
    assert "3 records could not be read" in text
    assert "gpuledger dlq list" in text


def test_heads_are_not_for_everybody(client: FakeClient) -> None:
    client.unknown = Forbidden("not given to you")
    text = text_of(run_page(AUDIT))
    assert "Heads of chains are for auditors and administrators." in text
    assert "No budget period was closed yet." in text


def test_the_newest_close_comes_first_and_a_reopened_one_says_so() -> None:
    found = [
        close(period="2026-10"),
        close(period="2026-11", version=1, reopened_seq=9),
        close(period="2026-11", version=2),
    ]
    rows = audit.closes(found)
    assert [(row["Period"], row["Version"]) for row in rows] == [
        ("2026-11", "2"),
        ("2026-11", "1"),
        ("2026-10", "1"),
    ]
    assert rows[1]["State"].endswith("reopened by row 9")
    assert audit.closes([close(digest=None, sealed_at=None)])[0]["Digest"] == "not sealed"


def test_commands_prove_what_there_is() -> None:
    assert audit.verifying([]) == "gpuledger audit verify"
    assert "2026-11" in audit.verifying([close(period="2026-10"), close(period="2026-11")])
    assert audit.csv_rows(BOOKS.books)[0]["head"] == BOOKS.books[0].head
