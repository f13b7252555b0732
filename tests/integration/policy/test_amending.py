"""Submissions and ends between two cycles: answered from the newest, while that is right; else by a full cycle."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from tests.integration.policy.led import Led, a_cluster, a_share, an_end, hosts_of, submitted
from tests.integration.policy.worlds import HOUR, NOON

from gpuledger.database.engine import reading
from gpuledger.events import heartbeat, host, workload
from gpuledger.events.budget import OverdraftSet, PeriodOpened
from gpuledger.events.decision import DecisionMade
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.clock import instant
from gpuledger.policy.amending import AGE_S, FEW
from gpuledger.policy.directives import directives
from gpuledger.policy.leading import Leading, Terms
from gpuledger.policy.replaying import replay
from gpuledger.policy.service import issue_cycle


def admitted(led: Led, name: str, gpus: int, hold_s: int) -> None:
    """Let an admission set GPUs aside for an attempt."""
    fact = DecisionMade(
        cluster="c", workload=name, attempt=1, klass="allocated", account="c/b", gpus_milli=gpus * 1000,
        hold_gpu_ms=gpus * 1000 * hold_s, reason="test", expires_at=instant(led.now_s + HOUR),
    )  # fmt: skip
    led.tell(fact)


def test_a_submission_is_ordered_at_once_without_a_full_cycle(led: Led) -> None:
    led.submit("w-debug", 1)
    led.turn()
    assert led.recorded == [("issued", 0), ("amended", 1)]
    (said,) = led.word().amendments
    (decision,) = said.amended.record["decisions"]
    assert (decision["workload"], decision["action"], sum(decision["hosts"].values())) == (
        "w-debug", "start", 1000,
    )  # fmt: skip
    assert said.amended.submissions == ["w-debug"]
    assert [kept["workload"] for kept in said.amended.record["reservations"]] == ["w-large"]


def test_orders_of_the_cycle_stand_beside_those_of_its_amendments(led: Led) -> None:
    led.submit("w-debug", 1)
    led.turn()
    with reading(led.engine) as reader:
        found = directives(reader, "c", now_s=led.now_s)
        assert found is not None
        assert directives(reader, "c", now_s=led.now_s, after=found.cursor) is None
        before = directives(reader, "c", now_s=NOON)
    assert before is not None
    assert before.cursor < found.cursor
    assert [one["workload"] for one in before.starts] == ["w-b"]  # it runs already, and w-a, too
    assert sorted(one["workload"] for one in found.starts) == ["w-b", "w-debug"]
    assert (found.cycle, found.at_s) == (led.word().newest.id, NOON + 1)


def test_starts_as_they_were_ordered_call_for_nothing(led: Led) -> None:
    led.submit("w-1", 1)
    led.turn()
    admitted(led, "w-b", 4, HOUR)
    led.start("w-b", 4, hosts_of(led, "w-b"))
    led.tell(workload.Ready(cluster="c", workload="w-b", run="1"))
    led.start("w-1", 1, hosts_of(led, "w-1"))
    led.submit("w-2", 1)
    led.tell(heartbeat.Heartbeat(cluster="c"))
    led.process._led["c"].answered = 0.0
    led.turn()
    assert led.recorded == [("issued", 0), ("amended", 1), ("amended", 2)]
    assert led.word().amendments[1].amended.submissions == ["w-2"]


def test_gpus_that_an_end_leaves_are_given_at_once_to_who_waits(led: Led) -> None:
    led.submit("w-wide", 8)
    led.turn()
    assert [d["action"] for d in led.word().record["decisions"] if d["workload"] == "w-wide"] == ["wait"]
    an_end(led)
    led.process._led["c"].answered = 0.0
    led.turn()
    assert led.recorded == [("issued", 0), ("amended", 1), ("amended", 2)]
    said = led.word().amendments[1].amended
    assert (said.submissions, said.changed) == ([], ["w-a"])
    assert [(d["workload"], d["action"]) for d in said.record["decisions"]] == [("w-wide", "start")]
    with reading(led.engine) as reader:
        assert replay(reader, said.cycle).difference is None


def test_a_submission_after_an_end_is_decided_with_what_that_left(led: Led) -> None:
    an_end(led)
    led.submit("w-wide", 8)
    led.turn()
    assert led.recorded == [("issued", 0), ("amended", 1)]
    assert [(d["workload"], d["action"]) for d in led.word().amendments[0].amended.record["decisions"]] == [
        ("w-wide", "start")
    ]


def test_an_end_of_which_nothing_comes_is_not_written_down_and_not_forgotten(led: Led) -> None:
    led.start("w-b", 4, hosts_of(led, "w-b"))
    led.tell(workload.Ended(cluster="c", workload="w-b", run="1", reason="completed"))
    led.turn()
    assert led.recorded == [("issued", 0)]
    led.submit("w-1", 6)
    led.process._led["c"].answered = 0.0
    led.turn()
    assert led.recorded == [("issued", 0), ("amended", 2)]
    said = led.word().amendments[0].amended
    assert (said.submissions, said.changed) == (["w-1"], ["w-a", "w-b"])  # w-a began
    assert [(d["workload"], d["action"]) for d in said.record["decisions"]] == [("w-1", "start")]


def test_who_was_preempted_waits_again_and_who_was_withdrawn_waits_no_more(led: Led) -> None:
    led.tell(workload.Preempted(cluster="c", workload="w-a", run="1", reason="test"))
    led.tell(workload.Ended(cluster="c", workload="w-large", reason="cancelled"))
    led.turn()
    assert led.recorded == [("issued", 0), ("amended", 1)]
    said = led.word().amendments[0].amended
    assert (said.submissions, said.changed) == (["w-a"], ["w-a", "w-large"])
    assert [(d["workload"], d["action"]) for d in said.record["decisions"]] == [("w-a", "start")]
    assert said.record["reservations"] == []


def test_a_period_that_an_admission_opens_calls_for_nothing(led: Led) -> None:
    led.tell(PeriodOpened(cluster="c", period="2026-12", installed_gpu_ms=1, grants=[], org_seq=1))
    led.submit("w-debug", 1)
    led.turn()
    assert led.recorded == [("issued", 0), ("amended", 1)]


def another_host(led: Led) -> None:
    led.start("w-b", 4, hosts_of(led, "w-a"))


def fewer_gpus(led: Led) -> None:
    led.start("w-b", 2, hosts_of(led, "w-b"))


def admitted_otherwise(led: Led) -> None:
    admitted(led, "w-b", 4, 2 * HOUR)


def admitted_unordered(led: Led) -> None:
    admitted(led, "w-large", 16, HOUR)


def nobody_ordered(led: Led) -> None:
    led.start("w-large", 2, hosts_of(led, "w-b"))


def another_class(led: Led) -> None:
    led.start("w-b", 4, hosts_of(led, "w-b"), klass="unallocated")


def before_the_order(led: Led) -> None:
    fact = workload.Started(
        cluster="c", workload="w-b", run="1", attempt=1, gpus_milli=4000, hosts=[hosts_of(led, "w-b")]
    )
    led.tell(fact, ago_s=60)


def a_requeue(led: Led) -> None:
    led.tell(workload.Requeued(cluster="c", workload="w-a", run="1", reason="user"))


def a_host(led: Led) -> None:
    led.tell(host.StateChanged(cluster="c", host="h2", gpus=8, gpu_model="x", state="draining"))


def said_otherwise(led: Led) -> None:
    led.take(submitted("w-large", "c/b", NOON - 45, 12))


def a_new_account(led: Led) -> None:
    led.submit("w-new", 1, "c/newcomers")


def many_at_once(led: Led) -> None:
    led.take(*(submitted(f"w-{n}", "c/b", led.now_s, 1) for n in range(FEW)))


def a_cycle_by_hand(led: Led) -> None:
    led.clock.at += timedelta(seconds=1)
    issue_cycle(led.engine, "c", at_s=led.now_s, clock=led.clock, calendar=Calendar())


@pytest.mark.parametrize(
    "happens",
    [
        another_host, fewer_gpus, admitted_otherwise, admitted_unordered, nobody_ordered, another_class,
        before_the_order, a_requeue, a_host,
        a_share, said_otherwise, a_new_account, many_at_once, a_cycle_by_hand,
    ],
)  # fmt: skip
def test_anything_else_calls_for_a_full_cycle_once_one_may_be(
    led: Led, happens: Callable[[Led], None]
) -> None:
    happens(led)
    led.submit("w-debug", 1)
    before = led.recorded
    led.turn()
    assert led.recorded == before  # the fourfold duration of the cycle before has not gone by
    led.process._led["c"].rested = 0.0
    led.turn()
    assert led.recorded == [*before, ("issued", led.now_s - NOON)]


def test_work_of_a_hard_account_is_asked_about_by_a_full_cycle(led: Led) -> None:
    led.tell(OverdraftSet(account="c/b", overdraft="hard", reason="test", by="test"))
    led.turn(60)
    led.submit("w-soft", 1, "c/a")
    led.turn()
    assert led.recorded == [("issued", 0), ("issued", 60), ("amended", 61)]
    led.submit("w-hard", 1)
    led.process._led["c"].answered = led.process._led["c"].rested = 0.0
    led.turn()
    assert led.recorded[3:] == [("issued", 62)]


def test_a_host_that_is_known_to_become_another_calls_for_a_full_cycle(led: Led) -> None:
    change = host.StateChanged(cluster="c", host="h2", gpus=8, gpu_model="x", state="draining")
    led.tell(change, ago_s=-20)
    led.turn(60)
    assert led.recorded == [("issued", 0), ("issued", 60)]
    led.tell(host.StateChanged(cluster="c", host="h2", gpus=8, gpu_model="x", state="unhealthy"), ago_s=-5)
    led.process._led["c"].rested = 0.0
    led.turn()  # told of it
    for after_s, kind in ((1, "amended"), (10, "issued")):
        led.submit(f"w-{kind}", 1)
        led.process._led["c"].rested = led.process._led["c"].answered = 0.0
        led.turn(after_s)
        assert led.recorded[-1] == (kind, led.now_s - NOON)


def test_what_a_cycle_was_told_is_good_for_some_minutes_only(database_url: str) -> None:
    with a_cluster(database_url) as led:
        led.process = Leading(led.engine, led.clock, Calendar(), Terms(clusters=("c",), every_s=3600))
        led.turn(0)
        for after_s, kind in ((AGE_S, "amended"), (1, "issued")):
            led.submit(f"w-{kind}", 1)
            led.process._led["c"].rested = led.process._led["c"].answered = 0.0
            led.turn(after_s)
            assert led.recorded[-1] == (kind, led.now_s - NOON)


def test_who_becomes_eligible_meanwhile_is_decided_with_whoever_is_submitted(database_url: str) -> None:
    with a_cluster(database_url) as led:
        later = workload.Submitted(
            cluster="c", workload="w-later", account="c/b", user="-", gpus_milli=1000, minimum_runtime_s=HOUR,
            eligible_at=instant(NOON + 5),
        )  # fmt: skip
        led.tell(later)
        led.turn(0)
        assert "w-later" not in {d["workload"] for d in led.word().record["decisions"]}
        led.submit("w-soon", 1)
        led.turn(6)
        (said,) = led.word().amendments
        assert said.amended.submissions == ["w-soon", "w-later"]


def test_who_is_not_eligible_yet_is_not_decided_and_no_cycle_is_asked_for(led: Led) -> None:
    later = workload.Submitted(
        cluster="c", workload="w-later", account="c/b", user="-", gpus_milli=1000, minimum_runtime_s=HOUR,
        eligible_at=instant(NOON + 50),
    )  # fmt: skip
    led.tell(later)
    led.process._led["c"].rested = 0.0
    led.turn()
    led.turn()
    assert led.recorded == [("issued", 0)]


def test_a_debug_job_is_ordered_at_once_while_many_wait(database_url: str) -> None:
    with a_cluster(database_url) as led:
        for first in range(0, 10_000, 1000):
            led.take(*(submitted(f"q{n:05}", "c/a", NOON - 30, 16) for n in range(first, first + 1000)))
        led.turn(0)
        led.submit("w-debug", 1)
        led.turn()
        assert led.recorded == [("issued", 0), ("amended", 1)]
        assert led.word().issued.issued.waiting > 10_000
        (said,) = led.word().amendments
        assert [(d["workload"], d["action"]) for d in said.amended.record["decisions"]] == [
            ("w-debug", "start")
        ]
