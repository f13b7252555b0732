"""The collector against recorded answers: nothing twice, nothing lost, from where it stopped."""

import datetime as dt
import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from tests.unit.collect.recorded import Recorded, served
from tests.unit.sources.kubernetes.building import (
    admission,
    assignment,
    bound,
    conditions,
    node,
    pod,
    pod_set,
    terminated,
    workload,
)

from gpuledger.collect.kubernetes import LISTED, Collected, Collector, Heard, Listener, in_short
from gpuledger.collect.kubernetes_api import RESOURCES, KubernetesApi
from gpuledger.collect.kubernetes_state import PositionFile
from gpuledger.events.envelope import Event
from gpuledger.events.heartbeat import Heartbeat
from gpuledger.ingest.dead_letters import DeadLetter
from gpuledger.ingest.intake import Taken
from gpuledger.kernel.clock import FixedClock
from gpuledger.kernel.errors import Refused, TooLarge, Unavailable
from gpuledger.sources.registry import source

NOON = dt.datetime(2026, 10, 31, 22, tzinfo=dt.UTC)
AT_8, AT_9 = "2026-10-31T20:00:00Z", "2026-10-31T21:00:00Z"


class Ledger:
    """Knows facts by their identity."""

    def __init__(self) -> None:
        self.facts: dict[tuple[str, str], Event] = {}
        self.letters: list[DeadLetter] = []
        self.is_down = False
        self.too_large: str | None = None
        """The workload whose amounts it cannot hold."""

    def take(self, events: Sequence[tuple[Event, bytes]], letters: Sequence[DeadLetter]) -> Taken:
        if self.is_down:
            raise Unavailable("the database is down")
        if any(
            getattr(event.data, "workload", None) == self.too_large for event, _ in events if self.too_large
        ):
            raise TooLarge("an amount is larger than the ledger can hold")
        taken = Taken()
        for event, _ in events:
            if self.facts.setdefault((event.source, event.id), event) is event:
                taken.accepted.add((event.source, event.id))
            else:
                assert self.facts[event.source, event.id].digest == event.digest  # one body under one id
                taken.repeated += 1
        self.letters += letters
        return taken

    def told(self) -> list[str]:
        return [event.name for event in self.facts.values() if not isinstance(event.data, Heartbeat)]


@pytest.fixture
def recorded() -> Recorded:
    recorded = Recorded()
    recorded.happen("ADDED", node("node-1"))
    recorded.happen("ADDED", pod("x", 2, bound(AT_8)))
    return recorded


@pytest.fixture
def ledger() -> Ledger:
    return Ledger()


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock(NOON)


@pytest.fixture
def start(
    recorded: Recorded, ledger: Ledger, clock: FixedClock, tmp_path: Path
) -> Iterator[Callable[[], Collector]]:
    """Start a collector; a second one goes on where the first stopped."""
    with served(recorded, tmp_path) as config:
        api = KubernetesApi(config)
        yield lambda: Collector(api, ledger, clock, PositionFile(tmp_path / "position"), "c")


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


class _Pauses(threading.Event):
    """Stops a listener after so many pauses, none of which it waits for."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self._count, self.taken = count, list[float]()

    def wait(self, timeout: float | None = None) -> bool:
        assert timeout is not None
        self.taken.append(timeout)
        if len(self.taken) == self._count:
            self.set()
        return self.is_set()


def test_a_listener_backs_off_while_the_api_is_in_trouble_and_no_longer_than_a_minute(
    recorded: Recorded, clock: FixedClock, tmp_path: Path
) -> None:
    """Too many requests, errors of the server, cut connections: each pause is twice the last, until one answers."""
    recorded.troubles["Pod"] = [429, 500, None, 503, 429, 500, 429]
    heard: queue.Queue[Heard | Exception] = queue.Queue()
    pauses = _Pauses(9)
    with served(recorded, tmp_path) as config:
        Listener(KubernetesApi(config), RESOURCES[3], "v1", clock, heard).run("100", pauses)
    assert pauses.taken == [2, 4, 8, 16, 32, 60, 60, 1, 1]
    changes = [item.change for item in list(heard.queue) if isinstance(item, Heard)]
    assert changes[0] == "ADDED", "nothing was missed"
    assert not [item for item in list(heard.queue) if isinstance(item, Exception)]


def test_a_listener_lists_again_after_410_however_often_the_list_fails(
    recorded: Recorded, clock: FixedClock, tmp_path: Path
) -> None:
    recorded.forget()
    recorded.troubles["Pod"] = [410, 500, 429]
    heard: queue.Queue[Heard | Exception] = queue.Queue()
    pauses = _Pauses(4)
    with served(recorded, tmp_path) as config:
        Listener(KubernetesApi(config), RESOURCES[3], "v1", clock, heard).run("100", pauses)
    assert pauses.taken == [2, 4, 1, 1]
    assert next(item.change for item in list(heard.queue) if isinstance(item, Heard)) == LISTED


def test_a_listener_that_breaks_is_not_taken_for_a_kind_without_news(
    start: Callable[[], Collector], monkeypatch: pytest.MonkeyPatch
) -> None:
    def on_batch(_: Collected) -> None:
        monkeypatch.setattr(Listener, "_watch", _broken)

    with pytest.raises(ZeroDivisionError, match="a fault of ours"):
        start().watch(threading.Event(), on_batch)


def _broken(*_: object) -> str:
    raise ZeroDivisionError("a fault of ours")


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
