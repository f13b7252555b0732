"""Telemetry reaches the book as one fact an hour, and as a further one when samples come late."""

import pytest
from tests.integration.ledger.books import (
    CLUSTER,
    GPU_HOUR,
    HOUR,
    Ledger,
    at,
    run_of,
    started,
    submitted,
    told,
)
from tests.integration.ledger.samples import sampled

from gpuledger.database.engine import reading
from gpuledger.events.telemetry import Sealed, SealedRung
from gpuledger.ledger import sealing
from gpuledger.ledger.sealing import Seal

NOON = at("2026-11-30T12:00:00Z")


def sealed(ledger: Ledger, end_s: int = NOON, cluster: str = CLUSTER) -> Sealed | None:
    with reading(ledger.engine) as reader:
        return sealing.sealed(reader, cluster, end_s)


def seal(ledger: Ledger, end_s: int = NOON) -> Sealed:
    """Journal the seal of an hour."""
    fact = sealed(ledger, end_s)
    assert fact is not None
    ledger.append(sealing.seal_event(fact, end_s))
    return fact


def seals(ledger: Ledger, from_s: int = NOON - 24 * HOUR, to_s: int = NOON + 24 * HOUR) -> list[Seal]:
    with reading(ledger.engine) as reader:
        return sealing.seals(reader, CLUSTER, from_s, to_s)


def stale(ledger: Ledger, upto_s: int = NOON, look_back_s: int = 24 * HOUR) -> list[int]:
    with reading(ledger.engine) as reader:
        return sealing.stale_hours(reader, CLUSTER, upto_s, look_back_s)


def test_an_hour_without_samples_has_no_seal(ledger: Ledger) -> None:
    sampled(ledger, NOON, NOON + HOUR)
    sampled(ledger, NOON - 2 * HOUR, NOON - HOUR)
    assert sealed(ledger) is None


def test_sums_count_what_a_run_held_and_devices_all(ledger: Ledger) -> None:
    ledger.append(*run_of(NOON - HOUR, NOON - HOUR // 2, gpus_milli=2000))
    sampled(ledger, NOON - HOUR, NOON - HOUR // 2, gpus="g1 g2")
    sampled(ledger, NOON - HOUR // 2, NOON, None, gpus="g1 g2 g3", percent=1)
    fact = sealed(ledger)
    assert fact is not None
    assert (fact.cluster, fact.gpus) == (CLUSTER, 3)
    assert fact.rungs == [
        SealedRung(rung="gpu_util", sampled_gpu_ms=GPU_HOUR, used_gpu_upms=GPU_HOUR * 500_000)
    ]
    assert fact.sampled_gpu_ms == GPU_HOUR * 5 // 2
    assert fact.assigned_gpu_ms == GPU_HOUR


def test_idle_devices_alone_make_a_seal_without_rungs(ledger: Ledger) -> None:
    sampled(ledger, NOON - 60, NOON, None)
    fact = sealed(ledger)
    assert fact is not None
    assert (fact.gpus, fact.rungs, fact.assigned_gpu_ms) == (1, [], 0)


def test_an_open_run_is_assigned_up_to_the_end_of_the_hour_and_not_beyond_its_limit(ledger: Ledger) -> None:
    ledger.append(
        told(0, submitted()),
        told(NOON - 600, started(gpus_milli=1000)),
        told(0, submitted("w2")),
        told(NOON, started("w2")),
        told(0, submitted("w3", time_limit_s=HOUR)),
        told(NOON - HOUR - 3000, started("w3", gpus_milli=1000)),
        told(0, submitted("w4", time_limit_s=HOUR)),
        told(NOON - 9 * HOUR, started("w4", gpus_milli=1000)),
    )
    sampled(ledger, NOON - 60, NOON)
    fact = sealed(ledger)
    assert fact is not None
    assert fact.assigned_gpu_ms == 1_200_000


def test_the_digest_is_of_the_samples_and_not_of_the_book_or_the_order_they_came_in(ledger: Ledger) -> None:
    sampled(ledger, NOON - 900, NOON - 600, gpus="a Ä b")
    sampled(ledger, NOON - 600, NOON, "w2/r1", gpus="B")
    sampled(ledger, NOON - 600, NOON, "w2/r1", gpus="B", cluster="beta")
    sampled(ledger, NOON - 900, NOON - 600, gpus="b Ä a", cluster="beta")
    one, other = sealed(ledger), sealed(ledger, cluster="beta")
    assert one is not None
    assert other is not None
    assert one.digest == other.digest
    assert len(one.digest) == 64
    sampled(ledger, NOON - 300, NOON, None, gpus="B", percent=0)
    assert sealed(ledger) != one


def test_a_seal_is_journalled_once_and_names_the_end_of_its_hour(ledger: Ledger) -> None:
    sampled(ledger, NOON - HOUR, NOON)
    fact = seal(ledger)
    event = sealing.seal_event(fact, NOON)
    assert event.id == f"telemetry/alpha/2026-11-30T12:00:00Z/{fact.digest[:12]}"
    assert (event.source, event.at_s) == ("gpuledger/ticks", NOON)
    assert ledger.append(event).repeated == 1
    assert seals(ledger) == [Seal(NOON, 1, fact)]


def test_late_samples_make_a_further_seal_and_the_newest_knows_most_whatever_came_first(
    ledger: Ledger,
) -> None:
    sampled(ledger, NOON - HOUR, NOON - 600)
    early = sealed(ledger)
    sampled(ledger, NOON - 600, NOON)
    late = seal(ledger)
    assert early is not None
    ledger.append(sealing.seal_event(early, NOON))
    assert seals(ledger) == [Seal(NOON, 1, late)]
    assert stale(ledger) == []


def test_seals_are_those_of_hours_within_the_window(ledger: Ledger) -> None:
    for hours in range(4):
        sampled(ledger, NOON + hours * HOUR, NOON + hours * HOUR + 60)
        seal(ledger, NOON + (hours + 1) * HOUR)
    found = seals(ledger, NOON + HOUR, NOON + 3 * HOUR)
    assert [s.end_s for s in found] == [NOON + 2 * HOUR, NOON + 3 * HOUR]
    assert [s.end_s for s in seals(ledger, NOON + HOUR - 1, NOON + 3 * HOUR - 1)] == [NOON + 2 * HOUR]


def test_hours_are_stale_without_a_seal_and_with_samples_their_seal_does_not_know(ledger: Ledger) -> None:
    for hours in (1, 2, 3, 30):
        sampled(ledger, NOON - hours * HOUR, NOON - hours * HOUR + 60)
    assert stale(ledger) == [NOON - 2 * HOUR, NOON - HOUR, NOON]
    for hours in range(3):
        seal(ledger, NOON - hours * HOUR)
    assert stale(ledger) == []
    sampled(ledger, NOON - 3 * HOUR + 60, NOON - 3 * HOUR + 90, None, gpus="g9")  # idle, and late
    assert stale(ledger) == [NOON - 2 * HOUR]
    assert stale(ledger, NOON + HOUR - 1) == [NOON - 2 * HOUR]
    assert stale(ledger, NOON - HOUR, look_back_s=HOUR) == []


def test_only_whole_hours_are_looked_at(ledger: Ledger) -> None:
    sampled(ledger, NOON - HOUR, NOON + HOUR)
    assert stale(ledger, NOON + 1800, look_back_s=HOUR + 1800) == [NOON]


def test_a_store_that_lost_samples_does_not_unseal_what_was_sealed(ledger: Ledger) -> None:
    sampled(ledger, NOON - HOUR, NOON)
    seal(ledger)
    ledger.change("DELETE FROM telemetry.buckets WHERE bucket_at > '2026-11-30T11:30:00Z'")
    assert stale(ledger) == []


@pytest.mark.parametrize("busy", [2**53 - 1, 2**62])
def test_the_use_of_more_devices_than_json_counts_safely_is_read_back(ledger: Ledger, busy: int) -> None:
    rung = SealedRung(rung="gpu_util", sampled_gpu_ms=1, used_gpu_upms=busy)
    fact = Sealed(
        cluster=CLUSTER, gpus=9999, sampled_gpu_ms=1, assigned_gpu_ms=1, rungs=[rung], digest="0" * 64
    )
    ledger.append(sealing.seal_event(fact, NOON))
    assert seals(ledger) == [Seal(NOON, 1, fact)]
