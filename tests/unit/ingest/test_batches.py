"""What was polled is booked in batches of one partition; what each says does not hang on how it was read."""

from collections.abc import Sequence

import pytest

from gpuledger.events.envelope import make
from gpuledger.events.workload import Resumed
from gpuledger.ingest.batches import Batch, Understood, batches
from gpuledger.ingest.worker import read
from gpuledger.streams.protocol import Record
from gpuledger.streams.topics import SCHEDULER_EVENTS


def record(partition: int, position: int) -> Record:
    """Every third cannot be read."""
    fact = Resumed(cluster="alpha", workload=f"w{position}", run="1")
    value = make(id=str(position), source="test", at_s=position, data=fact)[1]
    return Record(SCHEDULER_EVENTS, partition, position, value if position % 3 else b"{}", None)


RECORDS = [record(n % 2, n) for n in range(1, 12)]


def refuse(_: Sequence[Record]) -> Understood:
    raise AssertionError("nothing is to be understood yet")


def test_batches_are_of_one_partition_and_size_in_order() -> None:
    found = batches(RECORDS, 4, refuse, 2)
    assert [(batch.partition, [r.position for r in batch.records]) for batch in found] == [
        (0, [2, 4, 6, 8]), (0, [10]), (1, [1, 3, 5, 7]), (1, [9, 11]),
    ]  # fmt: skip


def test_no_records_make_no_batch() -> None:
    assert not batches([], 4, refuse, 2)


@pytest.mark.parametrize("at_once", [None, 1, 2, 3, 100])
@pytest.mark.parametrize("steps", [0, 1, 3, 20])
def test_what_is_understood_ahead_is_what_is_understood(at_once: int | None, steps: int) -> None:
    batch = Batch(RECORDS, read, at_once)
    for _ in range(steps):
        if batch.work is not None:
            batch.work()
    assert batch.understood() == read(RECORDS)


def test_what_may_ask_the_ledger_is_given_all_at_once_and_never_ahead() -> None:
    given: list[Sequence[Record]] = []

    def understand(records: Sequence[Record]) -> Understood:
        given.append(records)
        return read(records)

    batch = Batch(RECORDS, understand, None)
    assert batch.work is None
    batch.understood()
    assert given == [RECORDS]


def test_halves_say_together_what_the_whole_did() -> None:
    batch = Batch(RECORDS, read, 2)
    whole = batch.understood()
    first, second = (half.understood() for half in batch.halves())
    assert ([*first[0], *second[0]], [*first[1], *second[1]]) == whole
