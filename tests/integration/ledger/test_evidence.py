"""Runs whose end was lost are found by what the book and the telemetry know; the truth corrects the estimate."""

from typing import Any

import pytest
from tests.integration.ledger.books import (
    CLUSTER,
    HOUR,
    Ledger,
    at,
    ended,
    registered,
    started,
    submitted,
    told,
)
from tests.integration.ledger.samples import sampled

from gpuledger.database.engine import reading
from gpuledger.events import host, workload
from gpuledger.events.envelope import Event
from gpuledger.ledger.evidence import lost_end_events
from gpuledger.ledger.lost_ends import SOURCE

START = at("2026-11-29T00:00:00Z")
NOW = START + 30 * HOUR


def search(ledger: Ledger, as_of_s: int = NOW, since_s: int = 0) -> list[Event]:
    with reading(ledger.engine) as reader:
        return lost_end_events(reader, CLUSTER, as_of_s=as_of_s, since_s=since_s)


def found(ledger: Ledger, as_of_s: int = NOW, since_s: int = 0) -> dict[str, int]:
    """Return workload/run -> hours after the start at which it must have been over."""
    ends = {}
    for event in search(ledger, as_of_s, since_s):
        data = event.data
        assert isinstance(data, workload.Ended)
        assert (data.estimated, data.reason, event.source) == (True, "lost-end", SOURCE)
        ends[f"{data.workload}/{data.run}"] = event.at_s - START
    return ends


def begin(
    ledger: Ledger,
    name: str = "w1",
    at_s: int = START,
    limit_s: int | None = None,
    **keys: Any,  # noqa: ANN401
) -> None:
    """A run of 8 GPUs on h1 begins, and its end is lost."""
    ledger.append(told(at_s, submitted(name, time_limit_s=limit_s)), told(at_s, started(name, **keys)))


def test_nothing_is_said_of_a_run_that_may_be_alive_or_has_ended(ledger: Ledger) -> None:
    begin(ledger, limit_s=100 * HOUR)
    begin(ledger, "w2", limit_s=HOUR, hosts=["h2"])
    ledger.append(told(START + HOUR, ended("w2")))
    assert found(ledger) == {}
    assert found(Ledger(ledger.url), START) == {}


def test_a_run_beyond_its_limit_ended_when_it_was_seen_last(ledger: Ledger) -> None:
    begin(ledger, limit_s=5 * HOUR)
    begin(ledger, "w2", limit_s=5 * HOUR, hosts=["h2"])
    sampled(ledger, START, START + 3 * HOUR)
    assert found(ledger) == {"w1/r1": 3 * HOUR, "w2/r1": 5 * HOUR}
    assert found(ledger, START + 5 * HOUR + 599) == {}


def test_a_sample_older_than_what_was_looked_at_is_found_for_those_that_are_lost(ledger: Ledger) -> None:
    begin(ledger, limit_s=5 * HOUR)
    sampled(ledger, START, START + 3 * HOUR)
    assert found(ledger, since_s=NOW - HOUR) == {"w1/r1": 3 * HOUR}


def test_samples_of_a_handle_are_signs_of_life_of_the_run_that_it_stands_for(ledger: Ledger) -> None:
    for job, limit_s in ((7, 5 * HOUR), (8, None)):
        name, run = f"{job}-{START}", str(START)
        asked, given = submitted(name, time_limit_s=limit_s), started(name, run, hosts=[f"h{job}"])
        ledger.append(told(START, asked, source="slurm/alpha"), told(START, given, source="slurm/alpha"))
        sampled(ledger, START, START + 3 * HOUR, gpus=f"g{job}", handle=f"job/{job}")
        sampled(
            ledger, START - 9 * HOUR, START - 8 * HOUR, gpus=f"g{job}", handle=f"job/{job}"
        )  # of another job
    assert found(ledger) == {f"7-{START}/{START}": 3 * HOUR}
    sampled(ledger, START + 3 * HOUR, NOW, None, gpus="g8")
    assert found(ledger) == {f"{job}-{START}/{START}": 3 * HOUR for job in (7, 8)}
    ledger.append(*search(ledger))
    sampled(ledger, START + 3 * HOUR, START + 4 * HOUR, gpus="g7", handle="job/7")
    assert found(ledger) == {f"7-{START}/{START}": 4 * HOUR}


def test_a_fact_of_the_run_itself_is_a_sign_of_life(ledger: Ledger) -> None:
    begin(ledger, limit_s=5 * HOUR)
    ledger.append(told(START + 4 * HOUR, workload.Checkpointed(cluster=CLUSTER, workload="w1", run="r1")))
    assert found(ledger) == {"w1/r1": 4 * HOUR}


def test_the_next_run_on_its_devices_ends_it_and_one_beside_it_does_not(ledger: Ledger) -> None:
    begin(ledger, gpus_milli=1000, gpu_uuids=["g1"])
    begin(ledger, "w2", START + HOUR, gpus_milli=1000, gpu_uuids=["g2"])
    assert found(ledger) == {}
    begin(ledger, "w3", START + 2 * HOUR, gpus_milli=1000, gpu_uuids=["g1"])
    assert found(ledger) == {"w1/r1": 2 * HOUR}
    assert found(ledger, START + 2 * HOUR - 1) == {}


def test_the_next_run_of_the_same_workload_counts_like_any_other(ledger: Ledger) -> None:
    begin(ledger, gpu_uuids=["g1"])
    ledger.append(told(START + HOUR, started("w1", "r2", attempt=2, gpu_uuids=["g1"])))
    assert found(ledger) == {"w1/r1": HOUR}


def test_a_host_that_has_no_room_for_both_ends_the_first(ledger: Ledger) -> None:
    begin(ledger, gpus_milli=4000)
    begin(ledger, "w2", START + HOUR, gpus_milli=4000)
    begin(ledger, "w3", START + 2 * HOUR, gpus_milli=5000)
    assert found(ledger) == {}  # nobody said what is installed
    ledger.append(told(0, registered("h1", 8)))
    assert found(ledger) == {"w1/r1": 2 * HOUR, "w2/r1": 2 * HOUR}


def test_a_host_had_room_for_both_by_what_was_installed_then(ledger: Ledger) -> None:
    ledger.append(
        told(0, registered("h1", 8)), told(START + HOUR, registered("h1", 16), source="gpuledger/x")
    )
    begin(ledger, gpus_milli=8000)
    begin(ledger, "w2", START + 2 * HOUR, gpus_milli=8000)
    assert found(ledger) == {}


def test_starts_that_an_earlier_search_saw_are_not_looked_at_again(ledger: Ledger) -> None:
    begin(ledger, gpu_uuids=["g1"])
    begin(ledger, "w2", START + HOUR, gpu_uuids=["g1"])
    assert found(ledger, since_s=START + HOUR + 1) == {}
    assert found(ledger, since_s=START + HOUR) == {"w1/r1": HOUR}


@pytest.mark.parametrize("kind", ["registered anew", "rebooted", "retired"])
def test_a_host_that_went_down_ends_its_runs(ledger: Ledger, kind: str) -> None:
    machine = {"cluster": CLUSTER, "host": "h1", "gpus": 8, "gpu_model": "H100"}
    fact = {
        "registered anew": registered("h1", 8),
        "rebooted": host.StateChanged(**machine, reason="reboot"),
        "retired": host.Retired(**machine),
    }[kind]
    ledger.append(told(START - HOUR, registered("h1", 8)))
    begin(ledger)
    begin(ledger, "w2", START + 3 * HOUR)
    begin(ledger, "w3", hosts=["h2"])
    ledger.append(told(START + 2 * HOUR, fact))
    assert found(ledger)["w1/r1"] == 2 * HOUR
    assert {"w2/r1", "w3/r1"}.isdisjoint(found(ledger))


def test_devices_that_are_sampled_on_without_a_run_do_not_hold_it(ledger: Ledger) -> None:
    begin(ledger)
    sampled(ledger, START, START + HOUR, gpus="g1 g2")
    sampled(ledger, START + HOUR, START + 3 * HOUR - 300, None, gpus="g1 g2")
    assert found(ledger, START + 4 * HOUR) == {}
    sampled(ledger, START + 3 * HOUR - 300, START + 3 * HOUR, "other/r1", gpus="g2")
    assert found(ledger, START + 3 * HOUR - 1) == {}
    assert found(ledger, START + 4 * HOUR) == {"w1/r1": HOUR}
    sampled(ledger, START + 3 * HOUR, NOW, None, gpus="g1")
    assert found(ledger) == {"w1/r1": HOUR}


def test_an_exporter_that_is_down_says_nothing_of_its_runs(ledger: Ledger) -> None:
    begin(ledger)
    sampled(ledger, START, START + HOUR, gpus="g1")
    sampled(ledger, START + HOUR, NOW, None, gpus="g7")  # another device
    assert found(ledger) == {}
    sampled(ledger, NOW - 2 * HOUR + 300, NOW, None, gpus="g1")  # up again, not for long enough
    assert found(ledger) == {}
    sampled(ledger, NOW, NOW + 300, None, gpus="g1")
    assert found(ledger, NOW + HOUR) == {"w1/r1": HOUR}


def test_a_run_that_moved_to_another_device_lives_there(ledger: Ledger) -> None:
    begin(ledger)
    sampled(ledger, START, START + HOUR, gpus="g1")
    sampled(ledger, START + HOUR, NOW, None, gpus="g1")
    sampled(ledger, START + HOUR, NOW, gpus="g2")
    assert found(ledger) == {}


def test_a_suspended_run_is_not_missed(ledger: Ledger) -> None:
    begin(ledger)
    sampled(ledger, START, START + HOUR)
    sampled(ledger, START + HOUR, NOW, None)
    ledger.append(told(START + HOUR, workload.Suspended(cluster=CLUSTER, workload="w1", run="r1")))
    assert found(ledger) == {}


def test_a_run_that_no_sample_ever_named_is_not_missed(ledger: Ledger) -> None:
    begin(ledger, gpu_uuids=["g1"])
    sampled(ledger, START, NOW, None, gpus="g1")
    assert found(ledger) == {}


def test_an_estimate_is_booked_once_and_closes_the_run_flagged(ledger: Ledger) -> None:
    begin(ledger, limit_s=5 * HOUR)
    ledger.append(*search(ledger))
    assert ledger.total() == 5 * HOUR * 8000
    assert ledger.rows("SELECT estimated FROM ledger.segments WHERE until_seq IS NULL") == [(True,)]
    assert found(ledger) == {}
    assert found(ledger, NOW + 100 * HOUR) == {}


@pytest.mark.parametrize("hours", [1, 5, 7])
def test_the_true_end_corrects_what_was_posted_whether_earlier_or_later(ledger: Ledger, hours: int) -> None:
    begin(ledger, limit_s=5 * HOUR)
    ledger.append(*search(ledger))
    ledger.append(told(START + hours * HOUR, ended()))
    assert ledger.total() == hours * HOUR * 8000
    assert ledger.rows("SELECT estimated FROM ledger.segments WHERE until_seq IS NULL") == [(False,)]
    sampled(ledger, START, START + 9 * HOUR)
    assert found(ledger) == {}


def test_the_order_in_which_estimate_and_truth_come_changes_no_amount(ledger: Ledger) -> None:
    begin(ledger, limit_s=5 * HOUR)
    (estimate,) = search(ledger)
    ledger.append(told(START + 3 * HOUR, ended()))
    ledger.append(estimate)
    assert ledger.total() == 3 * HOUR * 8000


def test_a_run_that_proves_to_have_lived_longer_gets_a_later_estimate(ledger: Ledger) -> None:
    begin(ledger, gpus_milli=1000, gpu_uuids=["g1"])
    begin(
        ledger, "w2", START + 2 * HOUR, gpus_milli=1000, gpu_uuids=["g1"]
    )  # the scheduler shares the device
    ledger.append(*search(ledger))
    assert found(ledger) == {}
    sampled(ledger, START, START + 4 * HOUR)
    assert found(ledger) == {"w1/r1": 4 * HOUR}
    ledger.append(*search(ledger))
    assert found(ledger) == {}
    sampled(ledger, START + 4 * HOUR, START + 6 * HOUR)
    assert found(ledger, START + 5 * HOUR) == {"w1/r1": 5 * HOUR}
    assert found(ledger) == {"w1/r1": 6 * HOUR}
    ledger.append(*search(ledger))
    closed = ledger.rows("SELECT to_at FROM ledger.segments WHERE until_seq IS NULL AND workload = 'w1'")
    assert [int(to_at.timestamp()) for (to_at,) in closed] == [START + 6 * HOUR]


def test_an_estimate_of_another_source_is_left_alone(ledger: Ledger) -> None:
    begin(ledger)
    ledger.append(told(START + HOUR, ended(estimated=True)))
    sampled(ledger, START, START + 9 * HOUR)
    assert found(ledger) == {}
