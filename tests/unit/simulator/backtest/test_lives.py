"""What became of a workload, as its facts tell."""

import msgspec

from gpuledger.events import workload
from gpuledger.events.workload import WorkloadFact
from gpuledger.ledger.facts import Known
from gpuledger.ledger.mapping import AS_GIVEN
from gpuledger.simulator.backtest.lives import ANYWHERE, Life, life
from gpuledger.simulator.facts import Departure

OF = {"cluster": "c", "workload": "w"}
SIZES = {"h1": 8_000, "h2": 8_000}


def known(at_s: int, data: WorkloadFact) -> Known:
    return Known(data, at_s, "test", msgspec.json.encode(data))


def asked(at_s: int = 100, **more: object) -> Known:
    keys = {"account": "org/a", "user": "u", "gpus_milli": 8_000, "minimum_runtime_s": 900, **more}
    return known(at_s, workload.Submitted(**OF, **keys))  # type: ignore[arg-type]


def started(at_s: int, run: str = "1", **more: object) -> Known:
    keys = {"run": run, "attempt": int(run), "gpus_milli": 8_000, "hosts": ["h1"], **more}
    return known(at_s, workload.Started(**OF, **keys))  # type: ignore[arg-type]


def ended(at_s: int, reason: str = "completed", run: str | None = "1") -> Known:
    return known(at_s, workload.Ended(**OF, run=run, reason=reason))


def preempted(at_s: int, run: str = "1") -> Known:
    return known(at_s, workload.Preempted(**OF, run=run, reason="preempted"))


def found(*facts: Known) -> Life:
    one = life(facts, AS_GIVEN, SIZES)
    assert one is not None
    return one


def test_one_run_from_its_submission_to_its_end() -> None:
    one = found(asked(priority=3, kind="debug", resumable=False), started(160), ended(500))
    assert (one.workload, one.account, one.kind, one.priority) == ("w", "org/a", "debug", 3)
    assert (one.eligible_s, one.is_submitted, one.resumable, one.minimum_runtime_s) == (100, True, False, 900)
    (run,) = one.runs
    assert (run.from_s, run.to_s, run.why) == (160, 500, Departure.DONE)
    assert run.pieces[0].placement == {"h1": 8_000}
    assert not one.again(run)
    assert one.cancelled_s is None


def test_why_a_run_was_over() -> None:
    reasons = {
        "completed": Departure.DONE,
        "failed": Departure.DONE,
        "NODE_FAIL": Departure.HOST_FAILED,
        "preempted": Departure.PREEMPTED,
        "TIMEOUT": Departure.TIME_LIMIT,
    }
    for reason, why in reasons.items():
        assert found(asked(), started(160), ended(500, reason)).runs[0].why is why


def test_a_run_that_was_taken_and_ran_again() -> None:
    one = found(asked(), started(160), preempted(400), started(600, "2"), ended(900, run="2"))
    first, second = one.runs
    assert first.why is Departure.PREEMPTED
    assert one.again(first)
    assert not one.again(second)
    assert one.waits == [(100, 160), (400, 600)]


def test_one_that_waits_again_until_now() -> None:
    one = found(asked(), started(160), preempted(400))
    assert one.again(one.runs[0])
    assert one.waits == [(100, 160), (400, None)]
    assert one.cancelled_s is None


def test_one_that_was_given_up_while_it_waited() -> None:
    assert found(asked(), ended(700, "cancelled", run=None)).cancelled_s == 700


def test_what_it_told_of_loading_and_saving() -> None:
    told = [
        known(at_s, kind(**OF, run="1"))
        for at_s, kind in (
            (200, workload.Ready),
            (300, workload.Checkpointed),
            (400, workload.Checkpointed),
            (999, workload.Checkpointed),  # after its end
        )
    ]
    (run,) = found(asked(), started(160), *told, ended(500)).runs
    assert (run.ready_s, run.saved_s) == (200, [300, 400])


def test_where_it_ran_is_as_it_was_told_and_spread_evenly_where_it_was_not() -> None:
    told = started(160, hosts=["h1", "h2"], host_gpus_milli={"h1": 2_000, "h2": 6_000})
    untold = started(160, hosts=["h1", "h2"])
    assert found(asked(), told).runs[0].pieces[0].placement == {"h1": 2_000, "h2": 6_000}
    assert found(asked(), untold).runs[0].pieces[0].placement == {"h1": 4_000, "h2": 4_000}


def test_a_run_whose_hosts_nobody_told_holds_its_gpus_all_the_same() -> None:
    assert found(asked(), started(160, hosts=[])).runs[0].pieces[0].placement == {ANYWHERE: 8_000}


def test_a_change_of_size_or_class_cuts_a_run() -> None:
    resized = known(300, workload.Resized(**OF, run="1", gpus_milli=4_000, hosts=["h2"]))
    changed = known(400, workload.ClassChanged(**OF, run="1", klass="unallocated", reason="policy"))
    (run,) = found(asked(), started(160), resized, changed, ended(500)).runs
    assert [(piece.from_s, piece.to_s, piece.klass, dict(piece.placement)) for piece in run.pieces] == [
        (160, 300, "allocated", {"h1": 8_000}),
        (300, 400, "allocated", {"h2": 4_000}),
        (400, 500, "unallocated", {"h2": 4_000}),
    ]


def test_a_run_that_nobody_submitted_is_asked_for_when_it_begins() -> None:
    one = found(started(160, account="org/b"), ended(500))
    assert (one.account, one.eligible_s, one.is_submitted, one.gpus_milli) == ("org/b", 160, False, 8_000)
    assert one.minimum_runtime_s == 3_600  # that of the built-in rule


def test_a_workload_has_one_run_at_a_time() -> None:
    """The first was not seen to end before the second began; of two at once the later is cut."""
    first, second = found(asked(), started(160), started(300, "2"), ended(500, run="2")).runs
    assert (first.to_s, second.from_s, second.to_s) == (300, 300, 500)
    first, second = found(asked(), started(160), started(300, "2"), ended(400), ended(500, run="2")).runs
    assert (first.to_s, second.from_s) == (400, 400)


def test_what_asks_for_no_gpu_is_no_demand() -> None:
    assert life([asked(gpus_milli=0)], AS_GIVEN, SIZES) is None
    assert life([ended(500)], AS_GIVEN, SIZES) is None


def updated(at_s: int, **keys: object) -> Known:
    return known(at_s, workload.Updated(**OF, **keys))  # type: ignore[arg-type]


def test_it_asks_as_it_did_when_it_first_ran_with_its_last_limit() -> None:
    one = found(
        asked(priority=1, time_limit_s=600),
        updated(120, priority=4, gpus_milli=4_000),
        started(160),
        updated(200, account="org/b", priority=9, gpus_milli=16_000, time_limit_s=3_600),
        ended(500),
    )
    assert (one.account, one.priority, one.gpus_milli, one.time_limit_s) == ("org/a", 4, 4_000, 3_600)


def test_what_never_ran_asks_as_it_does_by_now_and_waits_once() -> None:
    one = found(asked(priority=1), updated(120, account="org/b"), updated(130, priority=4))
    assert (one.account, one.priority, one.waits) == ("org/b", 4, [(100, None)])


def test_another_payer_cuts_no_run_and_what_else_changes_does() -> None:
    resized = known(300, workload.Resized(**OF, run="1", gpus_milli=4_000, hosts=["h1"]))
    (run,) = found(asked(), started(160), updated(200, account="org/b"), resized, ended(500)).runs
    assert [(p.from_s, p.to_s, p.placement) for p in run.pieces] == [
        (160, 300, {"h1": 8_000}),
        (300, 500, {"h1": 4_000}),
    ]
