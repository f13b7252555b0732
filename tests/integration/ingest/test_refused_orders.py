"""Orders that the organisation's book cannot take become dead letters with a remedy; what was in force stays so."""

from pathlib import Path

import pytest
from tests.integration.ingest.test_worker import count, job, position, put, run, told

from gpuledger.database.engine import reading
from gpuledger.events.budget import PolicyChanged
from gpuledger.ingest.dead_letters import get_entry, iter_entries
from gpuledger.ingest.importer import ImportReport, LedgerSink, run_import
from gpuledger.ingest.intake import Intake
from gpuledger.ingest.retrying import retry, retry_mended
from gpuledger.kernel.knobs import PolicyConfig
from gpuledger.ledger.knobs import read_config
from gpuledger.ledger.rebuild import check
from gpuledger.sources.protocol import ImportOptions
from gpuledger.sources.registry import source
from gpuledger.streams.files import FileBroker


def zone(name: str) -> bytes:
    return told(
        f"zone {name}", 0, PolicyChanged(policy="organisation", timezone=name, period="month", by="ada")
    )[1]


def settings(name: str, at_s: int, **knobs: int) -> bytes:
    return told(name, at_s, PolicyChanged(policy="settings", settings=knobs, by="ada"))[1]


def letters(intake: Intake) -> list[tuple[str, int]]:
    return [(entry.code, entry.position) for entry in iter_entries(intake.engine)]


def config(intake: Intake, at_s: int) -> PolicyConfig:
    with reading(intake.engine) as reader:
        return read_config(reader, "alpha", at_s)


def events_in(path: Path, *events: bytes) -> Path:
    path.write_bytes(b"\n".join(events))
    return path


def imported(intake: Intake, path: Path) -> ImportReport:
    return run_import(source("events"), path, ImportOptions(), LedgerSink(intake), lambda _: None)[0]


def test_a_stream_cannot_move_days_that_are_booked(intake: Intake, broker: FileBroker) -> None:
    put(broker, [zone("Europe/Berlin"), *job("a")])
    run(intake, broker)
    put(broker, [zone("Asia/Tokyo"), *job("b"), zone("Europe/Berlin")])
    done = run(intake, broker)
    assert (done.records, done.dead_lettered) == (5, 1)
    assert letters(intake) == [("zone-in-use", 4)]
    with reading(intake.engine) as reader:
        entry = get_entry(reader, next(iter_entries(intake.engine)).id)
        assert check(reader, intake._default_calendar).differences == ()
    assert "Asia/Tokyo differs from Europe/Berlin" in entry.reason
    assert "set up a new database" in entry.hint
    assert count(intake.engine, "organisation") == 1
    assert count(intake.engine, "journal", "book = 'alpha'") == 6
    assert position(intake.engine) == 9


@pytest.mark.parametrize("apart", [True, False])
def test_settings_that_contradict_are_put_aside_whether_they_come_apart_or_at_once(
    intake: Intake, broker: FileBroker, *, apart: bool
) -> None:
    first, second = settings("cap", 100, protection_cap_s=1800), settings("quantum", 200, quantum_s=3600)
    rest = job("a")
    if apart:
        put(broker, [first])
        run(intake, broker)
        put(broker, [second, *rest])
    else:
        put(broker, [first, second, *rest])
    run(intake, broker)
    assert letters(intake) == [("settings-contradict", 1)]
    assert config(intake, 300) == PolicyConfig(protection_cap_s=1800)
    assert count(intake.engine, "journal", "book = 'alpha'") == 3
    told_of: list[str] = []
    done = retry(intake, iter_entries(intake.engine), lambda _, error: told_of.append(error.message))
    assert (done.resolved, done.failed) == (0, 1)
    assert "exceeds the protection cap of 1800 s" in told_of[0]
    (entry,) = iter_entries(intake.engine)
    mended = settings("quantum", 200, quantum_s=3600, protection_cap_s=7200)
    assert retry_mended(intake, entry.id, mended, lambda _, __: None).resolved == 1
    assert config(intake, 300) == PolicyConfig(protection_cap_s=7200, quantum_s=3600)


def test_a_file_of_events_is_no_other_way_in(intake: Intake, tmp_path: Path) -> None:
    imported(intake, events_in(tmp_path / "facts.ndjson", *job("a")))
    orders = zone("Asia/Tokyo"), settings("cap", 0, protection_cap_s=5), settings("grace", 0, grace_s=5)
    report = imported(intake, events_in(tmp_path / "orders.ndjson", *orders))
    assert (report.records, report.accepted, report.dead_lettered) == (3, 1, 2)
    assert letters(intake) == [("zone-in-use", 1), ("settings-contradict", 2)]
