"""The failures that the facts of a book tell of, in a window of time."""

import pytest
from tests.integration.ledger.books import CLUSTER, Ledger, told
from tests.integration.ledger.failures import FROM_S, INCIDENT, TEN, TO_S, broken, failed, found

from gpuledger.events import workload
from gpuledger.ledger.faults import Incident, RunName


def test_a_broken_host_is_found_with_the_run_that_it_ended(ledger: Ledger) -> None:
    ledger.append(broken(), *failed(), *failed("w2", reason="completed"))
    assert found(ledger) == [
        Incident(
            cluster=CLUSTER,
            incident=INCIDENT,
            host="h1",
            fault="xid-79",
            gpu_uuids=None,
            noticed_s=TEN,
            runs=(RunName("w1", "r1"),),
        )
    ]


@pytest.mark.parametrize(
    ("from_s", "to_s", "count"), [(TEN, TEN + 1, 1), (TEN + 1, TO_S, 0), (FROM_S, TEN, 0)]
)
def test_a_search_finds_what_was_noticed_in_its_window(
    ledger: Ledger, from_s: int, to_s: int, count: int
) -> None:
    ledger.append(broken(), *failed())
    assert len(found(ledger, from_s, to_s)) == count


def test_a_narrow_window_names_an_incident_as_a_wide_one_does(ledger: Ledger) -> None:
    """Faults that form a chain across the edges of a window belong together still."""
    chain = [broken(TEN + n * 500, reason=f"xid-{n}") for n in range(10)]
    ledger.append(*chain, *failed(to_s=TEN + 4510))
    (wide,) = found(ledger)
    assert wide.incident == INCIDENT
    assert found(ledger, TEN, TEN + 1) == [wide]
    assert found(ledger, TEN + 4000, TEN + 5000) == []


def test_a_late_truth_that_the_run_completed_finds_nothing_more(ledger: Ledger) -> None:
    ledger.append(broken(), *failed())
    truth = workload.Ended(cluster=CLUSTER, workload="w1", run="r1", reason="completed")
    ledger.append(told(TEN + 30, truth, source="reconcile/sacct"))
    assert found(ledger) == []
