"""A topic that was created anew is not read on, however long it is by now."""

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import cast

import pytest

from gpuledger.ingest.continuity import Stood, check, published
from gpuledger.streams.protocol import Broker, PositionLost, Record

NOON = dt.datetime(2026, 11, 1, 12, tzinfo=dt.UTC)
TOPIC = "gpu.scheduler.events"


class Topic:
    """Partitions whose records begin at a position; a record says when it was published."""

    def __init__(self, held: Mapping[int, tuple[int, Sequence[dt.datetime | None]]]) -> None:
        self._held = held
        self._at: Mapping[int, int] = {}
        self.is_closed = False

    def subscriber(self, topic: str) -> "Topic":
        assert topic == TOPIC
        return self

    def first_positions(self, partitions: Sequence[int]) -> Mapping[int, int]:
        return {partition: self._held[partition][0] for partition in partitions}

    def assign(self, positions: Mapping[int, int]) -> None:
        for partition, position in positions.items():
            first, records = self._held[partition]
            if not first <= position <= first + len(records):
                raise PositionLost("not there")
        self._at = positions

    def poll(self, limit: int, timeout_s: float) -> Sequence[Record]:
        assert timeout_s
        ((partition, position),) = self._at.items()
        first, records = self._held[partition]
        times = records[position - first :][:limit]
        return [Record(TOPIC, partition, position + n, b"", _ms(at)) for n, at in enumerate(times)]

    def close(self) -> None:
        self.is_closed = True


def _ms(at: dt.datetime | None) -> int | None:
    return None if at is None else int(at.timestamp() * 1000) + 999


def checked(topic: Topic, **stood: Stood) -> None:
    check(cast("Broker", topic), TOPIC, {int(name.removeprefix("p")): at for name, at in stood.items()})


def test_the_same_record_before_the_position_is_the_same_topic() -> None:
    topic = Topic({0: (0, [NOON] * 3), 1: (7, [NOON] * 3)})
    checked(topic, p0=Stood(3, NOON), p1=Stood(9, NOON))
    assert topic.is_closed


def test_another_record_in_its_place_is_another_topic() -> None:
    later = NOON + dt.timedelta(seconds=1)
    topic = Topic({0: (0, [NOON]), 1: (0, [later] * 9)})
    with pytest.raises(
        PositionLost, match=r"partition 1 .* is another than was read: its record 2 is of"
    ) as lost:
        checked(topic, p0=Stood(1, NOON), p1=Stood(3, NOON))
    assert "--from-start" in lost.value.hint
    assert topic.is_closed


@pytest.mark.parametrize(
    "stood",
    [Stood(0, None), Stood(5, None), Stood(2, NOON), Stood(900, NOON), Stood(8, NOON)],
    ids=[
        "not begun",
        "nobody said when",
        "its time was over",
        "beyond the end",
        "the broker does not say when",
    ],
)
def test_where_nothing_can_be_told_it_is_read_on(stood: Stood) -> None:
    """Whether a position is held at all is checked by whoever reads from there."""
    checked(Topic({0: (4, [None] * 9)}), p0=stood)


def test_times_are_whole_seconds_as_the_ledger_keeps_them() -> None:
    assert published(Record(TOPIC, 0, 0, b"", _ms(NOON))) == NOON
    assert published(Record(TOPIC, 0, 0, b"")) is None
