"""Laws of the order, against an oracle that computes every figure anew for every pick."""

from fractions import Fraction
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.property.policy import oracle
from tests.property.policy.worlds import (
    AHEAD_S,
    WINDOW_S,
    accounts,
    build,
    capacity,
    forests,
    queues,
    running,
    trees,
    waiting,
)

from gpuledger.policy.cycle import (
    Action,
    ClusterState,
    Cycle,
    HostState,
    PolicyConfig,
    Reservation,
    ReservationKind,
    RunningRun,
    run_cycle,
)
from gpuledger.policy.fair_share import order_leaves, order_workloads
from gpuledger.policy.tree import build_tree

CONFIG = PolicyConfig()
GPUS_MILLI = 100_000
few = settings(max_examples=100, deadline=None)


@few
@given(forests(min_share=1), st.data())
def test_the_queue_is_the_oracles(world: dict[str, Any], data: st.DataObject) -> None:
    tree = build(world, GPUS_MILLI)
    queue = data.draw(queues([leaf.path for leaf in tree.leaves()]))
    expected = oracle.queue_order(
        world, queue, capacity=GPUS_MILLI, window_s=WINDOW_S, ahead_s=AHEAD_S, alpha=Fraction(1, 2)
    )
    assert [turn.workload.workload for turn in order_workloads(tree, waiting(queue), CONFIG)] == expected


@few
@given(forests(min_share=1), st.integers(2, 10))
def test_the_order_inside_a_department_does_not_depend_on_its_depth_or_size(
    world: dict[str, Any], parts: int
) -> None:
    alone = order_leaves(build_tree(accounts(world), capacity(GPUS_MILLI)), CONFIG)
    other = {"name": "z", "share": parts - 1, "used": 0, "demand": 0, "running": 0, "children": []}
    inside = {"children": [{"name": "dept", "share": 1, "children": world["children"]}, other]}
    deep = order_leaves(build_tree(accounts(inside), capacity(GPUS_MILLI * parts)), CONFIG)
    assert [path for path in deep if path != "z"] == [f"dept/{path}" for path in alone]


@few
@given(forests())
def test_the_order_holds_every_leaf_once_and_siblings_by_ratio(world: dict[str, Any]) -> None:
    config = PolicyConfig(floor_alpha_permille=1000)
    tree = build(world, GPUS_MILLI)
    order = order_leaves(tree, config)
    assert sorted(order) == [leaf.path for leaf in tree.leaves()]
    place = {path: number for number, path in enumerate(order)}
    for parent in tree.inner_nodes():
        first = {
            child.path: min(number for path, number in place.items() if oracle.inside(path, child.path))
            for child in parent.children
        }
        ranked = sorted(parent.children, key=lambda child: first[child.path])
        keys = [
            (0, Fraction(child.used_gpu_ms) / child.entitled_with_ahead)
            if child.share and child.entitled_with_ahead
            else (1 + (not child.share), Fraction(0))
            for child in ranked
        ]
        assert keys == sorted(keys)


def drawn_cycle(world: dict[str, Any], queue: list[dict[str, Any]], shuffle: st.DataObject | None) -> Cycle:
    runs = [
        RunningRun(
            workload=f"run-{path}",
            run=path,
            account=path,
            gpus_milli=gpus,
            started_at_s=-1000,
            protected_until_s=0,
        )
        for path, gpus in running(world).items()
    ]
    hosts = [
        HostState(host=f"h{n:02}", gpus_milli=gpus_milli, gpu_model="h100")
        for n, gpus_milli in enumerate([8000] * 12 + [4000])
    ]
    kept = [
        Reservation(
            workload=entry["id"], placement={"h03": entry["gpus"]}, at_s=n, kind=ReservationKind.BOUND
        )
        for n, entry in enumerate(queue[:2])
    ]
    listed: list[list[Any]] = [accounts(world), runs, waiting(queue), hosts, kept]
    if shuffle is not None:
        listed = [shuffle.draw(st.permutations(values)) for values in listed]
    state = ClusterState(
        cluster="c",
        at_s=2,
        healthy_milli=GPUS_MILLI,
        capacity_window_gpu_ms=GPUS_MILLI * WINDOW_S,
        accounts=tuple(listed[0]),
        running=tuple(listed[1]),
        pending=tuple(listed[2]),
        hosts=tuple(listed[3]),
        reservations=tuple(listed[4]),
    )
    return run_cycle(state, CONFIG)


@few
@given(trees(), st.data())
def test_a_cycle_does_not_depend_on_the_order_in_which_its_state_is_listed(
    world: dict[str, Any], data: st.DataObject
) -> None:
    queue = data.draw(queues([leaf.path for leaf in build(world, 1).leaves()], min_runtime_s=0))
    assert drawn_cycle(world, queue, data) == drawn_cycle(world, queue, None)


@few
@given(trees(), st.data())
def test_what_starts_fits_and_every_workload_is_decided_once(
    world: dict[str, Any], data: st.DataObject
) -> None:
    queue = data.draw(queues([leaf.path for leaf in build(world, 1).leaves()], min_runtime_s=0))
    decisions = drawn_cycle(world, queue, None).decisions
    waiting_ones = [decision.workload for decision in decisions if decision.action is not Action.PREEMPT]
    assert sorted(waiting_ones) == sorted(entry["id"] for entry in queue)
    started_milli = sum(d.numbers["gpus_milli"] for d in decisions if d.action is Action.START)
    assert started_milli <= max(GPUS_MILLI - sum(running(world).values()), 0)
