"""A cycle's decisions read as orders at the moment of acting."""

from tests.unit.enforce.told import CYCLE, NOW_S, leaves, record, run, starts, waits

from gpuledger.policy.orders import Orders
from gpuledger.policy.state import RunId, RunningRun


def orders(cycle: dict[str, object], *runs: RunningRun, age_s: int = 0) -> Orders:
    running = {one.id: one for one in runs}
    return Orders(record=cycle, cycle_at_s=NOW_S - age_s, now_s=NOW_S, running=running)


def test_the_order_is_that_of_the_queue_whatever_the_order_of_the_list() -> None:
    outside = {"workload": "later", "action": "wait", "reason": "", "numbers": {"gpus_milli": 1}}
    told = orders(
        record(waits("third", 3), outside, starts("first", 1), waits("second", 2), leaves("x", "1"))
    )
    assert list(told.order()) == ["first", "second", "third"]


def test_a_run_within_its_minimum_runtime_is_spared_and_afterwards_not() -> None:
    cycle = record(leaves("young", "1"), leaves("old", "1"), leaves("gone", "1"), leaves("free", "1"))
    told = orders(
        cycle,
        run("young", "1", protected_for_s=30),
        run("old", "1", protected_for_s=0),
        run("free", "1", protected_for_s=30, klass="unallocated"),
    )

    assert {one.id.workload: one.spared for one in told.leaving()} == {
        "young": "it is within its minimum runtime for 30 s more",
        "old": "",
        "gone": "the ledger knows no such run any more",
        "free": "",
    }


def test_an_old_cycle_stops_nobody() -> None:
    told = orders(record(leaves("old", "1")), run("old", "1", protected_for_s=0), age_s=601)

    assert told.stale == f"cycle {CYCLE} is 601 s old: nothing is stopped or ordered by it"
    assert [one.spared for one in told.leaving()] == [told.stale]
    assert orders(record(), age_s=600).stale == ""


def test_what_starts_is_in_the_order_of_the_queue_and_what_runs_already_is_left_out() -> None:
    cycle = record(starts("late", 3, h1=4000), starts("first", 1, h2=8000), starts("there", 2))
    told = orders(cycle, run("there", "1", protected_for_s=9))
    assert [(one.workload, dict(one.hosts)) for one in told.starting()] == [
        ("first", {"h2": 8000}), ("late", {"h1": 4000}),
    ]  # fmt: skip
    (still,) = Orders(record=cycle, cycle_at_s=NOW_S, now_s=NOW_S, waiting={"late"}).starting()
    assert still.workload == "late"
    assert orders(cycle, age_s=600).starting() != []
    assert orders(cycle, age_s=601).starting() == []


def test_a_run_is_protected_however_old_the_cycle_is_and_one_that_is_gone_is_not() -> None:
    cycle = record(leaves("young", "1"), leaves("old", "1"))
    told = orders(cycle, run("young", "1", protected_for_s=1), run("old", "1", protected_for_s=0), age_s=1000)
    assert [told.protected(RunId(name, "1")) for name in ("young", "old", "gone")] == [True, False, False]


def test_a_record_from_before_there_were_decisions_orders_nothing() -> None:
    told = orders({"cycle": CYCLE})
    assert (told.leaving(), told.starting(), told.order()) == ([], [], [])
