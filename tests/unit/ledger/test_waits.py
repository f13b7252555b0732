"""Waits on cases worked by hand: where what is asked for changes they are cut, and go on."""

import datetime as dt

import msgspec
import pytest

from gpuledger.events import workload as events
from gpuledger.ledger.facts import Known
from gpuledger.ledger.segments import Segment, derive
from gpuledger.ledger.waits import Wait, whole_waits

NAMED = {"cluster": "c", "workload": "w"}


def known(at_s: int, fact: events.WorkloadFact) -> Known:
    return Known(fact, at_s, "s", msgspec.json.encode(fact))


def submitted(at_s: int = 0, **keys: object) -> Known:
    return known(
        at_s, events.Submitted(**NAMED, **{"account": "org/a", "user": "u", "gpus_milli": 8000, **keys})
    )


def updated(at_s: int, **keys: object) -> Known:
    return known(at_s, events.Updated(**NAMED, **keys))


def started(at_s: int, run: str = "r1", attempt: int = 1, **keys: object) -> Known:
    return known(
        at_s, events.Started(**NAMED, run=run, attempt=attempt, gpus_milli=8000, hosts=["h"], **keys)
    )


def requeued(at_s: int, run: str = "r1") -> Known:
    return known(at_s, events.Requeued(**NAMED, run=run, reason="x"))


def at(second: int) -> dt.datetime:
    return dt.datetime.fromtimestamp(second, dt.UTC)


def waits(*facts: Known) -> list[Wait]:
    return list(derive(facts).waits)


def spans(*facts: Known) -> list[tuple[int, int | None, str, int | None]]:
    return [(w.from_s, w.to_s, w.account, w.began_s) for w in waits(*facts)]


def payers(*facts: Known) -> list[tuple[int, int | None, str]]:
    return [(s.from_s, s.to_s, s.account) for s in derive(facts).segments]


def test_another_payer_cuts_a_wait_which_began_when_it_did() -> None:
    facts = [submitted(), updated(10, account="org/b"), updated(20, account="org/c"), started(30)]
    assert spans(*facts) == [(0, 10, "org/a", None), (10, 20, "org/b", 0), (20, 30, "org/c", 0)]
    assert whole_waits(waits(*facts)) == [(0, 30)]
    assert {wait.submitted_s for wait in waits(*facts)} == {0}


def test_what_nobody_waits_by_cuts_nothing() -> None:
    assert spans(submitted(), updated(10, kind="debug", time_limit_s=60, resumable=False)) == [
        (0, None, "org/a", None)
    ]


@pytest.mark.parametrize(
    ("key", "value"),
    [("gpus_milli", 1000), ("gpu_model", "h100"), ("minimum_runtime_s", 60), ("priority", 5)],
)
def test_size_model_minimum_runtime_and_priority_count_from_then_on(key: str, value: object) -> None:
    before, after = waits(submitted(), updated(10, **{key: value}))
    assert getattr(before, key) != value
    assert (after.from_s, getattr(after, key)) == (10, value)


def test_an_update_holds_for_the_next_attempt() -> None:
    facts = [
        submitted(),
        started(10),
        updated(20, gpus_milli=16_000, priority=5),
        requeued(30),
        started(40, "r2", 2),
    ]
    _, again = waits(*facts)
    assert (again.from_s, again.to_s, again.gpus_milli, again.priority) == (30, 40, 16_000, 5)


def test_work_that_is_put_off_does_not_wait_meanwhile() -> None:
    assert spans(submitted(), updated(10, eligible_at=at(50))) == [
        (0, 10, "org/a", None),
        (50, None, "org/a", None),
    ]


def test_work_that_was_put_off_waits_from_when_it_is_let_go() -> None:
    assert spans(submitted(eligible_at=at(100)), updated(40, eligible_at=at(20))) == [
        (40, None, "org/a", None)
    ]


def test_a_job_that_asks_for_nothing_any_more_does_not_wait() -> None:
    assert spans(submitted(), updated(10, gpus_milli=0)) == [(0, 10, "org/a", None)]


def test_a_run_is_paid_by_another_account_from_the_moment_on() -> None:
    facts = [submitted(), started(10), updated(20, account="org/b"), requeued(30), started(40, "r2", 2)]
    assert payers(*facts) == [(10, 20, "org/a"), (20, 30, "org/b"), (40, None, "org/b")]


def test_the_account_of_a_start_goes_before_what_was_named_by_then() -> None:
    facts = [
        submitted(),
        updated(5, account="org/b"),
        started(10, account="org/x"),
        updated(20, account="org/c"),
    ]
    assert payers(*facts) == [(10, 20, "org/x"), (20, None, "org/c")]


def test_a_run_keeps_the_class_and_size_that_it_was_started_with() -> None:
    facts = [submitted(), started(10), updated(20, minimum_runtime_s=0, gpus_milli=1000)]
    (segment,) = derive(facts).segments
    assert (segment.klass, segment.gpus_milli) == ("allocated", 8000)
    (again,) = derive([*facts, requeued(30), started(40, "r2", 2)]).segments[1:]
    assert again.klass == "unallocated"


@pytest.mark.parametrize(("limit_s", "capped_s"), [(100, 110), (0, None), (5, 15)])
def test_an_open_run_is_capped_by_the_newest_limit(limit_s: int, capped_s: int | None) -> None:
    (segment,) = derive([submitted(time_limit_s=60), started(10), updated(20, time_limit_s=limit_s)]).segments
    assert segment.capped_s == capped_s


def test_nobody_pays_for_a_run_beyond_its_limit() -> None:
    (segment,) = derive([submitted(time_limit_s=60), started(10), updated(90, account="org/b")]).segments
    assert isinstance(segment, Segment)
    assert (segment.account, segment.to_s, segment.capped_s) == ("org/a", None, 70)
