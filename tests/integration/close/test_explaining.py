"""Two versions of a close: what differs, and the rows in between, which sum to it."""

import dataclasses

import pytest
from tests.integration.close.closing import NOVEMBER, TENTH, Books, lot
from tests.integration.ledger.books import CLUSTER, GPU_HOUR, HOUR, run_of, told

from gpuledger.close import steps
from gpuledger.close.explaining import Explanation, explain
from gpuledger.database.engine import reading
from gpuledger.events.budget import AccountCreated
from gpuledger.kernel.errors import Refused

W = 1000 * GPU_HOUR


def explained(books: Books, before: int = 1, after: int = 2) -> Explanation:
    with reading(books.ledger.engine) as reader:
        return explain(reader, CLUSTER, NOVEMBER, before, after)


@pytest.fixture
def twice(books: Books) -> Books:
    """After the first close a run of an hour came late, and a grant; one more came while it was closed."""
    books.close()
    books.ledger.append(*run_of(TENTH, TENTH + HOUR, "meanwhile"))
    steps.reopen(books.closer(), "a late invoice")
    books.ledger.append(*run_of(TENTH, TENTH + HOUR, "late"))
    books.ledger.append(told(1, lot("org/speech", 6)))
    books.close()
    return books


def test_the_rows_in_between_sum_to_the_difference(twice: Books) -> None:
    found = explained(twice)
    changed = {
        (c.account, c.column): c.difference // W for c in found.changes if c.column.endswith("weighted")
    }
    # What came while it was closed is booked in December, and stays there.
    assert changed == {
        ("org/speech", "granted_gpu_ms_weighted"): 6,
        ("org/speech", "expired_gpu_ms_weighted"): 6,
        ("org/speech", "rolled_out_gpu_ms_weighted"): 6,
        ("org/vision", "charged_gpu_ms_weighted"): 8,
        ("org/vision", "expired_gpu_ms_weighted"): -8,
        ("org/vision", "rolled_out_gpu_ms_weighted"): -8,
    }
    assert found.is_explained
    facts = [(row.moved.type, row.moved.workload) for row in found.rows if row.moved.type != "ledger.settled"]
    assert facts == [("workload.ended", "late"), ("budget.granted", None)]
    assert [row.moved.type for row in found.rows].count("ledger.settled") == 2, "taken back, and settled anew"


def test_its_document_says_each_row_with_what_it_moved(twice: Books) -> None:
    document = explained(twice).as_json()
    assert (document["from_version"], document["to_version"], document["explained"]) == (1, 2, True)
    (late,) = [row for row in document["rows"] if row["workload"] == "late"]
    assert {"account": "org/vision", "column": "charged_gpu_ms_weighted", "amount": 8 * W} in late["amounts"]
    assert late["effective_at"].endswith("Z")
    assert document["changes"][0].keys() == {"account", "column", "before", "after", "difference"}


def test_versions_that_are_the_same_differ_in_nothing(books: Books) -> None:
    books.close()
    steps.reopen(books.closer(), "for nothing")
    books.close()
    found = explained(books)
    assert found.changes == []
    assert found.is_explained


def test_two_that_do_not_follow_each_other_are_explained_too(twice: Books) -> None:
    steps.reopen(twice.closer(), "again")
    twice.ledger.append(*run_of(TENTH, TENTH + 2 * HOUR, "later"))
    twice.close()
    found = explained(twice, 1, 3)
    assert found.is_explained
    charged = next(
        c for c in found.changes if (c.account, c.column) == ("org/vision", "charged_gpu_ms_weighted")
    )
    assert charged.difference == 24 * W
    assert explained(twice, 2, 3).is_explained


@pytest.mark.parametrize("when", ["in between", "afterwards"])
def test_an_account_that_got_others_below_it_differs_in_its_amounts_alone(books: Books, when: str) -> None:
    """What it owns itself is told as its leaf ``~own`` from then on; that is no difference."""
    books.close()
    steps.reopen(books.closer(), "a late invoice")
    books.ledger.append(*run_of(TENTH, TENTH + HOUR, "late"))
    if when == "afterwards":
        books.close()
    books.ledger.append(told(2, AccountCreated(account="org/vision/deep")))
    if when == "in between":
        books.close()
    found = explained(books)
    assert found.is_explained
    name = "org/vision/~own" if when == "in between" else "org/vision"
    assert {change.account for change in found.changes} == {name}
    charged = next(c for c in found.changes if c.column == "charged_gpu_ms_weighted")
    assert charged.difference == 8 * W


def test_a_difference_that_no_row_explains_shows(twice: Books) -> None:
    found = explained(twice)
    assert found.is_explained
    without = [row for row in found.rows if row.moved.workload != "late"]
    assert not dataclasses.replace(found, rows=without).is_explained


def test_versions_are_named_in_order_and_exist(twice: Books) -> None:
    with pytest.raises(Refused, match="version 2 is not before version 2"):
        explained(twice, 2, 2)
    with pytest.raises(Refused, match="has no version 7"):
        explained(twice, 1, 7)
