"""The journal read back: what followed from it, row by row."""

from collections.abc import Sequence

from tests.integration.ledger.books import (
    CLUSTER,
    HOUR,
    Ledger,
    ended,
    granted,
    registered,
    run_of,
    submitted,
    told,
)

from gpuledger.database.engine import reading
from gpuledger.events.budget import AccountCreated, Granted
from gpuledger.ledger import replay


def positive(known: Sequence[int]) -> set[int]:
    return {number for number in known if number > 0 and -number not in known}


def test_versions_say_since_when_and_until_when_each_thing_followed() -> None:
    facts = [(1, 5), (2, 7), (4, -5), (9, 0)]
    assert replay.versions(facts, positive) == [(5, 1, 4), (7, 2, None)]


def test_what_follows_again_later_is_a_version_of_its_own() -> None:
    def last(known: Sequence[str]) -> list[str]:
        return [known[-1]]

    assert replay.versions([(1, "a"), (2, "b"), (3, "a")], last) == [("a", 1, 2), ("b", 2, 3), ("a", 3, None)]


def test_nothing_has_no_versions() -> None:
    assert replay.versions([], positive) == []


def test_facts_are_grouped_by_book_and_workload_in_sequence(ledger: Ledger) -> None:
    ledger.append(
        told(0, submitted("w2")), *run_of(0, HOUR), told(0, submitted("w1", cluster=CLUSTER), id="again")
    )
    ledger.append(told(0, submitted(cluster="beta")))
    with reading(ledger.engine) as reader:
        found = [(f.book, f.workload, [seq for seq, _ in f.facts]) for f in replay.iter_workloads(reader)]
    assert found == [(CLUSTER, "w1", [2, 3, 4, 5]), (CLUSTER, "w2", [1]), ("beta", "w1", [1])]


def test_hosts_and_commands_are_read_apart(ledger: Ledger) -> None:
    ledger.append(
        told(3, registered("h2", 4)), told(0, granted("org", "1970-01", 5)), told(0, registered("h1", 8))
    )
    ledger.append(told(9, ended()), told(1, registered("h2", 8)))
    ledger.append(told(0, AccountCreated(account="org")))
    with reading(ledger.engine) as reader:
        hosts = [
            (f.book, f.host, [(seq, fact.data.gpus) for seq, fact in f.facts])
            for f in replay.iter_hosts(reader)
        ]
        commands = [(book, c.seq, type(c.fact)) for book, c in replay.commands(reader)]
    assert hosts == [(CLUSTER, "h1", [(3, 8)]), (CLUSTER, "h2", [(1, 4), (5, 8)])]
    assert commands == [(CLUSTER, 2, Granted), ("~org", 1, AccountCreated)]


def test_versions_of_a_history_are_those_of_its_segments_and_waits(ledger: Ledger) -> None:
    ledger.append(*run_of(5, HOUR), told(0, submitted(), source="reconcile/x"))
    with reading(ledger.engine) as reader:
        ((_, _, facts),) = replay.iter_workloads(reader)
        found = replay.history_versions(facts)
    assert [(type(item).__name__, item.from_s, item.to_s, since, until) for item, since, until in found] == [
        ("Wait", 5, None, 1, 2),
        ("Segment", 5, None, 2, 3),
        ("Segment", 5, HOUR, 3, None),
        ("Wait", 0, 5, 4, None),
    ]
