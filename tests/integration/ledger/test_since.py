"""What came since a row, as far as a cycle by event can be told of it."""

import pytest
from tests.integration.ledger.books import (
    CLUSTER,
    HOUR,
    Ledger,
    at,
    ended,
    registered,
    started,
    submitted,
    told,
)

from gpuledger.database.engine import reading
from gpuledger.events import heartbeat, proposal
from gpuledger.events.budget import PeriodOpened, ShareSet
from gpuledger.events.decision import DecisionMade
from gpuledger.events.workload import Checkpointed, Located, Preempted, Ready, Requeued
from gpuledger.ledger import queries
from gpuledger.ledger.since import ROWS_MAX, Since, eligible_between, hosts_change_between, since

NOON = at("2026-12-01T12:00:00Z")


@pytest.fixture
def known(ledger: Ledger) -> Ledger:
    """A host, and two workloads that wait."""
    ledger.append(told(0, registered("h1", 8)))
    ledger.append(*(told(NOON - HOUR, submitted(name, account="org/a")) for name in ("w1", "w2")))
    return ledger


def sequences(ledger: Ledger) -> dict[str, int]:
    with reading(ledger.engine) as reader:
        return queries.sequences(reader)


def after(ledger: Ledger, before: dict[str, int]) -> Since | None:
    with reading(ledger.engine) as reader:
        return since(reader, CLUSTER, before[CLUSTER], org_seq=before.get("~org", 0))


def nothing(seq: int) -> Since:
    return Since(seq, submitted=(), started=(), ended=(), saved=(), admitted=(), cycles=())


def test_new_work_starts_and_heartbeats_are_told_in_their_order(known: Ledger) -> None:
    before = sequences(known)
    assert after(known, before) == nothing(before[CLUSTER])
    known.append(told(NOON, submitted("w9", account="org/a")), told(NOON, started("w1", hosts=["h1"])))
    known.append(
        told(NOON, heartbeat.Heartbeat(cluster=CLUSTER)),
        told(NOON, proposal.Commented(proposal="p", cluster=CLUSTER, by="ada", reason="why")),
        told(NOON, submitted("w5", account="org/a")),
        told(NOON, Ready(cluster=CLUSTER, workload="w1", run="r1")),
        told(NOON, Located(cluster=CLUSTER, workload="w1", run="r1", handles=["job/1"])),
        told(
            NOON,
            DecisionMade(
                cluster=CLUSTER,
                workload="w2",
                attempt=1,
                klass="allocated",
                account="org/a",
                gpus_milli=8000,
                hold_gpu_ms=8000,
                reason="it fits",
            ),
        ),
    )
    assert after(known, before) == nothing(sequences(known)[CLUSTER])._replace(
        submitted=("w9", "w5"), started=("w1",), admitted=("w2",)
    )


def test_who_ended_was_preempted_or_saved_its_work_is_told(known: Ledger) -> None:
    for name in ("w1", "w2", "w3"):
        known.append(told(NOON - HOUR, started(name, hosts=["h1"])))
    before = sequences(known)
    known.append(
        told(NOON, Checkpointed(cluster=CLUSTER, workload="w3", run="r1")),
        told(NOON, ended("w2")),
        told(NOON, Preempted(cluster=CLUSTER, workload="w1", run="r1", reason="test")),
    )
    assert after(known, before) == nothing(sequences(known)[CLUSTER])._replace(
        ended=("w2", "w1"), saved=("w3",)
    )


def test_a_period_that_opens_is_nothing_that_a_cycle_is_told(known: Ledger) -> None:
    before = sequences(known)
    period = PeriodOpened(cluster=CLUSTER, period="2026-12", installed_gpu_ms=1, grants=[], org_seq=0)
    known.append(told(NOON, period))
    assert after(known, before) == nothing(sequences(known)[CLUSTER])


def test_a_workload_that_was_known_is_no_new_work(known: Ledger) -> None:
    before = sequences(known)
    known.append(told(NOON, submitted("w1", account="org/a", gpus_milli=2000)))
    assert after(known, before) is None


def test_a_workload_that_is_submitted_twice_since_is_no_new_work(known: Ledger) -> None:
    before = sequences(known)
    for gpus_milli in (1000, 2000):
        known.append(told(NOON, submitted("w9", account="org/a", gpus_milli=gpus_milli)))
    assert after(known, before) is None


def test_a_requeue_a_host_and_the_organisation_are_something_else(known: Ledger) -> None:
    for fact in (
        Requeued(cluster=CLUSTER, workload="w1", run="r1", reason="user"),
        registered("h2", 8),
        ShareSet(account="org/a", share=2, reason="test", by="test"),
    ):
        before = sequences(known)
        known.append(told(NOON, fact))
        assert after(known, before) is None
        assert after(known, sequences(known)) is not None


def test_many_rows_are_not_looked_at_one_by_one(known: Ledger) -> None:
    before = sequences(known)
    known.append(*(told(NOON, submitted(f"n{n}", account="org/a")) for n in range(ROWS_MAX)))
    assert after(known, before) is not None
    known.append(told(NOON, submitted("one-more", account="org/a")))
    assert after(known, before) is None


def test_who_became_eligible_after_an_instant_and_waits_still(known: Ledger) -> None:
    known.append(
        told(NOON, submitted("w7", account="org/a")),
        told(NOON + 10, submitted("w8", account="org/a")),
        told(NOON + 10, submitted("gone", account="org/a")),
        told(NOON + 20, ended("gone", reason="cancelled", run=None)),
    )
    with reading(known.engine) as reader:
        assert eligible_between(reader, CLUSTER, NOON - 1, NOON + 9) == ["w7"]
        assert eligible_between(reader, CLUSTER, NOON, NOON + 30) == ["w8"]
        assert eligible_between(reader, CLUSTER, NOON + 10, NOON + 30) == []


def test_a_host_that_is_another_from_an_instant_on(known: Ledger) -> None:
    known.append(told(NOON, registered("h2", 8)))
    with reading(known.engine) as reader:
        assert hosts_change_between(reader, CLUSTER, NOON - 1, NOON)
        assert not hosts_change_between(reader, CLUSTER, NOON, NOON + HOUR)
        assert not hosts_change_between(reader, CLUSTER, NOON - HOUR, NOON - 1)
