"""What the sources' words for the end of a run say."""

import pytest

from gpuledger.ledger.stops import CANCELLATIONS, NODE_FAILURES, ORDINARY_ENDS, Stop, why

WORDS = [
    ("NODE_FAIL", Stop.NODE_FAILURE),
    ("node_fail", Stop.NODE_FAILURE),
    ("Node-Fail", Stop.NODE_FAILURE),
    ("BOOT_FAIL", Stop.NODE_FAILURE),
    ("NodeLost", Stop.NODE_FAILURE),
    ("NodeShutdown", Stop.NODE_FAILURE),
    ("NodeFailures", Stop.NODE_FAILURE),
    ("REQUEUED,NODE_FAIL", Stop.NODE_FAILURE),
    ("COMPLETED", Stop.ORDINARY),
    ("completed", Stop.ORDINARY),
    ("Succeeded", Stop.ORDINARY),
    ("Pass", Stop.ORDINARY),
    ("TIMEOUT", Stop.ORDINARY),
    ("OUT_OF_MEMORY", Stop.ORDINARY),
    ("PREEMPTED", Stop.ORDINARY),
    ("CANCELLED", Stop.CANCELLATION),
    ("CANCELLED by 1001", Stop.CANCELLATION),
    ("Killed", Stop.CANCELLATION),
    ("FAILED", Stop.FAILURE),
    ("Terminated", Stop.FAILURE),
    ("DeletionByTaintManager", Stop.FAILURE),
    ("unknown", Stop.FAILURE),
    ("no-node-failed", Stop.FAILURE),
    ("", Stop.FAILURE),
    ("  ", Stop.FAILURE),
]


@pytest.mark.parametrize(("reason", "expected"), WORDS)
def test_a_reason_says_why_a_run_stopped(reason: str, expected: Stop) -> None:
    assert why(reason) is expected


def test_no_word_says_two_things_and_all_are_in_the_form_they_are_compared_in() -> None:
    words = [*NODE_FAILURES, *CANCELLATIONS, *ORDINARY_ENDS]
    assert len(words) == len(set(words))
    assert [word for word in words if not word.isalnum() or word != word.lower()] == []
