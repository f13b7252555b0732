"""Differences are found among all runs that the ledger or the record has, and what mends them does mend them."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from tests.accounting import CLUSTER, document, job

from gpuledger.events.envelope import make
from gpuledger.events.workload import Ended, Started
from gpuledger.ingest.importer import LedgerSink, run_import
from gpuledger.ingest.intake import Intake
from gpuledger.reconcile.comparison import Bounds, Class
from gpuledger.reconcile.reconciling import Reconciliation
from gpuledger.reconcile.record import read_record
from gpuledger.reconcile.slurm import with_file
from gpuledger.sources.protocol import ImportOptions
from gpuledger.sources.registry import source

SACCT = source("slurm-sacct-json")
TAKEN_S = 100_000

FIRST = job(1, 1000, 2000)
SECOND = job(2, 1500, 3000, gpus=4)
RUNNING = job(3, 2500)
LAST = job(9, TAKEN_S - 10, TAKEN_S - 1)
"""Says when the record was taken."""


class World:
    """A ledger, and a record to compare it with."""

    def __init__(self, intake: Intake, folder: Path) -> None:
        self.intake, self.folder = intake, folder

    def book(self, *jobs: dict[str, Any]) -> None:
        path = self._file("booked.json", jobs)
        run_import(SACCT, path, ImportOptions(), LedgerSink(self.intake), lambda _: None)

    def compare(self, *jobs: dict[str, Any], grace_s: int = 600) -> Reconciliation:
        path = self._file("record.json", jobs)
        return with_file(self.intake.engine, path, ImportOptions(), grace_s=grace_s, from_s=None)

    def mend(self, found: Reconciliation) -> None:
        LedgerSink(self.intake).take([pair for pairs in found.mending.values() for pair in pairs], [])

    def _file(self, name: str, jobs: Iterable[dict[str, Any]]) -> Path:
        path = self.folder / name
        path.write_text(document(jobs))
        return path


@pytest.fixture
def world(intake: Intake, tmp_path: Path) -> World:
    return World(intake, tmp_path)


def classes(found: Reconciliation) -> dict[str, Class]:
    return {key.workload.partition("-")[0]: difference.klass for key, difference in found.differences.items()}


def test_a_ledger_that_holds_all_does_not_differ(world: World) -> None:
    jobs = FIRST, SECOND, RUNNING, LAST
    world.book(*jobs)

    found = world.compare(*jobs)

    assert found.is_explained
    assert found.found == []
    assert {key.workload: amounts for key, amounts in found.amounts.items()} == {
        "1-1000": (2_000_000, 2_000_000),
        "2-1500": (6_000_000, 6_000_000),
        "3-2500": (2000 * (TAKEN_S - 2500), 2000 * (TAKEN_S - 2500)),
        f"9-{TAKEN_S - 10}": (18_000, 18_000),
    }


def test_runs_and_ends_that_were_lost_are_told_again_and_then_nothing_differs(world: World) -> None:
    ended = job(3, 2500, 4000)
    world.book(FIRST, RUNNING, LAST)

    found = world.compare(FIRST, SECOND, ended, LAST)

    assert classes(found) == {"2": Class.LOST, "3": Class.LOST}
    assert not found.is_explained
    world.mend(found)
    assert world.compare(FIRST, SECOND, ended, LAST).found == []


def test_what_is_on_its_way_is_late_and_left_to_come(world: World) -> None:
    world.book(FIRST)

    found = world.compare(FIRST, LAST)

    assert classes(found) == {"9": Class.LATE}
    assert found.is_explained
    assert found.mending == {}
    assert classes(world.compare(FIRST, LAST, grace_s=0)) == {"9": Class.LOST}


def test_a_record_that_was_edited_counts_once_it_is_told_again(world: World) -> None:
    world.book(FIRST, SECOND, LAST)
    edited = job(2, 1500, 3000, gpus=4, account="speech")

    found = world.compare(FIRST, edited, LAST)

    assert classes(found) == {"2": Class.EDITED}
    world.mend(found)
    assert world.compare(FIRST, edited, LAST).found == []


def test_of_two_reconciliations_the_newer_counts(world: World) -> None:
    world.book(FIRST, SECOND, LAST)
    later = job(9, TAKEN_S, TAKEN_S + 50)
    for end_s, newest in ((2900, LAST), (2800, later), (2950, job(9, TAKEN_S + 100, TAKEN_S + 150))):
        edited = job(2, 1500, end_s, gpus=4)
        world.mend(world.compare(FIRST, edited, newest))
        assert classes(world.compare(FIRST, edited, newest)).get("2") is None, end_s


def test_a_run_that_accounting_does_not_list_is_unknown_and_no_telling_mends_it(world: World) -> None:
    world.book(FIRST, SECOND, LAST)

    found = world.compare(job(8, 1000, 1600), FIRST, LAST)

    assert classes(found) == {"2": Class.UNKNOWN, "8": Class.LOST}
    assert {key.workload for key in found.mending} == {"8-1000"}


def test_runs_of_somebody_else_in_the_same_book_are_not_compared(world: World) -> None:
    world.book(FIRST, LAST)
    named = {"cluster": CLUSTER, "workload": "pod-1", "run": "1"}
    start = Started(**named, attempt=1, gpus_milli=1000, hosts=[], account="alpha/vision")
    world.intake.take([make(id="pod-1", source="kueue/alpha", at_s=1200, data=start)[0]])

    assert world.compare(FIRST, LAST).found == []


def test_an_end_that_was_estimated_gives_way_to_the_true_one(world: World) -> None:
    world.book(FIRST, RUNNING, LAST)
    guess = Ended(cluster=CLUSTER, workload="3-2500", run="2500", reason="lost-end", estimated=True)
    world.intake.take([make(id="guess", source="gpuledger/lost-ends", at_s=3500, data=guess)[0]])
    true = job(3, 2500, 4000)

    found = world.compare(FIRST, true, LAST)

    assert classes(found) == {"3": Class.ESTIMATED}
    assert found.is_explained
    world.mend(found)
    assert world.compare(FIRST, true, LAST).found == []


def test_a_record_that_cannot_be_read_is_a_difference_without_a_cause(world: World) -> None:
    world.book(FIRST, LAST)

    found = world.compare(FIRST, job(2, 1500, 3000, state="FROZEN"), LAST)

    (difference,) = found.found
    assert difference.klass is Class.UNREADABLE
    assert "FROZEN" in difference.message
    assert not found.is_explained


def test_windows_of_one_record_are_one_comparison(world: World, tmp_path: Path) -> None:
    world.book(FIRST, SECOND, RUNNING)
    found = Reconciliation()
    for from_s, to_s in ((0, 1800), (1800, 4000)):
        path = tmp_path / "window.json"
        path.write_text(document([FIRST, SECOND] if from_s == 0 else [FIRST, SECOND, RUNNING]))
        record = read_record(path, [SACCT], ImportOptions())
        found.add(world.intake.engine, record, CLUSTER, "slurm/alpha", Bounds(from_s, to_s, 4000, 0))

    assert found.found == []
    assert [key.workload for key in found.amounts] == ["1-1000", "2-1500", "3-2500"]
