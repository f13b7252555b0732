"""The collector against recorded answers: nothing twice, nothing lost, from where it stopped."""

import datetime as dt
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.unit.collect.ledgers import Ledger
from tests.unit.collect.recorded import Recorded
from tests.unit.sources.kubernetes.building import (
    Object,
    admission,
    assignment,
    bound,
    conditions,
    pod,
    pod_set,
    terminated,
    workload,
)

from gpuledger.collect.kubernetes import Collected, Collector, in_short
from gpuledger.collect.kubernetes_listening import Listener
from gpuledger.events.heartbeat import Heartbeat
from gpuledger.events.workload import Started
from gpuledger.kernel.clock import FixedClock
from gpuledger.kernel.errors import Refused, Unavailable
from gpuledger.sources.kubernetes import standing
from gpuledger.sources.registry import source

NOON = dt.datetime(2026, 10, 31, 22, tzinfo=dt.UTC)
AT_8, AT_9, AT_10 = "2026-10-31T20:00:00Z", "2026-10-31T21:00:00Z", "2026-10-31T22:00:00Z"


def test_what_is_there_is_booked_once(start: Callable[[], Collector], ledger: Ledger) -> None:
    first = start().look()
    assert (first.records, first.accepted, first.dead_lettered) == (2, 2, 0)
    assert ledger.told() == ["host.registered", "workload.submitted", "workload.started"]
    again = start().look()
    assert (again.records, again.accepted) == (0, 0)


def test_what_happened_while_it_was_stopped_is_watched_not_listed(
    start: Callable[[], Collector], ledger: Ledger, recorded: Recorded
) -> None:
    start().look()
    recorded.happen("MODIFIED", pod("x", 2, bound(AT_8, "Succeeded", containerStatuses=[terminated(AT_9)])))
    recorded.happen("DELETED", pod("x", 2, bound(AT_8, "Succeeded", containerStatuses=[terminated(AT_9)])))
    recorded.happen("ADDED", pod("short", 1, bound(AT_8)))
    recorded.happen(
        "DELETED", pod("short", 1, bound(AT_8, "Succeeded", containerStatuses=[terminated(AT_9)]))
    )
    found = start().look()
    assert found.vanished == 0
    assert sorted(ledger.told()) == sorted(
        ["host.registered"] + 2 * ["workload.submitted", "workload.started", "workload.ended"]
    )


def test_after_410_it_lists_again_and_what_is_gone_ended_when_it_was_last_heard_of(
    start: Callable[[], Collector], ledger: Ledger, recorded: Recorded, clock: FixedClock
) -> None:
    start().look()
    recorded.happen("DELETED", pod("x", 2, bound(AT_8)))
    recorded.happen("ADDED", pod("y", 1, bound(AT_8)))
    recorded.forget()
    clock.at = NOON + dt.timedelta(hours=1)
    found = start().look()
    assert found.vanished == 1
    (ended,) = [event for event in ledger.facts.values() if event.name == "workload.ended"]
    assert (ended.at_s, ended.data.estimated) == (int(NOON.timestamp()), True)  # type: ignore[attr-defined]
    assert sum(name == "workload.started" for name in ledger.told()) == 2
    assert start().look().vanished == 0


def test_a_crash_between_booking_and_keeping_the_position_changes_nothing(
    start: Callable[[], Collector], ledger: Ledger, recorded: Recorded, tmp_path: Path
) -> None:
    start().look()
    before = (tmp_path / "position").read_bytes()
    recorded.happen("MODIFIED", pod("x", 2, bound(AT_8, "Succeeded", containerStatuses=[terminated(AT_9)])))
    start().look()
    booked = dict(ledger.facts)
    (tmp_path / "position").write_bytes(before)
    found = start().look()
    assert (found.records, found.accepted, found.repeated) == (1, 0, 1)
    assert ledger.facts == booked
    (tmp_path / "position").unlink()
    assert start().look().accepted == 0
    assert ledger.facts == booked


def test_a_ledger_that_is_down_leaves_the_position_where_it_was(
    start: Callable[[], Collector], ledger: Ledger, recorded: Recorded
) -> None:
    start().look()
    recorded.happen("ADDED", pod("y", 1, bound(AT_8)))
    ledger.is_down = True
    with pytest.raises(Unavailable, match="database"):
        start().look()
    ledger.is_down = False
    assert start().look().accepted == 1


def test_a_run_of_kueue_goes_on_over_a_restart(
    start: Callable[[], Collector], ledger: Ledger, recorded: Recorded
) -> None:
    def job(status: dict[str, object]) -> dict[str, object]:
        return workload("train", [pod_set("main", 1, 8)], status)

    given = admission(assignment("main", 1, 8, "h100"))
    recorded.happen(
        "ADDED", job({"conditions": conditions(Admitted=("True", "Admitted", AT_8)), "admission": given})
    )
    start().look()
    left = conditions(Admitted=("False", "NoReservation", AT_9), Evicted=("True", "Preempted", AT_9))
    recorded.happen("MODIFIED", job({"conditions": left, "accumulatedPastExecutionTimeSeconds": 3600}))
    found = start().look()
    assert dict(found.anomalies) == {}
    assert [event.data.run for event in ledger.facts.values() if event.name == "workload.preempted"] == ["1"]  # type: ignore[attr-defined]


def test_what_cannot_be_read_is_a_dead_letter_that_can_be_read_again(
    start: Callable[[], Collector], ledger: Ledger, recorded: Recorded
) -> None:
    recorded.happen("ADDED", pod("odd", "1.5", bound(AT_8)))
    found = start().look()
    assert (found.dead_lettered, found.told) == (
        1,
        ["dead letter: nvidia.com/gpu: '1.5' is not a whole number"],
    )
    (letter,) = ledger.letters
    assert (letter.code, letter.cluster()) == ("not-a-number", "c")
    assert (
        source(str(letter.context["source"]))
        .retry(letter.raw.replace(b'"1.5"', b'"1"'), letter.context)
        .events
    )


def test_what_the_ledger_cannot_hold_is_a_dead_letter_and_the_rest_is_booked(
    start: Callable[[], Collector], ledger: Ledger, recorded: Recorded
) -> None:
    start().look()
    (ledger.too_large,) = {getattr(e.data, "workload", None) for e in ledger.facts.values()} - {None}
    before = len(ledger.facts)
    recorded.happen("MODIFIED", pod("x", 2, bound(AT_8, "Succeeded", containerStatuses=[terminated(AT_9)])))
    recorded.happen("ADDED", pod("y", 1, bound(AT_8)))
    found = start().look()
    assert (found.records, found.accepted, found.dead_lettered) == (2, 1, 1)
    assert [letter.code for letter in ledger.letters] == ["amount-too-large"]
    assert len(ledger.facts) == before + 2


def test_a_record_that_was_refused_tells_all_when_it_is_read_again_and_one_that_was_not_understood_its_own(
    start: Callable[[], Collector], ledger: Ledger, recorded: Recorded
) -> None:
    """The start of the first was never booked; that of the second was, and is not told a second time."""
    start().look()
    (ledger.too_large,) = {getattr(e.data, "workload", None) for e in ledger.facts.values()} - {None}
    ended = pod("x", 2, bound(AT_8, "Succeeded", containerStatuses=[terminated(AT_9)]))
    recorded.happen("MODIFIED", ended)
    recorded.happen("MODIFIED", pod("x", 2, {"phase": "Failed", "conditions": []}))
    start().look()
    names = [
        [event.name for event, _ in source("pods").retry(raw, letter.context).events]
        for letter in ledger.letters
        for raw in [letter.raw.replace(b'"conditions":[]', b'"startTime":"2026-10-31T20:00:00Z"')]
    ]
    assert sorted(names) == [
        ["workload.ended"],
        ["workload.submitted", "workload.started", "workload.ended"],
    ]


def test_it_says_that_it_is_alive_up_to_when_it_heard_of_every_kind(
    start: Callable[[], Collector], ledger: Ledger
) -> None:
    start().look()
    (beat,) = [event for event in ledger.facts.values() if isinstance(event.data, Heartbeat)]
    assert (beat.source, beat.at_s, beat.data.cluster) == (
        "kubernetes/c/collector",
        int(NOON.timestamp()),
        "c",
    )


def test_it_watches_until_it_is_told_to_stop(
    start: Callable[[], Collector], ledger: Ledger, recorded: Recorded
) -> None:
    stop, seen = threading.Event(), []

    def on_batch(collected: Collected) -> None:
        seen.append(collected.accepted)
        if len(seen) == 1:
            recorded.happen("ADDED", pod("y", 1, bound(AT_8)))
        if "workload.started" in ledger.told()[3:]:
            stop.set()

    start().watch(stop, on_batch)
    assert seen[-1] == 3


def test_it_lists_again_while_it_watches(
    start: Callable[[], Collector], ledger: Ledger, recorded: Recorded
) -> None:
    stop, seen = threading.Event(), []

    def on_batch(collected: Collected) -> None:
        seen.append(collected)
        if len(seen) == 1:
            recorded.happen("DELETED", pod("x", 2, bound(AT_8)))
            recorded.forget()
        if collected.vanished:
            stop.set()

    start().watch(stop, on_batch)
    assert "workload.ended" in ledger.told()


def test_an_account_that_loses_its_rights_stops_it(
    start: Callable[[], Collector], recorded: Recorded
) -> None:
    def on_batch(collected: Collected) -> None:
        recorded.refuses["Pod"] = 403

    with pytest.raises(Refused, match="pods: the Kubernetes API answered 403"):
        start().watch(threading.Event(), on_batch)


def test_a_listener_that_breaks_is_not_taken_for_a_kind_without_news(
    start: Callable[[], Collector], monkeypatch: pytest.MonkeyPatch
) -> None:
    def on_batch(_: Collected) -> None:
        monkeypatch.setattr(Listener, "_watch", _broken)

    with pytest.raises(ZeroDivisionError, match="a fault of ours"):
        start().watch(threading.Event(), on_batch)


def _broken(*_: object) -> str:
    raise ZeroDivisionError("a fault of ours")


JOBSET = {
    "ownerReferences": [{"kind": "Job", "name": "llm-0", "uid": "uid-job", "controller": True}],
    "labels": {"jobset.sigs.k8s.io/jobset-name": "llm"},
}
SET = {"ownerReferences": [{"kind": "JobSet", "name": "llm", "uid": "uid-set", "controller": True}]}


def of_jobset(finished: str | None = None) -> Object:
    given = admission(assignment("main", 1, 8, "h100"))
    types = {"Admitted": ("True", "Admitted", AT_8)}
    types |= {"Finished": ("True", "Succeeded", finished)} if finished else {}
    return workload(
        "llm", [pod_set("main", 1, 8)], {"conditions": conditions(**types), "admission": given}, metadata=SET
    )


@pytest.mark.parametrize("is_forgotten", [False, True], ids=["watched", "listed anew"])
def test_a_pod_of_a_workload_that_is_over_is_charged_to_nobody_after_a_restart(
    start: Callable[[], Collector], ledger: Ledger, recorded: Recorded, *, is_forgotten: bool
) -> None:
    """Nothing on the pod names Kueue: only the collector's memory says that the Workload carried its GPUs."""
    found = pod("llm-0-x", 8, bound(AT_8), metadata=JOBSET)
    recorded.happen("ADDED", of_jobset())
    recorded.happen("ADDED", found)
    start().look()
    recorded.happen("MODIFIED", of_jobset(AT_9))
    start().look()
    over = pod("llm-0-x", 8, bound(AT_8, "Succeeded", containerStatuses=[terminated(AT_9)]), metadata=JOBSET)
    recorded.happen("MODIFIED", over)
    start().look()
    recorded.happen("DELETED", of_jobset(AT_9))
    if is_forgotten:
        recorded.forget()
    start().look()
    recorded.happen("DELETED", over)
    start().look()
    started = [e.data for e in ledger.facts.values() if isinstance(e.data, Started)]
    assert {(one.workload.split("/")[1], one.gpus_milli) for one in started} == {
        ("x", 2000),
        ("job-llm", 8000),
    }
    assert len(started) == 2
    assert sum(e.name == "workload.ended" for e in ledger.facts.values()) == 1


def test_what_it_remembers_of_workloads_is_bounded_however_long_it_runs(
    start: Callable[[], Collector], recorded: Recorded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(standing, "GONE_MAX", 5)
    collector = start()
    collector.look()
    sizes: list[tuple[int, int]] = []
    pending = {"conditions": conditions(QuotaReserved=("False", "Pending", AT_8))}
    for ten in range(1, 4):
        for number in range(10):
            one = workload(f"w{ten}{number}", [pod_set("main", 1, 8)], pending)
            recorded.happen("ADDED", one)
            recorded.happen("DELETED", one)
        collector.look()
        sizes.append((len(collector._interpreter.standing), len((tmp_path / "position").read_bytes())))
    assert sizes == [sizes[0]] * 3
    assert sizes[0][0] == 5


def test_only_what_may_still_say_something_is_kept() -> None:
    import msgspec

    running, over = pod("x", 1, bound(AT_8)), pod("x", 1, bound(AT_8, "Failed"))
    kept = in_short("Pod", msgspec.json.encode(running))
    assert kept is not None
    assert b"image" not in kept
    assert in_short("Pod", msgspec.json.encode(over)) is None
    finished = {"conditions": conditions(Finished=("True", "Succeeded", AT_9))}
    done = workload("w", [pod_set("main", 1, 8)], finished)
    assert in_short("Workload", msgspec.json.encode(done)) is None
