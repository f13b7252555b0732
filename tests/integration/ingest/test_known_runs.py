"""Files of several formats, one after another in any order, are one history: each run is charged once, in one place."""

from collections import Counter
from pathlib import Path

import pytest
import sqlalchemy as sa
from tests.unit.sources.slurm.told import (
    FIXTURES,
    HOUR,
    T,
    Told,
    expected,
    written,
)

from gpuledger.database.engine import reading
from gpuledger.ingest import dead_letters
from gpuledger.ingest.importer import ImportReport, LedgerSink, run_import
from gpuledger.ingest.intake import Intake
from gpuledger.ingest.known_runs import LedgerRuns
from gpuledger.ingest.retrying import read_again
from gpuledger.ledger.usage import By, UsageQuery, usage
from gpuledger.sources.protocol import ImportOptions, KnownRun
from gpuledger.sources.registry import source

CAPTURES = FIXTURES / "captures"
OF_LAB = ImportOptions(cluster="ai2test")
EDGE = T + 1800 + 17_100
FIRST = Told(state="NODE_FAIL")
AGAIN = Told(submit=EDGE + 40, start=EDGE + 100, end=EDGE + HOUR, restarts=1)
"""The next run of the job; the epilog of the failed one took 40 seconds."""


def take(intake: Intake, name: str, path: Path, options: ImportOptions = OF_LAB) -> ImportReport:
    return run_import(source(name), path, options, LedgerSink(intake), lambda _: None)[0]


def tell(intake: Intake, tmp_path: Path, name: str, *runs: Told) -> ImportReport:
    path = tmp_path / name
    path.write_bytes(written(name, *runs))
    return take(intake, name, path, ImportOptions())


def charged(engine: sa.Engine) -> dict[str, int]:
    """GPU-seconds by workload, as they are posted."""
    statement = (
        "SELECT workload, sum(CASE debit_pot WHEN 'budget' THEN amount ELSE -amount END) FROM ledger.postings"
        " WHERE commodity = 'gpu_ms' AND code = 'charge' GROUP BY workload"
    )
    with engine.connect() as connection:
        return {workload: int(gpu_ms) // 1000 for workload, gpu_ms in connection.execute(sa.text(statement))}


def runs_of(engine: sa.Engine) -> list[tuple[str, str]]:
    statement = "SELECT workload, run FROM ledger.segments WHERE until_seq IS NULL ORDER BY 1, 2"
    with engine.connect() as connection:
        return [(workload, run) for workload, run in connection.execute(sa.text(statement))]


def test_the_captures_are_charged_once_in_whatever_format_they_come(intake: Intake) -> None:
    take(intake, "slurm-sacct-json", CAPTURES / "sacct.json.gz")
    first, runs = charged(intake.engine), runs_of(intake.engine)
    by_job: Counter[str] = Counter()
    for workload, seconds in first.items():
        by_job[workload.rpartition("-")[0]] += seconds
    assert {job: by_job[job] for job in expected()} == expected()
    for name, file in (
        ("slurm-sacct-text", "sacct-allocations.psv.gz"),
        ("slurmrestd", "squeue-live.json.gz"),
        ("slurm-sacct-text", "sacct-all-fields.psv.gz"),
        ("slurm-sacct-json", "sacct.json.gz"),
    ):
        take(intake, name, CAPTURES / file)
        assert (charged(intake.engine), runs_of(intake.engine)) == (first, runs)


def test_what_is_imported_again_is_repeated(intake: Intake) -> None:
    assert take(intake, "slurm-sacct-json", CAPTURES / "sacct.json.gz").accepted == 32
    again = take(intake, "slurm-sacct-json", CAPTURES / "sacct.json.gz")
    assert (again.accepted, again.repeated) == (0, 32)


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (3, 2, 1, 0), (1, 2, 0, 3)])
def test_a_requeued_job_told_run_by_run_in_any_order_and_format_is_one_workload(
    intake: Intake, tmp_path: Path, order: tuple[int, ...]
) -> None:
    tellings = [
        ("slurm-sacct-json", FIRST),
        ("slurm-sacct-text", AGAIN),
        ("slurm-jobcomp", FIRST),
        ("slurmrestd", AGAIN),
    ]
    for n in order:
        name, run = tellings[n]
        tell(intake, tmp_path, name, run)
    (seconds,) = charged(intake.engine).values()
    assert seconds == 8 * 17_100 + 8 * (HOUR - 100)
    tell(intake, tmp_path, "slurm-sacct-json", FIRST, AGAIN)
    assert list(charged(intake.engine).values()) == [seconds]
    assert len(runs_of(intake.engine)) == 2


def test_a_number_that_comes_round_again_is_another_workload(intake: Intake, tmp_path: Path) -> None:
    tell(
        intake,
        tmp_path,
        "slurm-sacct-json",
        Told(submit=T - 999 * HOUR, start=T - 999 * HOUR, end=T - 998 * HOUR),
    )
    tell(intake, tmp_path, "slurm-sacct-json", FIRST)
    assert len(charged(intake.engine)) == 2


def test_a_run_that_was_polled_open_is_closed_by_its_record(intake: Intake, tmp_path: Path) -> None:
    for end in (EDGE + 99, EDGE + 500):
        tell(intake, tmp_path, "slurmrestd", Told(state="RUNNING", end=end))
    with intake.engine.connect() as connection:
        facts = connection.execute(
            sa.text("SELECT count(*) FROM ledger.journal WHERE book = 'alpha'")
        ).scalar_one()
    assert facts == 2  # polling again added nothing
    tell(intake, tmp_path, "slurm-sacct-text", Told())
    assert charged(intake.engine) == {f"4711-{T}": 8 * 17_100}


def test_an_account_that_was_edited_after_the_end_moves_the_run(intake: Intake, tmp_path: Path) -> None:
    tell(intake, tmp_path, "slurm-jobcomp", Told())
    tell(intake, tmp_path, "slurm-sacct-json", Told(account="prog-b", altered=True))
    with reading(intake.engine) as reader:
        report = usage(reader, UsageQuery(by=By.ACCOUNT), EDGE)
    assert {row.key: row.gpu_ms for row in report.rows if row.gpu_ms} == {"alpha/prog-b": 8 * 17_100_000}


def test_a_dead_letter_that_is_read_again_finds_the_workload_of_its_run(
    intake: Intake, tmp_path: Path
) -> None:
    tell(intake, tmp_path, "slurm-sacct-json", FIRST)
    (tmp_path / "odd").write_bytes(written("slurm-jobcomp", AGAIN).replace(b"COMPLETED", b"NAPPING"))
    take(intake, "slurm-jobcomp", tmp_path / "odd", ImportOptions())
    with reading(intake.engine) as reader:
        (stored,) = dead_letters.waiting(reader)
    letter = stored.letter
    letter = type(letter)(**{**vars_of(letter), "raw": letter.raw.replace(b"NAPPING", b"COMPLETED")})
    events = read_again(letter, LedgerRuns(intake.engine))
    assert {e.data.workload for e in events} == {f"4711-{T}"}  # type: ignore[attr-defined]


def vars_of(letter: dead_letters.DeadLetter) -> dict[str, object]:
    return {field: getattr(letter, field) for field in letter.__dataclass_fields__}


def test_the_ledger_tells_the_runs_that_it_knows(intake: Intake, tmp_path: Path) -> None:
    known = LedgerRuns(intake.engine)
    assert known.of("alpha", ["4711"]) == {}
    tell(intake, tmp_path, "slurm-sacct-json", FIRST, AGAIN)
    workload = f"4711-{T}"
    assert known.of("alpha", ["4711", "4712"]) == {
        "4711": [KnownRun(workload, T, EDGE), KnownRun(workload, EDGE + 40, EDGE + HOUR)]
    }
