"""Whose a workload is, while it waits, while it runs, and after it was mapped anew."""

from tests.integration.ledger.books import CLUSTER, HOUR, Ledger, run_of, started, submitted, told

from gpuledger.database.engine import reading
from gpuledger.events.workload import Updated
from gpuledger.ledger.ownership import within


def own(ledger: Ledger, account: str, *workloads: str) -> set[str]:
    with reading(ledger.engine) as reader:
        return within(reader, CLUSTER, workloads, account)


def test_work_belongs_to_its_account_and_those_above(ledger: Ledger) -> None:
    ledger.append(*run_of(0, HOUR, "ran", account="org/vision"))
    ledger.append(told(0, submitted("waits", account="org/vision/video")))
    ledger.append(told(0, submitted("other", account="org/visionary")))
    every = ("ran", "waits", "other", "unknown")
    assert own(ledger, "org/vision", *every) == {"ran", "waits"}
    assert own(ledger, "org/vision/video", *every) == {"waits"}
    assert own(ledger, "org", *every) == {"ran", "waits", "other"}
    assert own(ledger, "org/vision", "ran") == {"ran"}
    assert own(ledger, "org/speech", *every) == set()


def test_work_that_was_moved_belongs_to_where_it_is_now(ledger: Ledger) -> None:
    for name in ("waits", "runs"):
        ledger.append(told(0, submitted(name, account="org/vision")))
    ledger.append(told(60, started("runs")))
    for name in ("waits", "runs"):
        ledger.append(told(90, Updated(cluster=CLUSTER, workload=name, account="org/speech")))
    assert own(ledger, "org/speech", "waits", "runs") == {"waits", "runs"}
    assert own(ledger, "org/vision", "waits", "runs") == set()
