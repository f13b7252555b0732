from pathlib import Path

import pytest
from tests.unit.sources.kubernetes.building import (
    Object,
    admission,
    assignment,
    change,
    conditions,
    events,
    odd,
    pod_set,
    read,
    told,
    workload,
)

from gpuledger.events.workload import Ended, Preempted, Requeued, Resized, Started
from gpuledger.sources.protocol import Fault

BEGAN = 1_793_476_800  # 2026-10-31T20:00:00Z
GIVEN = admission(assignment("main", 1, 8, "h100"))


def at(minutes: int, seconds: int = 0) -> str:
    return f"2026-10-31T{20 + minutes // 60:02}:{minutes % 60:02}:{seconds:02}Z"


def state(
    accumulated: int | None = None,
    evictions: int | None = None,
    *,
    given: Object | None = GIVEN,
    **types: tuple[str, str, str],
) -> Object:
    status: Object = {"conditions": conditions(**types)}
    if given is not None:
        status["admission"] = given
    if accumulated is not None:
        status["accumulatedPastExecutionTimeSeconds"] = accumulated
    if evictions is not None:
        status["schedulingStats"] = {
            "evictions": [{"reason": "Preempted", "underlyingCause": "", "count": evictions}]
        }
    return status


def job(status: Object | None, **more: object) -> Object:
    return workload("train", [pod_set("main", 1, 8)], status, **more)  # type: ignore[arg-type]


def admitted(minutes: int) -> tuple[str, str, str]:
    return ("True", "Admitted", at(minutes))


def left(minutes: int) -> tuple[str, str, str]:
    return ("False", "NoReservation", at(minutes))


def test_what_multikueue_gave_to_another_cluster_holds_nothing_here(tmp_path: Path) -> None:
    """Its GPUs are those of the Workload over there; an eviction from there is no run here, whatever is counted."""
    there = state(Admitted=admitted(5)) | {"clusterName": "west"}
    back = state(accumulated=600, evictions=1, given=None, Admitted=left(15))
    again = state(accumulated=600, evictions=1, Admitted=admitted(20)) | {"clusterName": "east"}
    done = again | {"conditions": conditions(Admitted=admitted(20), Finished=("True", "Succeeded", at(40)))}
    states = [job(state(given=None)), job(there), job(there), job(back), job(again), job(done)]
    items = read(tmp_path, *states, name="kueue")
    assert told(events(items)) == [("workload.submitted", BEGAN), ("workload.ended", BEGAN + 300)]
    assert odd(items) == ["runs-elsewhere", "runs-elsewhere"]
    (end,) = {event.id: event.data for event in events(items) if isinstance(event.data, Ended)}.values()
    assert (end.run, end.reason) == (None, "dispatched")


def test_quota_that_is_only_reserved_is_no_run(tmp_path: Path) -> None:
    reserved = state(QuotaReserved=("True", "QuotaReserved", at(5)))
    assert told(events(read(tmp_path, job(reserved)))) == [("workload.submitted", BEGAN)]


def test_admissions_are_counted_by_evictions(tmp_path: Path) -> None:
    items = read(
        tmp_path,
        change("ADDED", job(state(Admitted=admitted(10)))),
        change(
            "MODIFIED", job(state(evictions=1, Admitted=admitted(10), Evicted=("True", "Preempted", at(30))))
        ),
        change(
            "MODIFIED",
            job(state(1260, 1, given=None, Admitted=left(31), Evicted=("True", "Preempted", at(30)))),
        ),
        change("MODIFIED", job(state(1260, 1, Admitted=admitted(40), Evicted=("True", "Preempted", at(30))))),
    )
    starts = [event.data for event in events(items) if isinstance(event.data, Started)]
    assert [(start.run, start.attempt) for start in starts] == [("1", 1), ("2", 2)]
    assert odd(items) == []


def test_each_state_alone_gives_a_run_the_same_name(tmp_path: Path) -> None:
    """A collector that starts in the middle, and an import of the whole stream, must not charge a run twice."""
    leaving = job(state(evictions=1, Admitted=admitted(10), Evicted=("True", "Preempted", at(30))))
    for alone in (job(state(Admitted=admitted(10))), leaving):
        (start,) = [e.data for e in events(read(tmp_path, alone)) if isinstance(e.data, Started)]
        assert (start.run, start.attempt) == ("1", 1)


def test_an_older_kueue_counts_nothing_and_later_admissions_are_named_by_their_time(tmp_path: Path) -> None:
    again = job(state(1260, Admitted=admitted(40), Evicted=("True", "Preempted", at(30))))
    items = read(tmp_path, again)
    (start,) = [e.data for e in events(items) if isinstance(e.data, Started)]
    assert (start.run, start.attempt) == (f"at-{BEGAN + 2400}", 2)
    assert odd(items) == ["history-missing"]


@pytest.mark.parametrize("accumulated_s", [3600, 10**12, 2**53])
def test_no_run_is_proven_that_lasted_longer_than_there_was_the_workload(
    tmp_path: Path, accumulated_s: int
) -> None:
    over = state(accumulated_s, 1, given=None, Admitted=left(31), Evicted=("True", "Preempted", at(30)))
    items = read(tmp_path, job(over))
    assert told(events(items)) == [("workload.submitted", BEGAN)]
    assert odd(items) == ["history-missing"]


@pytest.mark.parametrize(
    ("reason", "active", "kind"),
    [
        ("Preempted", True, Preempted),
        ("PodsReadyTimeout", True, Requeued),
        ("NodeFailures", True, Requeued),
        ("Deactivated", False, Ended),
    ],
)
def test_the_reason_says_whether_it_waits_again(
    tmp_path: Path,
    reason: str,
    active: bool,  # noqa: FBT001
    kind: type[Ended | Preempted | Requeued],
) -> None:
    items = read(
        tmp_path,
        change("ADDED", job(state(Admitted=admitted(10)))),
        change(
            "MODIFIED",
            job(
                state(600, 1, given=None, Admitted=left(20), Evicted=("True", reason, at(20))), active=active
            ),
        ),
    )
    stop = events(items)[-1]
    assert type(stop.data) is kind
    assert (stop.at_s, stop.data.reason, stop.data.run) == (BEGAN + 1200, reason, "1")  # type: ignore[attr-defined]


def test_a_run_that_was_taken_away_unseen_for_a_while_lasted_as_long_as_was_counted(tmp_path: Path) -> None:
    items = read(
        tmp_path,
        change("ADDED", job(state(Admitted=admitted(0)))),
        change(
            "MODIFIED",
            job(state(1800, 2, given=None, Admitted=left(60), Evicted=("True", "Preempted", at(60)))),
        ),
    )
    stop = events(items)[-1]
    assert isinstance(stop.data, Preempted)
    assert (stop.at_s, stop.data.estimated) == (BEGAN + 1800, True)
    assert odd(items) == ["accumulated-differs"]


def test_a_count_that_began_anew_says_nothing(tmp_path: Path) -> None:
    over = ("True", "MaximumExecutionTimeExceeded", at(60))
    items = read(
        tmp_path,
        change("ADDED", job(state(Admitted=admitted(0)))),
        change("MODIFIED", job(state(None, 1, given=None, Admitted=left(60), Evicted=over), active=False)),
    )
    assert (events(items)[-1].at_s, odd(items)) == (BEGAN + 3600, [])


@pytest.mark.parametrize(("evictions", "lasted_s"), [(2, 0), (1, 3600)])
def test_a_count_that_did_not_grow_is_believed_when_another_eviction_was_counted(
    tmp_path: Path, evictions: int, lasted_s: int
) -> None:
    over = state(0, evictions, given=None, Admitted=left(60), Evicted=("True", "Preempted", at(60)))
    items = read(tmp_path, change("ADDED", job(state(Admitted=admitted(0)))), change("MODIFIED", job(over)))
    assert events(items)[-1].at_s == BEGAN + lasted_s
    assert odd(items) == ["accumulated-differs"]


def test_time_that_cannot_be_dated_is_reported_and_not_booked(tmp_path: Path) -> None:
    twice = state(1800, 2, given=None, Admitted=left(60), Evicted=("True", "Preempted", at(60)))
    items = read(tmp_path, job(twice))
    assert told(events(items)) == [("workload.submitted", BEGAN)]
    assert odd(items) == ["history-missing"]
    partial = workload(
        "part", [pod_set("main", 4, 8, minCount=1)], state(1800, 1, given=None, Admitted=left(60))
    )
    assert odd(read(tmp_path, partial)) == ["history-missing"]


def test_a_missed_end_that_does_not_fit_is_the_next_start(tmp_path: Path) -> None:
    items = read(
        tmp_path,
        change("ADDED", job(state(Admitted=admitted(0)))),
        change("MODIFIED", job(state(99_999, 1, Admitted=admitted(60)))),
    )
    stop = next(event for event in events(items) if isinstance(event.data, Requeued))
    assert stop.at_s == BEGAN + 3600
    assert odd(items) == ["accumulated-differs", "history-rebuilt"]


def test_a_deleted_workload_ends_when_it_was_deleted(tmp_path: Path) -> None:
    running = job(state(Admitted=admitted(0)))
    asked = running | {"metadata": running["metadata"] | {"deletionTimestamp": at(5)}}
    stop = events(read(tmp_path, change("DELETED", asked)))[-1]
    assert (stop.name, stop.at_s) == ("workload.ended", BEGAN + 300)
    stop = events(read(tmp_path, change("DELETED", running, at(7))))[-1]
    assert (stop.at_s, stop.data.estimated) == (BEGAN + 420, None)  # type: ignore[attr-defined]
    stop = events(read(tmp_path, change("VANISHED", running, at(7))))[-1]
    assert (stop.at_s, stop.data.estimated) == (BEGAN + 420, True)  # type: ignore[attr-defined]
    assert odd(read(tmp_path, change("DELETED", running))) == ["deleted-at-unknown-time"]


def test_pods_that_are_through_at_an_unknown_time_are_held_to_the_end(tmp_path: Path) -> None:
    status = state(given=admission(assignment("main", 2, 16, "h100")), Admitted=admitted(0))
    status["reclaimablePods"] = [{"name": "main", "count": 1}]
    items = read(tmp_path, workload("two", [pod_set("main", 2, 8)], status))
    assert [name for name, _ in told(events(items))] == ["workload.submitted", "workload.started"]
    assert odd(items) == ["reclaimed-at-unknown-time"]


def test_it_is_ready_when_all_pods_are_for_the_first_time(tmp_path: Path) -> None:
    for reason, is_told in (("Started", True), ("PodsReady", True), ("Recovered", False)):
        items = read(tmp_path, job(state(Admitted=admitted(0), PodsReady=("True", reason, at(3)))))
        assert (("workload.ready", BEGAN + 180) in told(events(items))) is is_told
    earlier = read(tmp_path, job(state(Admitted=admitted(5), PodsReady=("True", "Started", at(3)))))
    assert "workload.ready" not in dict(told(events(earlier)))


def test_what_is_odd_about_times_is_reported(tmp_path: Path) -> None:
    early = state(
        Admitted=("True", "Admitted", "2026-10-31T19:59:59Z"),
        Finished=("True", "Failed", "2026-10-31T19:59:00Z"),
    )
    assert odd(read(tmp_path, job(early))) == ["start-before-submit", "end-before-start"]


def test_an_admission_that_says_nothing_is_a_fault(tmp_path: Path) -> None:
    (fault,) = read(tmp_path, job(state(given=None, Admitted=admitted(0))))
    assert isinstance(fault, Fault)
    assert (fault.code, "status.admission" in fault.message) == ("missing-value", True)


def test_a_host_that_is_replaced_is_told_from_when_that_was_seen(tmp_path: Path) -> None:
    """Kueue writes another topology into the admission that there is, and admits nothing anew."""

    def on(*hosts: str) -> Object:
        domains = [{"values": [host], "count": 1} for host in hosts]
        topology = {"levels": ["kubernetes.io/hostname"], "domains": domains}
        given = admission(assignment("main", 2, 16, "h100", topologyAssignment=topology))
        return workload("train", [pod_set("main", 2, 8)], state(given=given, Admitted=admitted(5)))

    before, after = on("n1", "n2"), on("n1", "n3")
    items = read(
        tmp_path,
        change("ADDED", before, at(5)),
        change("MODIFIED", after, at(30)),
        change("MODIFIED", after, at(31)),
        name="kueue",
    )
    found = {event.id: event for event in events(items)}
    hosts = [
        (e.at_s, e.data.gpus_milli, e.data.hosts)
        for e in found.values()
        if isinstance(e.data, Started | Resized)
    ]
    assert hosts == [(BEGAN + 300, 16000, ["n1", "n2"]), (BEGAN + 1800, 16000, ["n1", "n3"])]
    unseen = read(tmp_path, before, after, name="kueue")
    assert odd(unseen) == ["changed-at-unknown-time"]
