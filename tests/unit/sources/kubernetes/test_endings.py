from pathlib import Path

import pytest
from tests.unit.sources.kubernetes.building import (
    Object,
    bound,
    change,
    conditions,
    events,
    odd,
    pod,
    read,
    terminated,
)

from gpuledger.events.workload import Ended

BEGAN = 1_793_476_800  # 2026-10-31T20:00:00Z
AT_5, AT_9 = "2026-10-31T20:05:00Z", "2026-10-31T20:09:00Z"


def last(tmp_path: Path, *objects: Object) -> tuple[int, Ended]:
    event = events(read(tmp_path, *objects))[-1]
    assert isinstance(event.data, Ended)
    return event.at_s, event.data


def test_a_terminal_pod_ends_with_its_last_container(tmp_path: Path) -> None:
    statuses = [terminated(AT_5), terminated(AT_9, 137, "OOMKilled")]
    at_s, end = last(tmp_path, pod("x", 1, bound(AT_5, "Failed", containerStatuses=statuses)))
    assert (at_s, end.reason, end.exit, end.estimated) == (BEGAN + 540, "OOMKilled", "137", None)
    at_s, end = last(tmp_path, pod("x", 1, bound(AT_5, "Succeeded", containerStatuses=[terminated(AT_9)])))
    assert (at_s, end.reason, end.exit) == (BEGAN + 540, "Succeeded", "0")


def test_reasons_are_those_of_kubernetes_the_most_telling_first(tmp_path: Path) -> None:
    status = bound(AT_5, "Failed", containerStatuses=[terminated(AT_9, 1, "Error")])
    assert last(tmp_path, pod("x", 1, status))[1].reason == "Error"
    disrupted = conditions(DisruptionTarget=("True", "PreemptionByScheduler", AT_9))
    status = status | {"conditions": status["conditions"] + disrupted}
    assert last(tmp_path, pod("x", 1, status))[1].reason == "PreemptionByScheduler"
    assert last(tmp_path, pod("x", 1, status | {"reason": "NodeLost"}))[1].reason == "NodeLost"


def test_a_pod_that_is_gone_ends_when_that_was_seen(tmp_path: Path) -> None:
    running = pod(
        "x", 1, bound(AT_5, containerStatuses=[terminated(AT_5), {"name": "b", "state": {"running": {}}}])
    )
    at_s, end = last(tmp_path, change("DELETED", running, AT_9))
    assert (at_s, end.reason, end.estimated) == (BEGAN + 540, "deleted", None)
    at_s, end = last(tmp_path, change("VANISHED", running, AT_9))
    assert (at_s, end.estimated) == (BEGAN + 540, True)
    asked = running | {"metadata": running["metadata"] | {"deletionTimestamp": AT_9}}
    at_s, end = last(tmp_path, change("DELETED", asked))
    assert (at_s, end.estimated) == (BEGAN + 540, True)
    written = running | {"metadata": running["metadata"] | {"managedFields": [{"time": AT_9}]}}
    at_s, end = last(tmp_path, change("DELETED", written))
    assert (at_s, end.estimated) == (BEGAN + 540, True)


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_pod_that_is_over_nobody_says_since_when_stays_open(tmp_path: Path, phase: str) -> None:
    found = pod("x", 1, bound(AT_5, phase))
    items = read(tmp_path, found)
    assert [event.name for event in events(items)] == ["workload.submitted", "workload.started"]
    assert odd(items) == ["ended-at-unknown-time"]
    ready = conditions(Ready=("False", "PodCompleted", AT_9))
    later = found | {"status": found["status"] | {"conditions": found["status"]["conditions"] + ready}}
    at_s, end = last(tmp_path, found, later)
    assert (at_s, end.reason, end.estimated) == (BEGAN + 540, phase, True)
