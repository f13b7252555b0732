"""Facts -> segments and waits on cases worked by hand; random ones stand in the property tests."""

import datetime as dt

import msgspec
import pytest

from gpuledger.events import workload as events
from gpuledger.ledger.facts import Known
from gpuledger.ledger.mapping import DEFAULT_MINIMUM_RUNTIME_S
from gpuledger.ledger.segments import NOBODY, UNMAPPED, derive

NAMED = {"cluster": "c", "workload": "w"}


def known(at_s: int, fact: events.WorkloadFact, source: str = "s") -> Known:
    return Known(fact, at_s, source, msgspec.json.encode(fact))


def submitted(at_s: int = 0, **keys: object) -> Known:
    asked = {"account": "org/a", "user": "u-1", "gpus_milli": 8000, **keys}
    return known(at_s, events.Submitted(**NAMED, **asked))


def started(at_s: int, run: str = "r1", **keys: object) -> Known:
    given = {"attempt": 1, "gpus_milli": 8000, "hosts": ["h1"], **keys}
    return known(at_s, events.Started(**NAMED, run=run, **given))


def ended(at_s: int, run: str | None = "r1", **keys: object) -> Known:
    return known(at_s, events.Ended(**NAMED, run=run, reason="x", **keys))


def resized(at_s: int, gpus_milli: int, *hosts: str) -> Known:
    return known(at_s, events.Resized(**NAMED, run="r1", gpus_milli=gpus_milli, hosts=list(hosts) or ["h1"]))


def reclassed(at_s: int, klass: events.WorkloadClass) -> Known:
    return known(at_s, events.ClassChanged(**NAMED, run="r1", klass=klass, reason="x"))


def spans(*facts: Known) -> list[tuple[int, int | None, int, str]]:
    return [(s.from_s, s.to_s, s.gpus_milli, s.klass) for s in derive(facts).segments]


def waits(*facts: Known) -> list[tuple[int, int | None]]:
    return [(w.from_s, w.to_s) for w in derive(facts).waits]


def test_a_run_is_one_segment_from_start_to_end() -> None:
    (segment,) = derive([submitted(0, gpu_model="H100"), started(10, hosts=["h2", "h1"]), ended(20)]).segments
    assert (segment.from_s, segment.to_s, segment.account, segment.user) == (10, 20, "org/a", "u-1")
    assert (segment.klass, segment.gpu_model, segment.hosts, segment.estimated) == (
        "allocated",
        "H100",
        ("h1", "h2"),
        False,
    )


def test_a_start_overrides_account_user_and_model_of_the_submission() -> None:
    facts = [submitted(gpu_model="A100"), started(1, account="org/b", user="u-2", gpu_model="H100"), ended(2)]
    (segment,) = derive(facts).segments
    assert (segment.account, segment.user, segment.gpu_model) == ("org/b", "u-2", "H100")


def test_a_run_without_a_submission_is_nobodys_and_shown_as_unmapped() -> None:
    (segment,) = derive([started(1), ended(2)]).segments
    assert (segment.account, segment.user) == (UNMAPPED, NOBODY)


@pytest.mark.parametrize(
    ("minimum_runtime_s", "recorded", "klass"),
    [
        (None, None, "allocated"),
        (3600, None, "allocated"),
        (0, None, "unallocated"),
        (0, "allocated", "allocated"),
        (3600, "unallocated", "unallocated"),
    ],
)
def test_the_class_is_the_recorded_one_else_follows_from_the_minimum_runtime(
    minimum_runtime_s: int | None, recorded: str | None, klass: str
) -> None:
    assert spans(submitted(minimum_runtime_s=minimum_runtime_s), started(1, klass=recorded), ended(2)) == [
        (1, 2, 8000, klass)
    ]


def test_an_open_run_has_an_open_segment() -> None:
    assert spans(submitted(), started(5)) == [(5, None, 8000, "allocated")]


@pytest.mark.parametrize("end_s", [10, 9, 0])
def test_a_run_that_stopped_at_or_before_its_start_holds_nothing(end_s: int) -> None:
    assert spans(submitted(), started(10), ended(end_s)) == []


def test_a_run_without_a_start_has_no_segment() -> None:
    assert spans(submitted(), ended(20), resized(5, 1000)) == []


def test_a_run_without_gpus_has_no_segment() -> None:
    assert spans(submitted(), started(1, gpus_milli=0), ended(2)) == []


def test_each_size_and_class_is_a_segment_of_its_own() -> None:
    facts = [
        submitted(),
        started(0),
        resized(10, 4000),
        reclassed(20, "unallocated"),
        resized(30, 0),
        ended(40),
    ]
    assert spans(*facts) == [
        (0, 10, 8000, "allocated"),
        (10, 20, 4000, "allocated"),
        (20, 30, 4000, "unallocated"),
    ]


def test_a_move_to_other_hosts_begins_a_segment() -> None:
    assert spans(started(0), resized(10, 8000, "h2"), ended(20)) == [
        (0, 10, 8000, "allocated"),
        (10, 20, 8000, "allocated"),
    ]


def test_a_change_that_changes_nothing_begins_no_segment() -> None:
    assert spans(started(0), resized(10, 8000), reclassed(15, "allocated"), ended(20)) == [
        (0, 20, 8000, "allocated")
    ]


@pytest.mark.parametrize("at_s", [20, 25])
def test_a_change_at_or_after_the_end_is_too_late(at_s: int) -> None:
    assert spans(started(0), resized(at_s, 1000), ended(20)) == [(0, 20, 8000, "allocated")]


@pytest.mark.parametrize("at_s", [10, 5])
def test_a_change_at_or_before_the_start_holds_from_the_start_on(at_s: int) -> None:
    assert spans(started(10), resized(at_s, 1000), ended(20)) == [(10, 20, 1000, "allocated")]


def test_two_changes_of_one_instant_both_hold() -> None:
    facts = [started(0), resized(10, 1000), reclassed(10, "unallocated"), ended(20)]
    assert spans(*facts) == [(0, 10, 8000, "allocated"), (10, 20, 1000, "unallocated")]


def test_suspended_gpus_stay_held() -> None:
    paused = [
        known(at_s, kind(**NAMED, run="r1")) for at_s, kind in ((5, events.Suspended), (9, events.Resumed))
    ]
    assert spans(started(0), *paused, ended(20)) == [(0, 20, 8000, "allocated")]


def test_an_estimated_end_marks_the_whole_run_until_the_truth_arrives() -> None:
    estimate = [started(0), resized(5, 1000), ended(10, estimated=True)]
    assert [s.estimated for s in derive(estimate).segments] == [True, True]
    assert [(s.to_s, s.estimated) for s in derive([*estimate, ended(8)]).segments] == [(5, False), (8, False)]


def test_a_workload_waits_from_its_submission_to_its_start() -> None:
    assert waits(submitted(5), started(10), ended(20)) == [(5, 10)]


def test_a_workload_waits_from_when_it_is_eligible() -> None:
    eligible_at = dt.datetime.fromtimestamp(8, dt.UTC)
    assert waits(submitted(5, eligible_at=eligible_at), started(10)) == [(8, 10)]
    assert waits(submitted(5, eligible_at=eligible_at), started(7)) == []


def test_a_workload_that_was_not_started_still_waits_until_it_is_cancelled() -> None:
    assert waits(submitted(5)) == [(5, None)]
    assert waits(submitted(5), ended(9, run=None)) == [(5, 9)]
    assert waits(submitted(5), ended(3, run=None)) == []


@pytest.mark.parametrize("kind", [events.Preempted, events.Requeued])
def test_a_workload_waits_again_after_a_run_that_did_not_finish(kind: type[events.Stopped]) -> None:
    stopped = known(20, kind(**NAMED, run="r1", reason="x"))
    assert waits(submitted(), started(10), stopped) == [(0, 10), (20, None)]
    assert waits(submitted(), started(10), stopped, started(30, "r2"), ended(40, "r2")) == [(0, 10), (20, 30)]


def test_a_run_preempted_before_it_started_makes_no_second_wait_over_the_first() -> None:
    stopped = known(5, events.Preempted(**NAMED, run="r1", reason="x"))
    assert waits(submitted(), started(10), stopped) == [(0, 10), (10, None)]


def test_a_wait_says_what_was_asked_for() -> None:
    (wait,) = derive([submitted(5, priority=7, minimum_runtime_s=60, gpu_model="H100")]).waits
    assert (wait.account, wait.gpus_milli, wait.gpu_model) == ("org/a", 8000, "H100")
    assert (wait.minimum_runtime_s, wait.priority, wait.submitted_s) == (60, 7, 5)


def test_a_wait_takes_the_defaults_of_the_mapping_rule() -> None:
    (wait,) = derive([submitted()]).waits
    assert (wait.minimum_runtime_s, wait.priority) == (DEFAULT_MINIMUM_RUNTIME_S, 0)


def test_nobody_waits_for_no_gpus_or_without_a_submission() -> None:
    assert waits(submitted(gpus_milli=0)) == []
    assert waits(started(5), ended(9)) == []


def test_nothing_follows_from_nothing() -> None:
    assert derive([]).segments == derive([]).waits == ()


def test_a_record_that_was_submitted_anew_waits_again_from_when_it_could_start() -> None:
    later = dt.datetime.fromtimestamp(25, dt.UTC)
    facts = (
        submitted(0, version=3),
        started(5),
        ended(20),
        submitted(20, version=1, eligible_at=later),
    )
    assert waits(*facts) == waits(*facts[::-1]) == [(0, 5), (25, None)]
    assert waits(*facts, started(40, "r2")) == [(0, 5), (25, 40)]


def test_a_submission_after_the_end_of_a_workload_reopens_it() -> None:
    over = (submitted(0, version=3), started(5), ended(20), ended(20, None))
    assert waits(*over) == [(0, 5)]
    assert waits(*over, submitted(20, version=1)) == [(0, 5), (20, None)]
    assert waits(*over, submitted(20, version=1), ended(30, None)) == [(0, 5), (20, 30)]


def test_a_submission_that_a_stream_tells_again_is_a_change_and_no_requeue() -> None:
    assert waits(submitted(0), started(5), ended(20), submitted(3)) == [(3, 5)]
    assert waits(submitted(0), started(5), ended(20), submitted(20)) == []
