"""Facts that lost are shown with what counts in their place, and why by rank."""

from collections.abc import Sequence
from typing import Any

import pytest

from gpuledger.events import workload as events
from gpuledger.events.decision import DecisionMade
from gpuledger.events.registry import Fact
from gpuledger.kernel.clock import instant
from gpuledger.ledger.facts import Known
from gpuledger.ledger.superseded import superseded

THREE, FIVE = 3 * 3600, 5 * 3600


def fact(at_s: int, kind: type[Fact], source: str = "stream/slurm", **keys: Any) -> Known:  # noqa: ANN401
    data = kind(cluster="c", workload="w", **keys)
    return Known(data, at_s, source, repr((at_s, source, data)).encode())


def ended(at_s: int, source: str = "stream/slurm", **keys: Any) -> Known:  # noqa: ANN401
    return fact(at_s, events.Ended, source, **{"run": "1", "reason": "completed", **keys})


def submitted(at_s: int, **keys: Any) -> Known:  # noqa: ANN401
    given = {"account": "org/a", "user": "t1", "gpus_milli": 8000, **keys}
    return fact(at_s, events.Submitted, **given)


def test_an_end_of_the_stream_loses_against_the_reconciliation_whichever_came_first() -> None:
    stream, truth = ended(FIVE), ended(THREE, "reconcile/slurm", reason="failed")
    (one,) = superseded([stream, truth])
    assert superseded([truth, stream]) == (one,)
    assert (one.fact, one.by, one.run) == (stream, truth, "1")
    assert one.line() == (
        "ended at 1970-01-01T05:00:00Z with reason completed, says stream/slurm; does not count: ended at"
        " 1970-01-01T03:00:00Z with reason failed, says reconcile/slurm, and a reconciliation is believed before any"
        " other source."
    )
    assert one.as_json() == {
        "at": "1970-01-01T05:00:00Z",
        "what": "ended",
        "source": "stream/slurm",
        "said": {"reason": "completed"},
        "run": "1",
        "by": {
            "at": "1970-01-01T03:00:00Z",
            "what": "ended",
            "source": "reconcile/slurm",
            "said": {"reason": "failed"},
        },
        "because": "a reconciliation is believed before any other source",
    }


@pytest.mark.parametrize(
    ("loser", "because"),
    [
        (ended(FIVE + 1, estimated=True), "a time that was measured counts before one that was estimated"),
        (ended(THREE), "of sources that are believed alike the later time counts"),
        (ended(FIVE, reason="a"), "their content decides"),
        (fact(THREE, events.Preempted, run="1", reason="preempted"), "the later time counts"),
    ],
)
def test_the_part_of_the_rank_that_decided_is_told(loser: Known, because: str) -> None:
    (one,) = superseded([loser, ended(FIVE)])
    assert one.fact is loser
    assert because in one.because


def test_of_a_record_the_furthest_version_counts() -> None:
    first, then = (
        fact(at_s, events.Started, run="1", attempt=1, gpus_milli=gpus, hosts=["h"], version=version)
        for at_s, gpus, version in ((THREE, 8000, 1), (10, 4000, 2))
    )
    (one,) = superseded([first, then])
    assert (one.fact, one.by, one.because) == (first, then, "the furthest version of a record counts")


def test_a_workload_that_was_submitted_anew_contradicts_nothing() -> None:
    assert superseded([submitted(0, version=1), submitted(100, version=2)]) == ()
    (one,) = superseded([submitted(0), submitted(100, priority=3)])  # told anew: the user changed it
    assert (one.fact.at_s, one.as_json()["by"]["said"]) == (0, {"priority": "3"})


def test_of_submissions_of_a_record_the_version_decides_and_not_the_time() -> None:
    (one,) = superseded([submitted(50, version=1), submitted(50, version=2, priority=3)])
    assert (one.by.at_s, one.because) == (50, "the furthest version of a record counts")
    (one,) = superseded([submitted(50, version=2), submitted(70, priority=3)])
    assert (one.fact.at_s, one.by.at_s) == (50, 70)
    assert one.because == "a submission that was told by itself counts before one that a record repeats"


def test_whose_work_it_is_is_not_told_of_people() -> None:
    (one,) = superseded([submitted(0), submitted(100, user="t2")])
    assert one.as_json()["said"] == {"user": "of another person"}
    assert "t1" not in one.line()


def test_what_says_the_same_has_lost_nothing() -> None:
    assert superseded([ended(FIVE), ended(FIVE, "reconcile/slurm"), ended(FIVE, exit="0", run="2")]) == ()


def test_a_run_changes_as_often_as_it_is_told() -> None:
    sizes = [fact(at_s, events.Resized, run="1", gpus_milli=at_s, hosts=[]) for at_s in (1000, 2000)]
    assert superseded(sizes) == ()
    again = fact(2000, events.Resized, "reconcile/slurm", run="1", gpus_milli=1, hosts=[])
    assert [one.fact for one in superseded([*sizes, again])] == [sizes[1]]


def test_what_changes_a_run_that_is_over_is_told_with_the_end_that_counts() -> None:
    """The reconciliation says that the run ended before the stream had it resized."""
    late, early = (fact(at_s, events.Resized, run="1", gpus_milli=4000, hosts=["h"]) for at_s in (FIVE, 10))
    truth = ended(THREE, "reconcile/slurm")
    (one,) = superseded([early, late, truth])
    assert (one.fact, one.by, one.because) == (late, truth, "a run that is over does not change any more")
    assert (
        superseded([late, ended(FIVE), fact(FIVE + 1, events.Resized, run="2", gpus_milli=1, hosts=[])]) == ()
    )
    (lost,) = superseded([late, ended(FIVE - 1, run="1", estimated=True)])
    assert lost.line().startswith("resized at 1970-01-01T05:00:00Z with")


def start(klass: str | None, at_s: int = THREE, **keys: Any) -> Known:  # noqa: ANN401
    given = {"run": "1", "attempt": 1, "gpus_milli": 8000, "hosts": ["h"], "klass": klass, **keys}
    return fact(at_s, events.Started, **given)


def decided(klass: str, at_s: int = 10, **keys: Any) -> Known:  # noqa: ANN401
    given = {"attempt": 1, "account": "org/a", "gpus_milli": 8000, "hold_gpu_ms": 0, "reason": "r", **keys}
    return fact(at_s, DecisionMade, "gpuledger/admission", klass=klass, **given)


def test_the_class_of_a_start_that_an_admission_decided_otherwise_is_told() -> None:
    """All else that the start says counts."""
    begun, decision = start("unallocated"), decided("allocated")
    (one,) = superseded([begun, decision, ended(FIVE)])
    assert (one.fact, one.by, one.run, one.of) == (begun, decision, "1", "class")
    assert one.line() == (
        "started at 1970-01-01T03:00:00Z with class unallocated, says stream/slurm; its class does not count: decision"
        " made at 1970-01-01T00:00:10Z with class allocated, says gpuledger/admission, and of the class of a run the"
        " recorded decision counts."
    )
    assert (one.as_json()["said"], one.as_json()["by"]["said"]) == (
        {"class": "unallocated"},
        {"class": "allocated"},
    )


@pytest.mark.parametrize(
    "facts",
    [
        (start("allocated"), decided("allocated")),
        (start(None), decided("unallocated")),
        (start("unallocated"), decided("allocated", attempt=2)),
        (start("unallocated"), decided("allocated", at_s=FIVE)),
        (start("unallocated"), decided("allocated", expires_at=instant(THREE))),
    ],
    ids=["alike", "not said", "of another attempt", "after the start", "expired by then"],
)
def test_a_start_contradicts_no_decision_that_does_not_count_for_it(facts: Sequence[Known]) -> None:
    assert superseded(facts) == ()


def test_of_records_that_tell_of_one_further_submission_the_loser_is_told() -> None:
    early, late = (
        submitted(100, version=version, eligible_at=instant(at_s)) for version, at_s in ((2, 200), (3, 300))
    )
    (one,) = superseded([submitted(0, version=1), early, late])
    assert (one.fact, one.by, one.because) == (early, late, "the furthest version of a record counts")


def test_an_update_from_before_the_submission_is_shown() -> None:
    early, asked = fact(THREE, events.Updated, priority=5), submitted(FIVE)
    (one,) = superseded([asked, early])
    assert (one.fact, one.by, one.because) == (early, asked, "a submission says anew all that is asked for")


def test_of_updates_of_one_moment_what_lost_is_shown_key_by_key() -> None:
    stream = fact(FIVE, events.Updated, priority=5, time_limit_s=60)
    truth = fact(FIVE, events.Updated, "reconcile/slurm", priority=7)
    (one,) = superseded([submitted(THREE), truth, stream])
    assert (one.fact, one.by, one.of) == (stream, truth, "priority")
    (whole,) = superseded([submitted(THREE), truth, fact(FIVE, events.Updated, priority=5)])
    assert (whole.by, whole.of) == (truth, None)
    assert superseded([submitted(THREE), truth, fact(FIVE, events.Updated, priority=7)]) == ()


def test_an_update_of_what_is_over_is_shown_until_it_is_submitted_anew() -> None:
    start = fact(THREE, events.Started, run="1", attempt=1, gpus_milli=8000, hosts=["h"])
    late, at_once = (fact(at_s, events.Updated, account="org/b") for at_s in (FIVE + 1, FIVE))
    known = [submitted(THREE, version=1), start, ended(FIVE), at_once, late]
    (one,) = superseded(known)
    assert (one.fact, one.by, one.because) == (late, known[2], "what is over does not change any more")
    assert superseded([*known, submitted(FIVE + 1, version=2)]) == ()
    truth = ended(FIVE - 1, "reconcile/slurm")
    assert {one.by for one in superseded([*known, truth]) if one.fact in (late, at_once)} == {truth}
    requeued = fact(FIVE, events.Requeued, run="1", reason="x")
    assert superseded([*known[:2], requeued, late]) == ()
