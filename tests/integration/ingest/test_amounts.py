"""What the ledger's columns cannot hold becomes a dead letter: the worker goes on, and all else is booked."""

from pathlib import Path

import pytest
from tests.integration.ingest.test_worker import count, position, put, run, told

from gpuledger.database.engine import reading
from gpuledger.events.budget import Granted
from gpuledger.events.fields import GPUS_MAX
from gpuledger.events.workload import Ended, Started, Submitted
from gpuledger.ingest import worker as module
from gpuledger.ingest.dead_letters import iter_entries
from gpuledger.ingest.importer import ImportReport, LedgerSink, run_import
from gpuledger.ingest.intake import Intake
from gpuledger.ingest.retrying import retry, retry_mended
from gpuledger.ledger.audit import verify
from gpuledger.sources.protocol import ImportOptions
from gpuledger.sources.registry import source
from gpuledger.streams.files import FileBroker

DAY_S = 86_400
LARGEST = 2**53
"""The largest number that an event can say; two such grants are more than a column holds."""


def granted(name: str, gpu_ms: int) -> bytes:
    fact = Granted(
        account="org/a", cluster="alpha", period="2026-12", gpu_ms=gpu_ms, reason="policy", by="test"
    )
    return told(name, 0, fact)[1]


def month_of_everything(name: str) -> list[bytes]:
    """As many GPUs as a run may have, for thirty days; four of them on one account are more than a column holds."""
    named = {"cluster": "alpha", "workload": name}
    size = {"gpus_milli": GPUS_MAX * 1000}
    return [
        told(f"{name}/0", 0, Submitted(**named, account="org/a", user="ada", **size))[1],
        told(f"{name}/1", 0, Started(**named, run="1", attempt=1, hosts=["h1"], **size))[1],
        told(f"{name}/2", 30 * DAY_S, Ended(**named, run="1", reason="completed"))[1],
    ]


def letters(intake: Intake) -> list[tuple[str, int]]:
    return [(entry.code, entry.position) for entry in iter_entries(intake.engine)]


def booked(intake: Intake, code: str) -> int:
    with intake.engine.connect() as connection:
        return int(
            connection.exec_driver_sql(
                "SELECT coalesce(sum(amount), 0) FROM ledger.postings"
                f" WHERE code = '{code}' AND commodity = 'gpu_ms_weighted'"
            ).scalar_one()
        )


def test_an_order_whose_sum_no_column_holds_is_put_aside(intake: Intake, broker: FileBroker) -> None:
    put(broker, [granted("a", LARGEST), granted("b", LARGEST), granted("c", 1)])
    done = run(intake, broker)
    assert (done.records, done.accepted, done.repeated, done.dead_lettered) == (3, 2, 0, 1)
    assert letters(intake) == [("amount-too-large", 1)]
    assert booked(intake, "grant") == (LARGEST + 1) * 1000
    assert position(intake.engine) == 3


@pytest.mark.parametrize("batch", [3000, 4])
def test_a_fact_whose_charges_no_balance_holds_is_put_aside(
    intake: Intake, broker: FileBroker, monkeypatch: pytest.MonkeyPatch, batch: int
) -> None:
    """Whichever batch it comes in; what came before and comes after is booked once."""
    monkeypatch.setattr(module, "BATCH_RECORDS", batch)
    put(broker, [value for name in "abcde" for value in month_of_everything(name)])
    done = run(intake, broker)
    assert (done.records, done.accepted, done.repeated, done.dead_lettered) == (15, 13, 0, 2)
    assert letters(intake) == [("amount-too-large", 11), ("amount-too-large", 14)]
    assert booked(intake, "charge") == 3 * 30 * DAY_S * GPUS_MAX * 1000 * 1000
    assert count(intake.engine, "journal", "book = 'alpha'") == 13
    with reading(intake.engine) as reader:
        assert verify(reader).ok


def test_a_retry_leaves_it_waiting_while_there_is_no_room(intake: Intake, broker: FileBroker) -> None:
    put(broker, [granted("a", LARGEST), granted("b", LARGEST)])
    run(intake, broker)
    told_of = []
    done = retry(intake, iter_entries(intake.engine), lambda _, error: told_of.append(error.message))
    assert (done.resolved, done.failed) == (0, 1)
    assert "larger than the ledger can hold" in told_of[0]
    assert letters(intake) == [("amount-too-large", 1)]


def trace(path: Path, hours: float, gpus: int, rows: int) -> Path:
    """A trace of jobs of one account, so large that a column holds three of them."""
    lines = ["timestamp,duration,num_gpus,gpu_time,cluster\n"]
    lines += [
        f"2017-10-01 00:00:0{row},{hours * 3600},{gpus},{hours * 3600 * gpus},vc0\n" for row in range(rows)
    ]
    lines.append("2017-10-01 01:00:00,3600.0,1,3600.0,vc1\n")
    path.write_text("".join(lines))
    return path


def imported(intake: Intake, path: Path) -> ImportReport:
    return run_import(source("philly"), path, ImportOptions(), LedgerSink(intake), lambda _: None)[0]


def test_a_record_of_a_file_whose_amounts_no_column_holds_is_put_aside(
    intake: Intake, tmp_path: Path
) -> None:
    """The others of its batch are booked; imported again it is a repeat, and nothing is told twice."""
    path = trace(tmp_path / "trace.csv", hours=30 * 24, gpus=GPUS_MAX, rows=4)
    report = imported(intake, path)
    assert (report.records, report.accepted, report.dead_lettered) == (5, 4, 1)
    assert "larger than the ledger can hold" in report.faults[0]
    assert f"{path}:5: " in report.faults[0]
    assert letters(intake) == [("amount-too-large", 5)]
    assert booked(intake, "charge") == (3 * 30 * DAY_S * GPUS_MAX + 3600) * 1000 * 1000
    again = imported(intake, path)
    assert (again.records, again.accepted, again.repeated, again.dead_lettered) == (5, 0, 4, 1)
    assert letters(intake) == [("amount-too-large", 5)]
    done = retry(intake, iter_entries(intake.engine), lambda _, __: None)
    assert (done.resolved, done.failed) == (0, 1)


def test_such_a_record_that_was_mended_is_booked(intake: Intake, tmp_path: Path) -> None:
    imported(intake, trace(tmp_path / "trace.csv", hours=30 * 24, gpus=GPUS_MAX, rows=4))
    (entry,) = iter_entries(intake.engine)
    done = retry_mended(intake, entry.id, b"2017-10-01 00:00:03,3600.0,8,28800.0,vc0", lambda _, __: None)
    assert (done.resolved, done.failed) == (1, 0)
    assert letters(intake) == []
