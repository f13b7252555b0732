"""The spool is emptied whenever the broker takes it; an outage loses nothing and is told once."""

import threading
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest
from tests.unit.agent.test_spool import ROOM, message, numbers

from gpuledger.agent.shipping import Shipping
from gpuledger.agent.spool import Spool
from gpuledger.kernel.errors import Unavailable
from gpuledger.streams.protocol import Message
from gpuledger.streams.topics import Topic


class Broker:
    """A broker that answers or does not; what it was given counts once it was flushed."""

    def __init__(self) -> None:
        self.answers = True
        self.stored: list[str] = []
        self.queued: list[str] = []
        self.topics: set[Topic] = set()

    def ensure_topics(self, topics: Sequence[Topic]) -> None:
        self._check()
        self.topics.update(topics)

    def publisher(self) -> "Broker":
        return self

    def publish(self, topic: Topic, messages: Iterable[Message]) -> None:
        assert topic in self.topics
        self.queued += [message.value.decode().partition(":")[0] for message in messages]

    def flush(self) -> None:
        queued, self.queued = self.queued, []
        self._check()
        self.stored += queued

    def close(self) -> None:
        self.flush()

    def partitions(self, topic: Topic) -> Sequence[int]:
        raise AssertionError("an agent reads nothing")

    def subscriber(self, topic: Topic) -> "Broker":
        raise AssertionError("an agent reads nothing")

    def _check(self) -> None:
        if not self.answers:
            raise Unavailable("nobody answers")


def test_everything_that_waits_is_published_in_order(tmp_path: Path) -> None:
    spool, broker = Spool(tmp_path, ROOM), Broker()
    for number in range(450):
        spool.put(message(number))
    assert Shipping(spool, broker, print).ship() == 450  # type: ignore[arg-type]
    assert broker.stored == [str(number) for number in range(450)]
    assert numbers(spool) == []


def test_an_outage_keeps_messages_and_the_next_try_publishes_them(tmp_path: Path) -> None:
    spool, broker, notes = Spool(tmp_path, ROOM), Broker(), list[str]()
    shipping = Shipping(spool, broker, notes.append)  # type: ignore[arg-type]
    broker.answers = False
    spool.put(message(1))
    with pytest.raises(Unavailable):
        shipping.ship()
    assert numbers(spool) == [1]
    broker.answers = True
    assert shipping.ship() == 1
    assert broker.stored == ["1"]


def test_the_thread_survives_an_outage_and_says_so_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gpuledger.agent.shipping.FIRST_S", 0.01)
    spool, broker, notes = Spool(tmp_path, ROOM), Broker(), list[str]()
    broker.answers = False
    spool.put(message(1))
    stop = threading.Event()
    thread = threading.Thread(target=Shipping(spool, broker, notes.append).run, args=(stop, 0.01))  # type: ignore[arg-type]
    thread.start()
    pause = threading.Event()
    while len(notes) < 1:
        pause.wait(0.01)
    pause.wait(0.1)
    assert len(notes) == 1
    broker.answers = True
    while not broker.stored:
        pause.wait(0.01)
    spool.put(message(2))
    stop.set()
    thread.join(timeout=20)
    assert broker.stored == ["1", "2"]
    assert notes == ["nobody answers; messages wait on the disk", "the broker answers again"]


def test_what_cannot_be_published_at_the_end_waits_on_the_disk(tmp_path: Path) -> None:
    spool, broker, notes = Spool(tmp_path, ROOM), Broker(), list[str]()
    broker.answers = False
    spool.put(message(7))
    stop = threading.Event()
    stop.set()
    Shipping(spool, broker, notes.append).run(stop, 0.01)  # type: ignore[arg-type]
    assert numbers(Spool(tmp_path, ROOM)) == [7]
    assert len(notes) == 1


def test_it_publishes_while_a_work_is_done_and_once_more_at_its_end(tmp_path: Path) -> None:
    spool, broker, stopped = Spool(tmp_path, ROOM), Broker(), threading.Event()
    spool.put(message(1))

    def work() -> None:
        while not spool.is_empty():
            stopped.wait(0.01)
        spool.put(message(2))

    Shipping(spool, broker, print).beside(work, stopped, 60)  # type: ignore[arg-type]
    assert broker.stored == ["1", "2"]


def test_publishing_that_fails_for_good_stops_the_work_and_tells_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as a disk that lets nobody delete: what waits stays, and whoever started the agent starts it again."""
    spool, broker, stopped = Spool(tmp_path, ROOM), Broker(), threading.Event()
    spool.put(message(1))

    def read_only(_: Sequence[int]) -> None:
        raise PermissionError("read-only file system")

    def wait() -> None:
        stopped.wait(30)

    monkeypatch.setattr(spool, "done", read_only)
    with pytest.raises(PermissionError, match="read-only"):
        Shipping(spool, broker, print).beside(wait, stopped, 60)  # type: ignore[arg-type]
    assert stopped.is_set()
    assert not spool.is_empty()
