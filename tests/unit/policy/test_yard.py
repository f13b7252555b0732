"""What is free now, soon, and beside reservations."""

from dataclasses import replace

import pytest
from tests.unit.policy.forests import AT_S, account, cluster, hosts, run

from gpuledger.policy.placement import HostState, Placement
from gpuledger.policy.state import ClusterState, Reservation, ReservationKind, RunningRun
from gpuledger.policy.yard import SizeClass, Yard

LATER_S = AT_S + 3600


def yard(*running: RunningRun, sizes: tuple[int, ...] = (8, 8)) -> Yard:
    return Yard(cluster([account("a")], (), running, on=hosts(*sizes)), 900)


def bound(placement: Placement, *, at_s: int = LATER_S, workload: str = "w") -> Reservation:
    return Reservation(workload=workload, placement=placement, at_s=at_s, kind=ReservationKind.BOUND)


def test_what_runs_hold_is_not_free_and_what_starts_is_taken() -> None:
    found = yard(run("a", gpus=6, hosts={"h0": 6}))
    assert found.free_milli == 10_000
    assert found.fit_now(2000, None, LATER_S) == {"h0": 2000}
    found.start(run("a", gpus=2, name="new", hosts={"h0": 2}))
    assert found.free_milli == 8000
    assert found.fit_now(2000, None, LATER_S) == {"h1": 2000}


def test_what_leaves_is_free_soon_and_not_now() -> None:
    going = run("a", gpus=8, hosts={"h0": 8})
    found = yard(going, sizes=(8,))
    assert (found.fit_now(8000, None, AT_S), found.fit_soon(8000, None)) == (None, None)
    found.leave(going)
    assert (found.fit_now(8000, None, AT_S), found.fit_soon(8000, None)) == (None, {"h0": 8000})
    found.stay(going)
    assert found.fit_soon(8000, None) is None


def test_what_is_promised_is_for_nobody_else_until_it_is_withdrawn() -> None:
    found = yard(sizes=(8,))
    found.promise({"h0": 6000})
    assert (found.fit_now(3000, None, AT_S), found.fit_now(2000, None, AT_S)) == (None, {"h0": 2000})
    found.withdraw({"h0": 6000})
    assert found.fit_now(3000, None, AT_S) == {"h0": 3000}


def test_what_is_kept_for_somebody_is_idle_until_somebody_starts_there() -> None:
    found = yard(run("a", gpus=6, hosts={"h0": 6}))
    found.promise({"h1": 8000})
    found.bind(bound({"h0": 2000}))
    assert (found.fit_now(8000, None, AT_S), found.is_free_for(8000, None)) == (None, True)
    found.start(run("a", gpus=1, name="new", hosts={"h1": 1}))
    assert (found.is_free_for(8000, None), found.is_free_for(7000, None)) == (False, True)
    assert yard(run("a", gpus=6, hosts={"h0": 6})).is_free_for(8000, None)


def test_a_reservation_that_is_dropped_and_kept_again_is_in_the_way_as_before() -> None:
    found = yard()
    first, second = bound({"h0": 8000}), bound({"h1": 8000}, at_s=LATER_S + 60, workload="v")
    found.bind(first)
    found.bind(second)
    for _ in range(2):
        assert found.fit_now(8000, None, LATER_S + 61) is None
        assert found.fit_now(8000, None, LATER_S + 1) == {"h1": 8000}
        found.unbind(first)
        assert found.fit_now(8000, None, LATER_S + 61) == {"h0": 8000}
        found.bind(first)
    found.unbind(first)
    found.bind(bound({"h0": 4000}))
    assert found.fit_now(4000, None, LATER_S + 61) == {"h0": 4000}
    assert found.fit_now(8000, None, LATER_S + 61) is None


def test_promises_that_overlap_what_leaves_leave_the_rest_usable_now() -> None:
    going = run("a", gpus=4, hosts={"h0": 4})
    found = yard(going, sizes=(8,))
    found.leave(going)
    found.promise({"h0": 5000})
    # 4 GPUs are free now; once the run is gone, 8 are, of which 5 are promised.
    assert (found.fit_now(4000, None, AT_S), found.fit_now(3000, None, AT_S)) == (None, {"h0": 3000})
    found.stay(going)
    assert found.is_missed(going.id)
    found.withdraw({"h0": 5000})
    found.promise({"h0": 4000})
    assert not found.is_missed(going.id)


def test_what_is_due_to_a_promise_does_not_wait_for_runs_that_leave_later() -> None:
    """4 GPUs are free and promised from now on; 8 more leave later. Nobody starts on the 4 in exchange for those."""
    later = run("a", gpus=4, name="later", hosts={"h0": 4})
    found = yard(later, sizes=(8,))
    found.leave(later)
    found.promise({"h0": 4000}, AT_S)
    assert (found.fit_now(1000, None, AT_S), found.fit_soon(4000, None)) == (None, {"h0": 4000})
    found.leaves_by(later, AT_S + 60)
    assert found.fit_now(1000, None, AT_S) is None
    found.withdraw({"h0": 4000}, AT_S)
    found.promise({"h0": 4000}, AT_S + 60)
    assert found.fit_now(4000, None, AT_S) == {"h0": 4000}


def test_a_run_is_missed_where_a_promise_is_due_before_another_makes_room() -> None:
    early, late = (run("a", gpus=4, name=name, hosts={"h0": 4}) for name in ("early", "late"))
    found = yard(early, late, sizes=(8,))
    for going in (early, late):
        found.leave(going)
    found.leaves_by(early, AT_S)
    found.promise({"h0": 4000}, AT_S)
    for going, is_missed in ((late, False), (early, True)):
        found.stay(going)
        assert found.is_missed(going.id) is is_missed
        found.leave(going)


def test_beside_a_bound_reservation_starts_only_what_is_over_in_time() -> None:
    found = yard(sizes=(8,))
    found.bind(bound({"h0": 6000}))
    assert found.fit_now(8000, None, LATER_S) == {"h0": 8000}
    assert found.fit_now(8000, None, LATER_S + 1) is None
    assert found.fit_now(2000, None, LATER_S + 1) == {"h0": 2000}
    assert found.fit_soon(3000, None) is None
    assert [kept.workload for kept in found.bounds_before(LATER_S + 1)] == ["w"]
    assert found.bounds_before(LATER_S) == ()
    found.unbind(bound({"h0": 6000}))
    assert found.fit_now(8000, None, LATER_S + 1) == {"h0": 8000}


def test_who_stays_beyond_a_reservation_counts_beside_it() -> None:
    found = yard(run("a", gpus=2, hosts={"h0": 2}, protected_until_s=LATER_S + 1), sizes=(8,))
    assert found.can_bind(bound({"h0": 6000}))
    assert not found.can_bind(bound({"h0": 7000}))
    assert found.can_bind(bound({"h0": 8000}, at_s=LATER_S + 1))
    found.bind(bound({"h0": 6000}))
    assert found.fit_now(1000, None, LATER_S + 1) is None
    assert not found.can_bind(bound({"h0": 1000}, workload="v"))


def test_who_was_told_to_leave_makes_no_room_beside_a_reservation_while_it_is_safe_beyond_that() -> None:
    going = run("a", gpus=4, hosts={"h0": 4}, started_at_s=AT_S - 60, protected_until_s=AT_S - 30)
    found = yard(going, sizes=(8,))
    kept = bound({"h0": 3000}, at_s=AT_S + 100)
    found.bind(kept)
    found.leave(going)
    assert (found.fit_soon(1000, None), found.fit_soon(2000, None)) == ({"h0": 1000}, None)
    assert found.fit_now(2000, None, LATER_S) is None
    assert found.fit_now(2000, None, AT_S + 100) == {"h0": 2000}
    found.unbind(kept)
    assert found.fit_soon(8000, None) == {"h0": 8000}
    assert not found.can_bind(bound({"h0": 5000}, at_s=AT_S + 100))
    assert found.can_bind(bound({"h0": 5000}, at_s=AT_S + 840))


def test_a_gang_goes_on_one_host_when_the_smallest_holds_it() -> None:
    assert [yard(sizes=(8, 4)).goes_on_one_host(gpus * 1000) for gpus in (4, 5)] == [True, False]


def test_an_overdue_reservation_asks_who_is_safe_now() -> None:
    found = yard(run("a", gpus=8, hosts={"h0": 8}, protected_until_s=AT_S - 5), sizes=(8,))
    assert found.can_bind(bound({"h0": 8000}, at_s=AT_S - 100))


def test_the_calendar_lets_runs_go_one_by_one_and_stays_away_from_other_reservations() -> None:
    first = run("a", gpus=8, name="first", hosts={"h0": 8}, protected_until_s=LATER_S)
    second = run("a", gpus=8, name="second", hosts={"h1": 8}, protected_until_s=LATER_S + 60)
    found = yard(first, second)
    assert found.first_fit(4000, None, [first, second]) == ({"h0": 4000}, first)
    assert found.first_fit(16_000, None, [first, second]) == ({"h0": 8000, "h1": 8000}, second)
    assert found.first_fit(16_000, None, [first]) is None
    found.bind(bound({"h0": 8000}))
    assert found.first_fit(4000, None, [first, second]) == ({"h1": 4000}, second)


def test_whether_a_gang_may_stay_without_some_runs_is_seen_at_one_look() -> None:
    first, second = run("a", gpus=8, hosts={"h0": 8}), run("a", gpus=6, name="s", hosts={"h1": 6})
    found = yard(first, second)
    assert found.fits_without([], 2000, None)
    assert not found.fits_without([second], 16_000, None)
    assert not found.fits_without([first], 11_000, None)
    assert found.fits_without([first], 10_000, None)
    assert found.fits_without([first, second], 16_000, "h100")
    assert not found.fits_without([first, second], 16_000, "b300")
    found.leave(first)
    assert found.fits_without([first, second], 16_000, None)
    found.bind(bound({"h0": 4000}, at_s=AT_S))
    assert not found.fits_without([second], 16_000, None)


def test_a_gang_of_another_model_or_size_is_not_possible() -> None:
    found = yard()
    assert found.is_possible(16_000, "h100")
    assert not found.is_possible(16_000, "b300")
    assert not found.is_possible(17_000, None)
    assert not found.has({"gone": 1000})
    assert not found.has({"h0": 9000})


@pytest.mark.parametrize(
    ("gpus", "expected"),
    [(1, SizeClass.ONE_HOST), (8, SizeClass.ONE_HOST), (9, SizeClass.FEW_HOSTS), (64, SizeClass.FEW_HOSTS),
     (65, SizeClass.MANY_HOSTS)],
)  # fmt: skip
def test_size_classes_go_by_hosts(gpus: int, expected: SizeClass) -> None:
    assert yard(sizes=(8, 4)).size_class(gpus * 1000) is expected


def test_size_classes_go_by_the_inventory_whatever_becomes_of_the_largest_host() -> None:
    """A gang keeps its class, and the reservation of it, while the only host of its size drains or fails."""
    small, large = (
        hosts(4, 4, 4, 4),
        HostState(host="large", gpus_milli=8000, gpu_model="h100", draining=True),
    )
    drains = cluster([], on=(*small, large))
    failed = replace(cluster([], on=small), largest_host_milli=8000)
    for state in (drains, failed):
        assert Yard(state, 900).size_class(8000) is SizeClass.ONE_HOST
    assert Yard(cluster([], on=small), 900).size_class(8000) is SizeClass.FEW_HOSTS


def test_runs_help_whom_their_hosts_could_hold() -> None:
    old = HostState(host="old", gpus_milli=8000, gpu_model="a100", draining=True)
    there, drained = run("a", gpus=1, name="x", hosts={"h0": 1}), run("a", gpus=1, name="y", hosts={"old": 1})
    found = Yard(cluster([], (), [there, drained], on=(*hosts(8), old)), 900)
    models = (None, "h100", "a100")
    assert [found.helps(there, 8000, model) for model in models] == [True, True, False]
    assert not found.helps(drained, 1000, None)


def test_a_run_beside_a_protected_one_helps_only_what_fits_beside_that() -> None:
    free, safe = run("a", gpus=4, name="x", hosts={"h0": 4}), {"name": "y", "protected_until_s": LATER_S}
    found = yard(free, run("a", gpus=3, hosts={"h0": 3}, **safe))
    assert [found.helps(free, gpus * 1000, None) for gpus in (5, 6, 8, 13, 14)] == [
        True,
        False,
        False,
        True,
        False,
    ]
    found.promise({"h0": 1000})
    assert (found.helps(free, 5000, None), found.helps(free, 4000, None)) == (False, True)
    found.withdraw({"h0": 1000})
    assert found.helps(free, 5000, None)


def test_without_hosts_the_cluster_is_one_host_of_any_model() -> None:
    found = Yard(cluster([], (), [run("a", gpus=90, hosts={"h7": 90})], gpus=100), 900)
    assert found.fit_now(10_000, "b300", AT_S) == {"c": 10_000}
    assert found.size_class(100_000) is SizeClass.ONE_HOST
    nothing = ClusterState(cluster="c", at_s=AT_S, healthy_milli=0, capacity_window_gpu_ms=0)
    assert not Yard(nothing, 900).is_possible(1, None)
