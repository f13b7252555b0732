"""The record of policy cycles."""

from tests.integration.ledger.books import CLUSTER, Ledger, submitted, told

from gpuledger.database.engine import reading
from gpuledger.events.budget import AllocationIssued
from gpuledger.ledger import cycles


def issued(cycle: str, every_s: int | None = None) -> AllocationIssued:
    return AllocationIssued(
        cluster=CLUSTER,
        cycle=cycle,
        sequences={CLUSTER: 1},
        config_version="1",
        input_digest="d",
        every_s=every_s,
        record={},
    )


def test_the_newest_up_to_an_instant_is_that_of_the_latest_one_whichever_was_recorded_last(
    ledger: Ledger,
) -> None:
    ledger.append(told(900, issued("c1", every_s=60)), told(5, submitted()))
    ledger.append(told(600, issued("c2")))
    with reading(ledger.engine) as reader:
        for at_s, cycle in ((599, None), (600, "c2"), (899, "c2"), (900, "c1")):
            latest = cycles.latest(reader, CLUSTER, at_s=at_s)
            assert (latest and latest.issued.cycle) == cycle
            named = cycles.named(reader, CLUSTER, at_s)
            assert (named and named[1:]) == (latest and (latest.at_s, cycle, latest.issued.every_s))
        assert cycles.latest(reader, "beta", at_s=900) is None


def test_a_row_that_comes_later_is_not_seen_up_to_an_earlier_one(ledger: Ledger) -> None:
    ledger.append(told(600, issued("c1")))
    ledger.append(told(900, issued("c2")))
    with reading(ledger.engine) as reader:
        newest = cycles.latest(reader, CLUSTER, at_s=900)
        assert newest is not None
        before = cycles.latest(reader, CLUSTER, at_s=900, seq=newest.seq - 1)
        assert before is not None
        assert (newest.issued.cycle, before.issued.cycle) == ("c2", "c1")


def test_a_cycle_is_found_by_its_instant(ledger: Ledger) -> None:
    ledger.append(told(600, issued("c1")))
    with reading(ledger.engine) as reader:
        found = cycles.of_instant(reader, CLUSTER, 600)
        assert found is not None
        assert found.issued == issued("c1")
        assert cycles.of_instant(reader, CLUSTER, 601) is None
