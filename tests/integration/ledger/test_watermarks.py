"""Heartbeats advance the watermark of their source, in whatever order they come; it follows from the journal alone."""

import random

import pytest
from tests.integration.ledger.books import HOUR, Ledger, at, run_of, told

from gpuledger.database.engine import reading, writing
from gpuledger.events.envelope import Event
from gpuledger.events.heartbeat import Gap, Heartbeat
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.clock import instant
from gpuledger.ledger import rebuild
from gpuledger.ledger.watermarks import advance, watermarks

NOON_S = at("2026-11-30T12:00:00Z")


@pytest.fixture
def ledger(database_url: str) -> Ledger:
    return Ledger(database_url)


def beat(
    at_s: int, source: str = "slurm/alpha", cluster: str = "alpha", gaps: list[Gap] | None = None
) -> Event:
    return told(at_s, Heartbeat(cluster=cluster, gaps=gaps), source=source, id=f"{source}/{at_s}")


def marks(ledger: Ledger) -> dict[tuple[str, str], int]:
    with reading(ledger.engine) as reader:
        return {(m.book, m.source): int(m.told_until_at.timestamp()) for m in watermarks(reader)}


def test_each_source_of_each_book_has_its_own_and_only_heartbeats_advance_it(ledger: Ledger) -> None:
    ledger.append(*run_of(0, HOUR))
    assert marks(ledger) == {}
    ledger.append(beat(NOON_S), beat(NOON_S - 60, "nvml/h1"), beat(NOON_S + 60))
    ledger.append(beat(NOON_S + 7, cluster="beta"))
    assert marks(ledger) == {
        ("alpha", "nvml/h1"): NOON_S - 60,
        ("alpha", "slurm/alpha"): NOON_S + 60,
        ("beta", "slurm/alpha"): NOON_S + 7,
    }


def test_a_heartbeat_that_comes_late_or_again_turns_nothing_back(ledger: Ledger) -> None:
    ledger.append(beat(NOON_S))
    ledger.append(beat(NOON_S - HOUR), beat(NOON_S))
    assert marks(ledger) == {("alpha", "slurm/alpha"): NOON_S}


def test_gaps_that_are_declared_do_not_hold_it_back(ledger: Ledger) -> None:
    gap = Gap(start="2026-11-30T11:00:00Z", end="2026-11-30T11:05:00Z", messages=5, reason="spool-full")
    ledger.append(beat(NOON_S, gaps=[gap]))
    assert marks(ledger) == {("alpha", "slurm/alpha"): NOON_S}


@pytest.mark.parametrize("seed", range(5))
def test_any_order_in_any_batches_gives_what_a_rebuild_gives(ledger: Ledger, seed: int) -> None:
    chance = random.Random(seed)
    beats = [beat(NOON_S + chance.randrange(HOUR), f"nvml/h{chance.randrange(3)}") for _ in range(20)]
    left = list(beats)
    while left:
        size = chance.randint(1, 6)
        ledger.append(*left[:size])
        left = left[size:]
    newest: dict[tuple[str, str], int] = {}
    for event in beats:
        key = ("alpha", event.source)
        newest[key] = max(event.at_s, newest.get(key, 0))
    assert marks(ledger) == newest
    with writing(ledger.engine) as writer:
        rebuild.rebuild(writer, Calendar())
    assert marks(ledger) == newest


def test_one_that_the_journal_does_not_give_is_found_by_the_check(ledger: Ledger) -> None:
    ledger.append(beat(NOON_S))
    with writing(ledger.engine) as writer:
        advance(writer, "alpha", [("slurm/alpha", instant(NOON_S + 1))])
    with reading(ledger.engine) as reader:
        found = rebuild.check(reader, Calendar())
    assert not found.ok
    assert any(difference.startswith("watermark") for difference in found.differences)
