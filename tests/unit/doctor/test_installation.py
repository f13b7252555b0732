"""What all clusters share: each fault is named with its remedy, and what holds is said to hold."""

import datetime as dt
from dataclasses import replace

import pytest

from gpuledger.doctor import installation
from gpuledger.doctor.findings import Finding, Level
from gpuledger.doctor.installation import DatabaseFacts
from gpuledger.ledger.queries import StreamStatus
from gpuledger.streams.topics import SCHEDULER_EVENTS, TELEMETRY, Described

NOW = dt.datetime(2026, 12, 1, 12, tzinfo=dt.UTC)
WELL = DatabaseFacts(180_006, "0030", "0030", 0.1)
GIB = 2**30


def levels(found: list[Finding]) -> dict[str, Level]:
    return {each.link: each.level for each in found}


def test_a_database_in_order() -> None:
    assert set(levels(list(installation.of_database(WELL))).values()) == {Level.FINE}


@pytest.mark.parametrize(
    ("facts", "link", "said"),
    [
        (replace(WELL, server_version=140_002), "database", "PostgreSQL 14 is older"),
        (replace(WELL, revision="0029"), "schema", "at 0029, this version needs 0030"),
        (replace(WELL, revision=None), "schema", "at no revision"),
        (replace(WELL, skew_s=-61.0), "clocks", "61.0 s behind this machine's"),
        (replace(WELL, roles_missing=("gpuledger_reader",)), "roles", "missing: gpuledger_reader"),
        (replace(WELL, unguarded=("a trigger is off", "x")), "guards", "a trigger is off, and 1 more"),
    ],
)
def test_each_fault_of_the_database_is_named(facts: DatabaseFacts, link: str, said: str) -> None:
    found = list(installation.of_database(facts))
    assert [each.link for each in found if each.level is Level.WRONG] == [link]
    (wrong,) = (each for each in found if each.level is Level.WRONG)
    assert said in wrong.what
    assert wrong.remedy or wrong.command


def test_clocks_that_differ_a_little_are_worth_a_note() -> None:
    assert levels(list(installation.of_database(replace(WELL, skew_s=3.0))))["clocks"] is Level.NOTE


@pytest.mark.parametrize(
    ("free", "level"), [(GIB - 1, Level.WRONG), (9 * GIB, Level.NOTE), (11 * GIB, Level.FINE)]
)
def test_how_much_room_there_is(free: int, level: Level) -> None:
    assert installation.of_disk("/data", free).level is level


def test_topics_that_are_missing_or_empty() -> None:
    there = Described(SCHEDULER_EVENTS, partitions=8, records=5)
    assert levels(list(installation.of_topics([there]))) == {"topics": Level.FINE}
    missing, _ = installation.of_topics([there, Described(TELEMETRY)])
    assert (missing.level, missing.command) == (Level.WRONG, "gpuledger topics create")
    assert "gpu.telemetry" in missing.what
    *_, empty = installation.of_topics([Described(TELEMETRY, partitions=8)])
    assert (empty.level, "nothing stands on gpu.telemetry" in empty.what) == (Level.NOTE, True)


def status(waiting: int | None, seen: int | None, published: int | None) -> StreamStatus:
    """A position with records that wait; minutes since it was looked at, and since the newest was published."""

    def ago(minutes: int | None) -> dt.datetime | None:
        return None if minutes is None else NOW - dt.timedelta(minutes=minutes)

    return StreamStatus("ingest", SCHEDULER_EVENTS, 3, 10, waiting, ago(seen), ago(published), 1)


@pytest.mark.parametrize(
    ("found", "level", "said"),
    [
        (status(5, 11, 1), Level.WRONG, "no worker has looked since 2026-12-01 11:49 UTC"),
        (status(5, None, 1), Level.WRONG, "no worker has looked ever"),
        (status(5, 1, 30), Level.WRONG, "is 30 minutes behind: 5 records wait"),
        (status(5, 1, 2), Level.NOTE, "a worker is at them"),
        (status(0, 60, 60), Level.FINE, "nothing waits"),
        (status(None, None, None), Level.FINE, "nothing waits"),
    ],
)
def test_what_was_published_and_is_not_booked(found: StreamStatus, level: Level, said: str) -> None:
    (finding,) = installation.of_streams([found], NOW)
    assert finding.level is level
    assert said in finding.what


def test_without_a_position_nothing_is_said_of_any() -> None:
    assert list(installation.of_streams([], NOW)) == []


def test_dead_letters_are_told_by_reason() -> None:
    assert installation.of_letters({}).level is Level.FINE
    found = installation.of_letters({"bad-time": 1200, "no-gpus": 3})
    assert found.what == "1,203 records could not be read: 1,200 bad-time, 3 no-gpus"
    many = installation.of_letters({f"code-{n}": n for n in range(1, 8)})
    assert many.what.endswith("and 2 more reasons")


def test_messages_and_notices_that_did_not_leave() -> None:
    assert installation.of_outbox(0).level is Level.FINE
    assert installation.of_outbox(3).level is Level.NOTE
    assert installation.of_notices(0, 0).level is Level.FINE
    assert installation.of_notices(0, 2).command == "gpuledger notify run --send"
    assert installation.of_notices(1, 2).level is Level.WRONG
