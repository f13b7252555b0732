"""``gpuledger waits``: what the warehouse says of waits, as a document and as a table."""

import pytest
import sqlalchemy as sa
from tests.commands.fixtures import Ledger
from tests.e2e.seeding import small_book


@pytest.fixture
def rolled_up(ledger: Ledger) -> Ledger:
    engine = sa.create_engine(ledger.url, poolclass=sa.NullPool)
    small_book(engine)
    return ledger


def test_a_document_has_seconds_and_what_was_asked(rolled_up: Ledger) -> None:
    told = rolled_up.done(
        "waits", "--cluster", "alpha", "--class", "allocated", "--account", "alpha/language"
    )
    assert {key: told[key] for key in told if key != "rows"} == {
        "by": "size", "cluster": "alpha", "account": "alpha/language", "class": "allocated",
    }  # fmt: skip
    (row,) = told["rows"]
    assert (row["key"], row["request_count"], row["p50_s"], row["p90_s"]) == ("3-4", 5, 120, 600)


def test_a_window_and_a_key(rolled_up: Ledger) -> None:
    window = ("--cluster", "alpha", "--from", "2026-03-09", "--to", "2026-03-10")
    assert [row["key"] for row in rolled_up.done("waits", "--by", "day", *window)["rows"]] == ["2026-03-09"]


def test_a_table_says_what_is_not_known_yet(rolled_up: Ledger) -> None:
    shown = rolled_up("waits", "--cluster", "alpha")
    assert shown.status == 0
    assert "not known yet" in shown.out
    assert "120 s" in shown.out


@pytest.mark.parametrize(
    ("arguments", "word"), [(("--by", "week"), "size, class"), (("--class", "all"), "allocated, unallocated")]
)
def test_a_key_that_there_is_not_is_refused(rolled_up: Ledger, arguments: tuple[str, ...], word: str) -> None:
    refused = rolled_up("waits", *arguments)
    assert refused.status == 2
    assert word in refused.err
