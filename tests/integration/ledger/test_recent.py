"""What is kept of a second is what a snapshot says: any row of the books asked about, and each second, reads anew."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.integration.ledger.books import CLUSTER, GPU_HOUR, Ledger, granted, run_of, told

from gpuledger.database.engine import Reader, reading
from gpuledger.events.budget import AccountCreated
from gpuledger.kernel.errors import NotFound
from gpuledger.ledger.recent import Recent, heads

OTHER = "beta"


class Counted:
    """Reads nothing, and counts how often."""

    def __init__(self) -> None:
        self.times = 0
        self.recent = Recent(self._read)

    def _read(self, _reader: Reader, _cluster: str | None, _now_s: int) -> int:
        self.times += 1
        return self.times

    def get(self, ledger: Ledger, cluster: str | None, now_s: int) -> int | None:
        return self.recent.now(ledger.engine, cluster, lambda: now_s)


@pytest.fixture
def booked(ledger: Ledger) -> Ledger:
    ledger.append(told(0, AccountCreated(account="org/vision")))
    ledger.append(told(0, granted("org/vision", "2026-12", GPU_HOUR)))
    ledger.append(*run_of(0, 60))
    return ledger


def test_it_is_read_once_in_a_second_while_no_book_moves(booked: Ledger) -> None:
    counted = Counted()
    assert [counted.get(booked, CLUSTER, 100) for _ in range(3)] == [1, 1, 1]
    assert [counted.get(booked, CLUSTER, 101), counted.get(booked, CLUSTER, 101)] == [2, 2]


@pytest.mark.parametrize("cluster", [CLUSTER, None])
def test_a_row_of_its_book_or_of_the_organisations_reads_it_anew(booked: Ledger, cluster: str | None) -> None:
    counted = Counted()
    assert counted.get(booked, cluster, 100) == 1
    booked.append(told(0, granted("org/vision", "2026-12", 2 * GPU_HOUR)))
    assert counted.get(booked, cluster, 100) == 2
    booked.append(told(0, AccountCreated(account="org/speech")))
    assert counted.get(booked, cluster, 100) == 3


def test_another_clusters_row_is_none_of_its_business_unless_all_are_asked_for(booked: Ledger) -> None:
    counted = Counted()
    assert (counted.get(booked, CLUSTER, 100), counted.get(booked, None, 100)) == (1, 2)
    booked.append(*run_of(0, 60, cluster=OTHER))
    assert (counted.get(booked, CLUSTER, 100), counted.get(booked, None, 100)) == (1, 3)


def test_an_older_snapshot_is_not_told_what_came_after_it(booked: Ledger) -> None:
    counted = Counted()
    with reading(booked.engine) as earlier:
        then = heads(earlier)
        booked.append(told(0, granted("org/vision", "2026-12", 2 * GPU_HOUR)))
        assert counted.get(booked, CLUSTER, 100) == 1
        assert counted.recent.within(earlier, then, CLUSTER, 100) == 2
        assert counted.recent.within(earlier, then, CLUSTER, 100) == 2


def test_of_many_who_ask_at_once_one_reads(booked: Ledger) -> None:
    counted, ready = Counted(), threading.Barrier(8)

    def ask() -> int | None:
        ready.wait()
        return counted.get(booked, CLUSTER, 100)

    with ThreadPoolExecutor(8) as pool:
        assert {future.result() for future in [pool.submit(ask) for _ in range(8)]} == {1}


def test_who_waited_while_the_book_moved_is_given_what_was_read_since_they_asked(booked: Ledger) -> None:
    """Of those who wait for a reading that began before they asked one reads anew, for all of them."""
    reading_now, go_on = threading.Event(), threading.Event()
    times = []

    def read(_reader: Reader, _cluster: str, _now_s: int) -> int:
        times.append(1)
        number = len(times)
        if number == 1:
            reading_now.set()
            assert go_on.wait(20)
        return number

    recent = Recent(read)

    def ask() -> int | None:
        return recent.now(booked.engine, CLUSTER, lambda: 100)

    with ThreadPoolExecutor(6) as pool:
        first = pool.submit(ask)
        assert reading_now.wait(20)
        booked.append(told(0, granted("org/vision", "2026-12", 2 * GPU_HOUR)))
        later = [pool.submit(ask) for _ in range(5)]
        time.sleep(1.0)  # all of them have asked for the heads, and wait
        go_on.set()
        assert first.result(20) == 1
        assert [one.result(20) for one in later] == [2] * 5
    assert len(times) == 2


def test_who_fails_to_read_leaves_nothing_and_keeps_nobody_waiting(booked: Ledger) -> None:
    faults = [RuntimeError("lost")]

    def read(_reader: Reader, _cluster: str, _now_s: int) -> str:
        if faults:
            raise faults.pop()
        return "read"

    recent = Recent(read)
    with pytest.raises(RuntimeError, match="lost"):
        recent.now(booked.engine, CLUSTER, lambda: 100)
    assert recent.now(booked.engine, CLUSTER, lambda: 100) == "read"
    assert recent.now(booked.engine, "gamma", lambda: 100) is None


def test_a_cluster_without_a_book_is_named(booked: Ledger) -> None:
    with reading(booked.engine) as reader:
        found = heads(reader)
    found.check(None)
    found.check(CLUSTER)
    with pytest.raises(NotFound, match="'gamma' does not exist") as refused:
        found.check("gamma")
    assert refused.value.hint == f"known clusters: {CLUSTER}"
