"""One who listens to a kind: troubles of the connection are waited out, and what cannot be mended is told."""

import datetime as dt
import queue
import threading
from pathlib import Path

import pytest
from tests.unit.collect.recorded import Recorded, served
from tests.unit.sources.kubernetes.building import bound, pod

from gpuledger.collect.kubernetes_api import RESOURCES, KubernetesApi
from gpuledger.collect.kubernetes_listening import BATCH, LISTED, Heard, Listener, listed, waiting
from gpuledger.kernel.clock import FixedClock
from gpuledger.kernel.errors import Unavailable

AT_8 = "2026-10-31T20:00:00Z"
(POD,) = (resource for resource in RESOURCES if resource.kind == "Pod")


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock(dt.datetime(2026, 10, 31, 22, tzinfo=dt.UTC))


@pytest.fixture
def recorded() -> Recorded:
    recorded = Recorded()
    recorded.happen("ADDED", pod("x", 2, bound(AT_8)))
    return recorded


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
        Listener(KubernetesApi(config), POD, "v1", clock, heard).run("100", pauses)
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
        Listener(KubernetesApi(config), POD, "v1", clock, heard).run("100", pauses)
    assert pauses.taken == [2, 4, 1, 1]
    assert next(item.change for item in list(heard.queue) if isinstance(item, Heard)) == LISTED


def test_a_list_that_changes_faster_than_it_is_read_is_read_again(
    recorded: Recorded, clock: FixedClock, tmp_path: Path
) -> None:
    recorded.troubles["Pod"] = [410]
    with served(recorded, tmp_path) as config:
        api = KubernetesApi(config)
        with pytest.raises(Unavailable, match="410"):
            listed(api, POD, "v1", clock)
        found = listed(api, POD, "v1", clock)
    assert (found.change, len(found.objects), found.version) == (LISTED, 1, "101")


def test_what_waits_comes_in_batches_and_an_error_in_its_turn() -> None:
    heard: queue.Queue[Heard | Exception] = queue.Queue()
    one = Heard("Pod", "ADDED", [b"{}"], "1", 5)
    for _ in range(BATCH + 10):
        heard.put(one)
    heard.put(ZeroDivisionError("a fault of ours"))
    first = list(waiting(heard))
    assert len(first) >= BATCH
    with pytest.raises(ZeroDivisionError, match="a fault of ours"):
        list(waiting(heard))
