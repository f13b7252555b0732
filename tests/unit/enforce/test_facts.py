"""What a cycle means at the moment of acting."""

import pytest
from tests.unit.enforce.told import CYCLE, TREE, allocation, facts, leaves, record, run, starts, waits

from gpuledger.enforce.facts import milli


@pytest.mark.parametrize(("published", "amount"), [(8, 8000), ("0.500", 500), ("12.375", 12_375), (0, 0)])
def test_published_gpus_are_read_exactly(published: int | str, amount: int) -> None:
    assert milli(published) == amount


def test_an_account_weighs_what_it_is_issued() -> None:
    issued = facts(record(allocations=TREE)).issued()

    assert {path: one.weight for path, one in issued.items()} == {
        "org": 16_000, "org/a": 6000, "org/b": 10_500, "org/c": 0,
    }  # fmt: skip
    assert issued["org/b"].why == "10.500 GPUs are issued to org/b"
    assert issued["org/c"].why == "its share is 0"


def test_an_account_that_asks_for_nothing_weighs_what_it_is_entitled_to_down_the_tree() -> None:
    quiet = (
        allocation("org", 1_000_000, 16, 16),
        allocation("org/a", 250_000, 0, 0),
        allocation("org/a/deep", 500_000, 0, 0),
        allocation("org/b", 750_000, 16, 16),
    )
    issued = facts(record(allocations=quiet)).issued()

    assert issued["org/a"].weight == 4000
    assert issued["org/a/deep"].weight == 2000
    assert issued["org/a"].why == "org/a asks for nothing and is entitled to 4 GPUs"


def test_an_account_with_a_share_weighs_something_even_when_nothing_is_issued() -> None:
    tiny = (allocation("org", 1_000_000, 16, 16), allocation("org/a", 1, 0, 8))
    assert facts(record(allocations=tiny)).issued()["org/a"].weight == 1


def test_the_order_is_that_of_the_queue_whatever_the_order_of_the_list() -> None:
    outside = {"workload": "later", "action": "wait", "reason": "", "numbers": {"gpus_milli": 1}}
    told = facts(record(waits("third", 3), outside, starts("first", 1), waits("second", 2), leaves("x", "1")))
    assert list(told.order()) == ["first", "second", "third"]


def test_a_run_within_its_minimum_runtime_is_spared_and_afterwards_not() -> None:
    cycle = record(leaves("young", "1"), leaves("old", "1"), leaves("gone", "1"), leaves("free", "1"))
    told = facts(
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
    told = facts(record(leaves("old", "1")), run("old", "1", protected_for_s=0), age_s=601)

    assert told.stale == f"cycle {CYCLE} is 601 s old: nothing is stopped or ordered by it"
    assert [one.spared for one in told.leaving()] == [told.stale]
    assert facts(record(), age_s=600).stale == ""
