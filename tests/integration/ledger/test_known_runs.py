"""The runs of a job that a book knows, found by the scheduler's number of it."""

from tests.integration.ledger.books import Ledger, ended, run_of, started, submitted, told

from gpuledger.database.engine import reading
from gpuledger.ledger.known_runs import BookedRun, runs_of_jobs

SOURCE = "slurm/alpha"


def known(ledger: Ledger, *jobs: str, book: str = "alpha") -> list[BookedRun]:
    with reading(ledger.engine) as reader:
        return runs_of_jobs(reader, book, "slurm", jobs)


def chain(ledger: Ledger) -> None:
    """Job 3 ran twice; the second run goes on."""
    ledger.append(
        told(100, submitted("3-100"), source=SOURCE),
        told(110, started("3-100", "100"), source=SOURCE),
        told(150, ended("3-100", "100"), source=SOURCE),
        told(151, submitted("3-100"), source=SOURCE),
        told(160, started("3-100", "151", attempt=2), source=SOURCE),
    )


def test_the_runs_of_a_job_are_known_with_their_submissions_and_ends(ledger: Ledger) -> None:
    chain(ledger)
    assert known(ledger, "3", "4") == [
        BookedRun("3", "3-100", 100, 150),
        BookedRun("3", "3-100", 151, None),
    ]


def test_numbers_that_begin_alike_are_other_jobs(ledger: Ledger) -> None:
    chain(ledger)
    for name in ("31-100", "3_1-100", "3+1-100"):
        ledger.append(told(100, submitted(name), source=SOURCE))
    assert [run.workload for run in known(ledger, "3")] == ["3-100", "3-100"]
    assert [run.workload for run in known(ledger, "3_1", "3+1")] == ["3+1-100", "3_1-100"]


def test_another_book_or_scheduler_knows_nothing_of_it(ledger: Ledger) -> None:
    chain(ledger)
    ledger.append(*run_of(0, 10, "5-0"))
    assert known(ledger, "3", book="beta") == []
    assert known(ledger, "5") == []


def test_what_a_reconciliation_said_of_a_job_is_known_too(ledger: Ledger) -> None:
    ledger.append(told(100, submitted("6-100"), source="reconcile/slurm/alpha"))
    assert known(ledger, "6") == [BookedRun("6", "6-100", 100, None)]


def test_of_several_submissions_and_ends_of_a_run_one_row_comes_back(ledger: Ledger) -> None:
    chain(ledger)
    ledger.append(
        told(100, submitted("3-100", version=4), source=SOURCE),
        told(155, ended("3-100", "100", version=4), source=SOURCE),
    )
    assert known(ledger, "3")[0] == BookedRun("3", "3-100", 100, 155)
