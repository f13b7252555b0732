"""The search for the least that lets a workload start; on real cycles: tests/property/policy/test_counterfactual.py."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from gpuledger.policy.cycle import Action, ClusterState, Cycle, Decision, PendingWorkload
from gpuledger.policy.trials import WORK_MAX, Exhausted, Trial


def state(waiting: int) -> ClusterState:
    names = ["w", *(f"v{n}" for n in range(waiting))]
    pending = tuple(
        PendingWorkload(
            workload=name, account="a", gpus_milli=1, submitted_at_s=0, eligible_at_s=0, minimum_runtime_s=1
        )
        for name in names
    )
    return ClusterState(cluster="c", at_s=0, healthy_milli=1, capacity_window_gpu_ms=1, pending=pending)


class Tale:
    """Looks that start ``w`` when all of some workloads are gone; quick ones may be mistaken about some."""

    def __init__(self, needed: set[str], believed: set[str] | None = None) -> None:
        self.needed, self.believed = needed, needed if believed is None else believed
        self.exact = self.quick = 0

    def anew(self, state: ClusterState) -> Cycle:
        self.exact += 1
        return self._cycle(state, self.needed)

    def in_the_queue(self, state: ClusterState) -> Cycle:
        self.quick += 1
        return self._cycle(state, self.believed)

    def _cycle(self, state: ClusterState, needed: set[str]) -> Cycle:
        starts = needed.isdisjoint(work.workload for work in state.pending)
        action = Action.START if starts else Action.WAIT
        decision = Decision(workload="w", action=action, reason="", numbers={})
        return Cycle(
            cluster="c", at_s=0, supply_milli=1, allocations=(), decisions=(decision,), reservations=()
        )


def least(tale: Tale, waiting: int, *, seeming: bool = False, tries: int = 150) -> tuple[str, ...] | None:
    first = state(waiting)

    def change(names: Sequence[str]) -> ClusterState:
        gone = set(names)
        return replace(first, pending=tuple(work for work in first.pending if work.workload not in gone))

    names = [f"v{n}" for n in range(waiting)]
    return Trial(tale, "w", tries).least(names, change, seeming=seeming)  # type: ignore[arg-type]


def test_the_least_is_found_wherever_it_is() -> None:
    for needed in ({"v0"}, {"v39"}, {"v3", "v17"}, {"v0", "v1", "v2"}):
        assert set(least(Tale(needed), 40) or ()) == needed
    assert least(Tale({"w"}), 40) is None


def test_few_of_the_first_take_few_cycles_however_many_there_are() -> None:
    tale = Tale({"v0", "v2"})
    assert least(tale, 1000) == ("v0", "v2")
    assert tale.exact < 12


def test_what_quick_looks_find_is_tried_once_more_and_found_anew_where_they_err() -> None:
    right = Tale({"v1", "v4"})
    assert least(right, 40, seeming=True) == ("v1", "v4")
    assert right.exact == 3  # without both, and with one of them left
    for believed in ({"v1"}, {"v1", "v4", "v5"}):
        assert least(Tale({"v1", "v4"}, believed), 40, seeming=True) == ("v1", "v4")


def test_a_long_queue_is_looked_at_a_bounded_number_of_times() -> None:
    waiting = 100_000
    tale = Tale({f"v{n}" for n in range(0, waiting, 2)})
    with pytest.raises(Exhausted):
        least(tale, waiting)
    assert tale.exact <= WORK_MAX // (waiting // 2) + 1
    few = Tale({"v0", "v3", "v5"})
    with pytest.raises(Exhausted):
        least(few, 40, tries=5)
    assert few.exact == 5
