"""A close from its first step to its last: once, whoever and however many run it."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.integration.close.closing import NOVEMBER, TENTH, Books
from tests.integration.ledger.books import HOUR, run_of

from gpuledger.close import steps
from gpuledger.database.engine import reading
from gpuledger.kernel.errors import NotFound, Refused
from gpuledger.ledger.audit import verify
from gpuledger.ledger.rebuild import check


def test_the_steps_are_told_as_they_begin(books: Books) -> None:
    told: list[str] = []
    outcome = books.close(on_step=told.append)
    assert told == ["freeze", "reconcile", "settle", "validate", "seal", "publish"]
    assert (outcome.repeated, outcome.rows.version) == (False, 1)
    assert outcome.digest == outcome.rows.digest == books.made().digest
    with reading(books.ledger.engine) as reader:
        assert verify(reader).ok
        assert check(reader, books.ledger.calendar).ok


def test_the_second_time_it_makes_the_files_again_and_nothing_else(books: Books) -> None:
    first = books.close()
    (first.folder / "close.json").unlink()
    rows = books.ledger.value("SELECT count(*) FROM ledger.journal")
    again = books.close()
    assert again.repeated
    assert again.digest == first.digest
    assert (first.folder / "close.json").read_bytes() == books.made().content
    assert books.ledger.value("SELECT count(*) FROM ledger.journal") == rows


def test_of_many_closers_one_closes_and_all_come_to_one_file(books: Books) -> None:
    with ThreadPoolExecutor(4) as pool:
        outcomes = list(pool.map(lambda _: books.close(), range(4)))
    assert sorted(outcome.repeated for outcome in outcomes) == [False, True, True, True]
    assert len({outcome.digest for outcome in outcomes}) == 1
    counts = dict(
        books.ledger.rows("SELECT type, count(*) FROM ledger.journal WHERE type LIKE 'period.%' GROUP BY 1")
    )
    assert counts == {"period.closing": 1, "period.closed": 1, "period.sealed": 1}


@pytest.mark.parametrize("done", range(5))
def test_wherever_it_stopped_it_goes_on_to_the_same_file(books: Books, done: int) -> None:
    closer = books.closer()
    rows = steps.freeze(closer)
    after = (
        lambda: steps.settle(closer, rows.version, None),
        lambda: steps.validate(closer, rows.version, None),
        lambda: steps.seal(closer, rows.version),
        lambda: steps.publish(closer, rows.version),
    )
    for step in after[:done]:
        step()
    outcome = books.close()
    assert outcome.rows.closing_seq == rows.closing_seq
    assert outcome.repeated == (done > 2)
    assert outcome.digest == books.made().digest == books.stored()["digest"]


def test_a_reopened_period_is_closed_as_a_version_beside_the_first(books: Books) -> None:
    first = books.close()
    assert steps.reopen(books.closer(), "a late invoice") == 1
    books.ledger.append(*run_of(TENTH, TENTH + HOUR, "late"))
    second = books.close()
    assert second.rows.version == 2
    assert (first.folder.name, second.folder.name) == ("v1", "v2")
    said = books.made().document
    assert said.supersedes is not None
    assert (said.supersedes.version, said.supersedes.digest) == (1, first.digest)
    assert said.books[1].first_seq == first.rows.closing_seq + 1
    assert books.made(version=1).content == (first.folder / "close.json").read_bytes(), (
        "version 1 is what it was"
    )
    assert [books.stored(n)["state"] for n in (1, 2)] == ["reopened", "published"]
    late = [line.weighted.charged for line in said.accounts if line.account == "org/vision"]
    assert late == [80 * 3_600_000_000]


def test_what_cannot_be_closed_is_refused(books: Books) -> None:
    with pytest.raises(Refused, match="is not over"):
        books.close("2026-12")
    with pytest.raises(NotFound, match="cluster 'beta' does not exist"):
        steps.check(books.closer(NOVEMBER).__class__(**{
            **{name: getattr(books.closer(), name) for name in books.closer().__slots__}, "cluster": "beta"
        }))  # fmt: skip
