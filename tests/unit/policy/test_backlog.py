"""Who waits, kept from one look to the next: it says what one says that is made anew."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.unit.policy.forests import AT_S, cluster, forest, hosts, pending

from gpuledger.policy.backlog import Backlog, line_of
from gpuledger.policy.contenders import allocated, unallocated
from gpuledger.policy.fair_share import entries
from gpuledger.policy.occupancy import Occupancy
from gpuledger.policy.state import PendingWorkload, PolicyConfig

CONFIG = PolicyConfig()
TREE = forest({"a": {}, "p": {}, "p/x": {}, "z": {"share": 0}}, running={"p": 1})
THERE = Occupancy(cluster([], on=hosts(8, 8)), CONFIG.quantum_s)


def made(waiting: list[PendingWorkload], at_s: int) -> Backlog:
    found = Backlog(CONFIG, THERE)
    found.follow((), waiting, at_s)
    return found


def said(backlog: Backlog) -> dict[str, Any]:
    tops = {"allocated": allocated(TREE, CONFIG), "unallocated": unallocated(TREE)}
    found = {}
    for klass, waiting in backlog.by_leaf(TREE).items():
        for leaf, sums in waiting.items():
            found[klass, leaf] = (
                list(sums.entries), sums.held_gpu_ms, sums.gpus_milli, sums.oldest_s, sums.asks,
            )  # fmt: skip
        assert line_of(waiting)(tops[klass]).entries == ()  # the root has no work of its own
    return {"waiting": found, "oldest": backlog.oldest_s(), "accounts": dict(backlog.accounts)}


workloads = st.builds(
    lambda name, path, gpus, hours, priority, submitted_s, eligible_s: pending(
        f"w{name}",
        path,
        gpus=gpus,
        hours=hours,
        priority=priority,
        submitted_at_s=submitted_s,
        eligible_at_s=AT_S + eligible_s,
    ),
    st.integers(0, 30),
    st.sampled_from(["a", "p", "p/x", "p/~own", "z"]),
    st.sampled_from([1, 2, 8, 24]),
    st.integers(0, 2),
    st.integers(0, 1),
    st.integers(0, 2),
    st.integers(-100, 100),
)
looks = st.lists(
    st.tuples(st.lists(workloads, unique_by=lambda one: one.workload), st.integers(0, 60)), max_size=5
)


@given(looks)
def test_what_is_brought_up_to_date_is_what_would_be_made_anew(
    drawn: list[tuple[list[PendingWorkload], int]],
) -> None:
    backlog, at_s, before = Backlog(CONFIG, THERE), AT_S, list[PendingWorkload]()
    for now, later_s in drawn:
        at_s += later_s
        kept = [one for one in before if one in now]
        gone, come = [one for one in before if one not in now], [one for one in now if one not in before]
        backlog.follow(gone, come, at_s)
        before = [*kept, *come]
        assert said(backlog) == said(made(now, at_s))


@given(st.lists(workloads, unique_by=lambda one: one.workload))
def test_it_has_the_work_of_each_leaf_that_takes_a_place_in_the_queue(waiting: list[PendingWorkload]) -> None:
    backlog = made(waiting, AT_S)
    queue = [one for one in waiting if one.eligible_at_s <= AT_S and one.gpus_milli <= 16_000]
    expected = entries(TREE, queue, CONFIG)
    found = {
        klass: {leaf: list(sums.entries) for leaf, sums in leaves.items()}
        for klass, leaves in backlog.by_leaf(TREE).items()
    }
    assert found == {klass: dict(leaves) for klass, leaves in expected.items()}
    assert [backlog.placed(one.workload) for one in waiting] == [
        one if one in queue else None for one in waiting
    ]
    assert set(backlog.accounts) == {one.account for one in waiting}


def test_who_becomes_eligible_takes_its_place_unless_it_is_gone() -> None:
    early, late = (pending(name, "a", eligible_at_s=AT_S + 60) for name in ("early", "late"))
    backlog = made([early, late], AT_S)
    assert backlog.oldest_s() == {}
    backlog.follow([late], [], AT_S + 59)
    backlog.follow([], [], AT_S + 60)
    assert (backlog.placed("early"), backlog.placed("late")) == (early, None)
    assert backlog.oldest_s() == {"a": AT_S + 60}


def test_work_without_shares_is_unallocated_whatever_its_minimum_runtime() -> None:
    free, paid = pending("free", "z", hours=0), pending("paid", "z", hours=1)
    found = made([paid, free], AT_S).by_leaf(TREE)
    assert found["allocated"] == {}
    assert [entry[2] for entry in found["unallocated"]["z"].entries] == ["free", "paid"]
    assert {ask[0] for ask in found["unallocated"]["z"].asks} == {"unallocated"}
