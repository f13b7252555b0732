"""Small reads."""

import datetime as dt
import threading
import time

import pytest
from tests.integration.ledger.books import CLUSTER, HOUR, NOON, Ledger, run_of, submitted, told

from gpuledger.database.engine import reading, writing
from gpuledger.events.budget import AccountCreated, PolicyChanged, ShareSet
from gpuledger.ingest.dead_letters import DeadLetter, put, resolve, waiting
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.clock import instant
from gpuledger.kernel.errors import NotFound
from gpuledger.ledger import queries, store


def test_clusters_are_the_books_without_the_organisations(ledger: Ledger) -> None:
    ledger.append(told(0, AccountCreated(account="org")))
    ledger.append(told(0, submitted(cluster="beta")))
    ledger.append(told(0, submitted()))
    with reading(ledger.engine) as reader:
        assert queries.clusters(reader) == ["alpha", "beta"]
        heads = {h.book: (h.rows, h.last_recorded_at) for h in queries.book_heads(reader)}
    assert heads == {"alpha": (1, NOON), "beta": (1, NOON), "~org": (1, NOON)}


def test_a_recorded_time_resolves_to_a_sequence_of_each_book(ledger: Ledger) -> None:
    ledger.append(*run_of(0, HOUR))
    ledger.clock.at = NOON + dt.timedelta(hours=1)
    ledger.append(told(0, submitted("w2")))
    ledger.append(told(0, submitted(cluster="beta")))
    with reading(ledger.engine) as reader:
        assert queries.sequences(reader) == {"alpha": 4, "beta": 1}
        assert queries.sequences(reader, NOON - dt.timedelta(seconds=1)) == {"alpha": 0, "beta": 0}
        assert queries.sequences(reader, NOON) == {"alpha": 1, "beta": 0}
        assert queries.sequences(reader, NOON + dt.timedelta(minutes=1)) == {"alpha": 3, "beta": 0}
        assert queries.sequences(reader, NOON + dt.timedelta(hours=1)) == {"alpha": 4, "beta": 1}


def test_workloads_are_open_while_they_run_or_wait(ledger: Ledger) -> None:
    ledger.append(*run_of(0, HOUR), told(0, submitted("waits")), *run_of(0, HOUR, "runs")[:2])
    ledger.append(told(0, submitted("elsewhere", cluster="beta")))

    with reading(ledger.engine) as reader:
        assert queries.open_workloads(reader, CLUSTER) == ["runs", "waits"]


def test_workloads_are_running_where_they_held_gpus_within_the_window(ledger: Ledger) -> None:
    ledger.append(*run_of(0, HOUR), *run_of(HOUR, 2 * HOUR, "later"), *run_of(30, HOUR, "goes-on")[:2])

    with reading(ledger.engine) as reader:
        assert queries.running_workloads(reader, CLUSTER, 0, HOUR) == ["goes-on", "w1"]
        assert queries.running_workloads(reader, CLUSTER, HOUR, 9 * HOUR) == ["goes-on", "later"]
        assert queries.running_workloads(reader, CLUSTER, 0, 30) == ["w1"]
        assert queries.running_workloads(reader, "beta", 0, 9 * HOUR) == []


def test_the_share_in_force_is_the_newest_set_for_the_newest_moment(ledger: Ledger) -> None:
    def share(at_s: int, share: int, account: str = "org/a") -> None:
        ledger.append(told(at_s, ShareSet(account=account, share=share, reason="t", by="t")))

    share(10, 1)
    share(20, 2)
    share(20, 3)
    share(5, 9)
    share(15, 7, "org/b")
    with reading(ledger.engine) as reader:
        assert queries.shares_at(reader, instant(4)) == {}
        assert queries.shares_at(reader, instant(5)) == {"org/a": 9}
        assert queries.shares_at(reader, instant(19)) == {"org/a": 1, "org/b": 7}
        assert queries.shares_at(reader, instant(20)) == {"org/a": 3, "org/b": 7}


def test_the_organisations_zone_is_the_last_set_or_the_default(ledger: Ledger) -> None:
    with reading(ledger.engine) as reader:
        assert queries.calendar(reader, Calendar("Asia/Tokyo")) == Calendar("Asia/Tokyo")
    for zone in ("Europe/Berlin", "America/Los_Angeles"):
        ledger.append(told(0, PolicyChanged(policy="organisation", timezone=zone, period="month")))
    with reading(ledger.engine) as reader:
        assert queries.calendar(reader, Calendar("Asia/Tokyo")) == Calendar("America/Los_Angeles")


def test_the_zone_of_a_recorded_time_is_the_one_of_then(ledger: Ledger) -> None:
    for zone in ("Europe/Berlin", "America/Los_Angeles"):
        ledger.append(told(0, PolicyChanged(policy="organisation", timezone=zone, period="month")))
        ledger.clock.at += dt.timedelta(hours=1)
    default = Calendar("Asia/Tokyo")
    with reading(ledger.engine) as reader:
        found = [
            queries.calendar(reader, default, NOON + dt.timedelta(minutes=minutes))
            for minutes in (-1, 0, 59, 60)
        ]
    assert [one.timezone for one in found] == [
        "Asia/Tokyo", "Europe/Berlin", "Europe/Berlin", "America/Los_Angeles",
    ]  # fmt: skip


def test_an_account_exists_when_it_or_something_below_it_was_created(ledger: Ledger) -> None:
    ledger.append(
        told(0, AccountCreated(account="org/vision/seg")), told(1, AccountCreated(account="org/vision/seg"))
    )
    with reading(ledger.engine) as reader:
        assert queries.account_paths(reader) == ["org/vision/seg"]
        queries.require_account(reader, "org/vision/seg")
        queries.require_account(reader, "org/vision")
        with pytest.raises(NotFound) as misspelt:
            queries.require_account(reader, "org/vision/sge")
        with pytest.raises(NotFound) as strange:
            queries.require_account(reader, "zzz")
    assert "org/vision/seg" in misspelt.value.hint
    assert "usage --by account" in strange.value.hint


def test_dead_letters_are_counted_until_they_are_resolved(ledger: Ledger) -> None:
    letters = [DeadLetter("t", 0, n, f"t[0]@{n}", "c", "r", "h", b"x") for n in range(3)]
    with writing(ledger.engine) as writer:
        put(writer, letters, NOON)
        resolve(writer, [waiting(writer)[0].id], NOON + dt.timedelta(seconds=1))
    with reading(ledger.engine) as reader:
        assert queries.dead_letter_count(reader) == 2
        assert queries.dead_letter_count(reader, NOON - dt.timedelta(seconds=1)) == 0
        assert queries.dead_letter_count(reader, NOON) == 3
        assert queries.dead_letter_count(reader, NOON + dt.timedelta(seconds=1)) == 2
        assert [stored.letter.position for stored in waiting(reader, limit=1)] == [1]


def test_who_waits_for_a_book_is_counted(ledger: Ledger) -> None:
    ledger.append(told(0, submitted(cluster="beta")))
    ledger.append(told(0, submitted()))

    def waiting_now() -> dict[str, int]:
        with reading(ledger.engine) as reader:
            return queries.writers_waiting(reader)

    assert waiting_now() == {CLUSTER: 0, "beta": 0}
    threads = [
        threading.Thread(target=ledger.append, args=(told(n, submitted(f"w{n}")),)) for n in range(1, 4)
    ]
    with writing(ledger.engine) as writer:
        store.lock_book(writer, CLUSTER)
        for thread in threads:
            thread.start()
        deadline = time.monotonic() + 30
        while waiting_now() != {CLUSTER: 3, "beta": 0}:
            assert time.monotonic() < deadline, waiting_now()
            time.sleep(0.05)
    for thread in threads:
        thread.join(30)
    assert waiting_now() == {CLUSTER: 0, "beta": 0}
