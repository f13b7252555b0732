"""The journal's and postings' SQL."""

import threading

from tests.integration.ledger.books import (
    CLUSTER,
    GPU_HOUR,
    HOUR,
    NOON,
    SOURCE,
    Ledger,
    ended,
    run_of,
    submitted,
    told,
)

from gpuledger.database.engine import writing
from gpuledger.kernel.clock import EPOCH
from gpuledger.ledger import store
from gpuledger.ledger.chain import GENESIS


def test_a_new_book_begins_at_nothing_and_an_old_one_where_it_stands(ledger: Ledger) -> None:
    with writing(ledger.engine) as writer:
        assert store.lock_book(writer, CLUSTER) == (CLUSTER, 0, GENESIS, EPOCH, None)
    head = ledger.append(*run_of(0, HOUR)).head
    with writing(ledger.engine) as writer:
        assert store.lock_book(writer, CLUSTER) == head
    assert head is not None
    assert (head.last_seq, head.last_recorded_at > NOON) == (3, True)


def test_a_locked_book_makes_the_next_writer_wait_and_no_other_book(ledger: Ledger) -> None:
    done: list[str] = []

    def write(book: str) -> None:
        ledger.append(told(0, submitted(cluster=book)))
        done.append(book)

    with writing(ledger.engine) as writer:
        store.lock_book(writer, CLUSTER)
        threads = {book: threading.Thread(target=write, args=(book,)) for book in (CLUSTER, "beta")}
        for thread in threads.values():
            thread.start()
        threads["beta"].join(30)
        assert done == ["beta"]
    threads[CLUSTER].join(30)
    assert done == ["beta", CLUSTER]


def test_identities_are_those_of_the_ids_asked_for_in_the_book(ledger: Ledger) -> None:
    ended_ = told(9, ended(), id="x")
    ledger.append(ended_, told(9, ended("w2"), id="y"))
    with writing(ledger.engine) as writer:
        assert store.known_identities(writer, CLUSTER, ["x", "z"]) == {("x", SOURCE, ended_.digest)}
        assert store.known_identities(writer, "beta", ["x"]) == set()


def test_facts_and_net_amounts_of_a_workload_come_back_as_they_were_booked(ledger: Ledger) -> None:
    ledger.append(*run_of(0, 2 * HOUR), *run_of(0, HOUR, "w2"))
    ledger.append(told(HOUR, ended(), source="reconcile/x"))
    with writing(ledger.engine) as writer:
        facts = list(store.facts_of(writer, CLUSTER, ["w1"]))
        posted = {
            (name, key.commodity): value for name, key, value in store.posted_of(writer, CLUSTER, ["w1"])
        }
        assert list(store.facts_of(writer, CLUSTER, [])) == list(store.posted_of(writer, CLUSTER, [])) == []
    assert [(name, known.at_s, known.source) for name, known in facts] == [
        ("w1", 0, SOURCE), ("w1", 0, SOURCE), ("w1", 2 * HOUR, SOURCE), ("w1", HOUR, "reconcile/x"),
    ]  # fmt: skip
    assert posted == {
        ("w1", "gpu_ms"): (8 * GPU_HOUR, 7),
        ("w1", "gpu_ms_weighted"): (8000 * GPU_HOUR, 7),
    }
