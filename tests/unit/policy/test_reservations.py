"""Reservations from cycle to cycle: kept, called in, dropped."""

from dataclasses import replace

import pytest
from tests.unit.policy.forests import AT_S, account, cluster, hosts, pending, run

from gpuledger.policy.cycle import (
    Action,
    ClusterState,
    Cycle,
    PendingWorkload,
    PolicyConfig,
    Reservation,
    ReservationKind,
    RunId,
    RunningRun,
    run_cycle,
)

HOUR_S = 3600
ACCOUNTS = [account("a", share=1, used=300), account("b", share=1, used=300), account("z", share=0)]


def bound(placement: dict[str, int], *, at_s: int = AT_S + HOUR_S, workload: str = "w") -> Reservation:
    return Reservation(workload=workload, placement=placement, at_s=at_s, kind=ReservationKind.BOUND)


def promise(placement: dict[str, int], *leaving: str, workload: str = "w") -> Reservation:
    runs = tuple(RunId(name, f"{name}/1") for name in leaving)
    return Reservation(
        workload=workload, placement=placement, at_s=AT_S - 1, kind=ReservationKind.PROMISE, leaving=runs
    )


def after(
    *kept: Reservation, running: list[RunningRun], queue: list[PendingWorkload] | None = None, **more: int
) -> tuple[Cycle, ClusterState]:
    state = cluster(
        ACCOUNTS,
        queue or [pending("w", "a", gpus=8)],
        running,
        on=hosts(8, 8),
        reservations=kept,
    )
    return run_cycle(state, PolicyConfig(**more)), state


def busy(until_s: int = AT_S + HOUR_S, *, account: str = "b") -> list[RunningRun]:
    return [
        run(account, gpus=8, name=f"run{n}", hosts={f"h{n}": 8}, protected_until_s=until_s) for n in range(2)
    ]


def told_to_leave(cycle: Cycle) -> list[str]:
    return [decision.workload for decision in cycle.decisions if decision.action is Action.PREEMPT]


def test_a_reservation_sticks_though_other_hosts_would_be_empty_earlier() -> None:
    running = busy()
    running[0] = replace(running[0], protected_until_s=AT_S + 60)
    cycle, _ = after(bound({"h1": 8000}), running=running)
    assert cycle.reservations == (bound({"h1": 8000}),)


def test_what_becomes_free_elsewhere_is_taken_and_the_reservation_is_over() -> None:
    cycle, _ = after(bound({"h1": 8000}), running=busy()[1:])
    assert (cycle.decisions[0].action, cycle.decisions[0].placement) == (Action.START, {"h0": 8000})
    assert cycle.reservations == ()


def test_when_its_time_has_come_the_runs_there_leave_whatever_the_ratios() -> None:
    cycle, _ = after(bound({"h1": 8000}, at_s=AT_S), running=busy(AT_S))
    assert told_to_leave(cycle) == ["run1"]
    assert cycle.reservations == (replace(promise({"h1": 8000}, "run1"), at_s=AT_S + PolicyConfig().grace_s),)
    leaves = next(d for d in cycle.decisions if d.action is Action.PREEMPT)
    assert leaves.reason == (
        "Leaves for w of account a, which asks for 8 GPUs: reserved at the head of the queue, until the minimum "
        "runtime of what runs here was over."
    )


def test_a_promise_is_kept_while_its_runs_are_there_and_says_so_again() -> None:
    cycle, _ = after(promise({"h1": 8000}, "run1"), running=busy(AT_S))
    assert told_to_leave(cycle) == ["run1"]
    assert cycle.reservations == (promise({"h1": 8000}, "run1"),)
    assert cycle.decisions[1].reason.endswith("an earlier cycle decided it.")


def test_a_run_that_a_late_fact_protects_is_told_to_leave_no_more() -> None:
    """The promise was made when its protection seemed over; now it is known to last a second longer."""
    cycle, _ = after(promise({"h1": 8000}, "run1"), running=busy(AT_S + 1))
    assert told_to_leave(cycle) == []
    assert [kept.kind for kept in cycle.reservations] == [ReservationKind.BOUND]


def test_when_the_runs_are_gone_the_workload_starts_before_anybody_else() -> None:
    first = pending("v", "b", gpus=8, submitted_at_s=-1)
    cycle, _ = after(
        promise({"h1": 8000}, "run1"), running=busy()[:1], queue=[first, pending("w", "a", gpus=8)]
    )
    actions = {decision.workload: decision.action.value for decision in cycle.decisions}
    assert actions == {"v": "wait", "w": "start"}


@pytest.mark.parametrize(
    "dropped",
    [
        promise({"h1": 8000}, "run1", workload="cancelled"),
        promise({"gone": 8000}, "run1"),
        promise({"h1": 7000}, "run1"),
        promise({"h1": 8000}),
        bound({"h1": 8000}, workload="cancelled"),
        bound({"gone": 8000}),
        bound({"h1": 8000}, at_s=AT_S + HOUR_S - 1),
    ],
)
def test_without_its_workload_or_its_hosts_or_with_somebody_in_the_way_a_reservation_is_over(
    dropped: Reservation,
) -> None:
    cycle, state = after(dropped, running=busy())
    fresh = run_cycle(replace(state, reservations=()), PolicyConfig())
    assert cycle == fresh
    assert told_to_leave(cycle) == []


def test_a_size_class_has_one_reservation() -> None:
    queue = [pending("v", "b", gpus=8), pending("w", "a", gpus=8)]
    cycle, _ = after(bound({"h0": 8000}, workload="v"), bound({"h1": 8000}), running=busy(), queue=queue)
    assert [kept.workload for kept in cycle.reservations] == ["v"]


def test_nobody_starts_on_gpus_that_are_due_in_exchange_for_those_that_leave_later() -> None:
    """4 GPUs of h0 are free and w's; 4 more are to leave for v, of which one is over. x comes first, and waits."""
    on_time = replace(promise({"h0": 4000}, workload="w"), at_s=AT_S)
    to_come = replace(promise({"h0": 3000}, "later", workload="v"), at_s=AT_S + 59)
    running = [*busy()[1:], run("b", gpus=4, name="later", hosts={"h0": 4})]
    queue = [
        pending("x", "b", gpus=1, priority=1),
        pending("w", "a", gpus=4),
        pending("v", "b", gpus=3, submitted_at_s=1),
    ]
    cycle, _ = after(on_time, to_come, running=running, queue=queue)
    actions = {decision.workload: decision.action.value for decision in cycle.decisions}
    assert actions == {"x": "wait", "w": "start", "v": "wait", "later": "preempt"}


def test_who_was_told_earlier_is_not_spared_for_one_who_leaves_later() -> None:
    """early leaves 1 GPU for w; v needs 1 more, which late leaves with a second one: w does not wait for that."""
    kept = replace(promise({"h0": 1000}, "early"), at_s=AT_S + 30)
    running = [
        *busy()[1:],
        run("b", gpus=5, name="safe", hosts={"h0": 5}, protected_until_s=AT_S + HOUR_S),
        run("b", gpus=1, name="early", hosts={"h0": 1}, klass="unallocated"),
        run("b", gpus=2, name="late", hosts={"h0": 2}, klass="unallocated"),
    ]
    queue = [pending("w", "a", gpus=1), pending("v", "a", gpus=1, submitted_at_s=1)]
    cycle, _ = after(kept, running=running, queue=queue)
    assert told_to_leave(cycle) == ["early", "late"]
    leaving = {kept.workload: [run.workload for run in kept.leaving] for kept in cycle.reservations}
    assert leaving == {"v": ["early", "late"], "w": ["early"]}


def test_reservations_that_are_due_against_one_another_are_called_in_together() -> None:
    """w takes from b, and v of b from a, in one cycle: the date of neither depends on the other."""
    kept = bound({"h0": 8000}, at_s=AT_S), bound({"h1": 8000, "h2": 8000}, at_s=AT_S, workload="v")
    running = [
        run("b", gpus=8, name="of-b", hosts={"h0": 8}),
        run("a", gpus=16, name="of-a", hosts={"h1": 8, "h2": 8}),
    ]
    queue = [pending("w", "a", gpus=8), pending("v", "b", gpus=16)]
    state = cluster(ACCOUNTS, queue, running, on=hosts(8, 8, 8), reservations=kept)
    assert told_to_leave(run_cycle(state, PolicyConfig())) == ["of-a", "of-b"]


def test_a_run_whose_gpus_were_promised_on_says_so() -> None:
    """w starts on h1, which became free. v, which comes first and can use h0 alone, counts on what was to leave it."""
    on = (hosts(8, 8)[0], replace(hosts(8, 8)[1], gpu_model="other"))
    queue = [pending("v", "b", gpus=2, gpu_model=on[0].gpu_model), pending("w", "a", gpus=6)]
    running = [run("a", gpus=8, name="large", hosts={"h0": 8})]
    kept = bound({"h0": 6000}, at_s=AT_S)
    cycle = run_cycle(
        cluster([account("a", used=300), account("b")], queue, running, on=on, reservations=[kept]),
        PolicyConfig(),
    )
    said = {decision.workload: (decision.action.value, decision.reason) for decision in cycle.decisions}
    assert (said["v"][0], said["w"][0]) == ("wait", "start")
    assert said["large"][1] == (
        "Leaves for v of account b, which asks for 2 GPUs: who had reserved its GPUs started elsewhere, and they were"
        " promised on."
    )
    assert [(one.workload, one.leaving) for one in cycle.reservations] == [
        ("v", (RunId("large", "large/1"),))
    ]


def test_a_run_that_is_no_longer_needed_is_spared() -> None:
    """h0 became free meanwhile, so w starts there, and run1 stays."""
    cycle, _ = after(promise({"h1": 8000}, "run1"), running=busy()[1:])
    assert (cycle.decisions[0].action, cycle.decisions[0].placement) == (Action.START, {"h0": 8000})
    assert told_to_leave(cycle) == []


def test_a_draining_host_sends_away_what_nothing_protects_and_is_reserved_for_nobody() -> None:
    old = tuple(replace(host, draining=host.host == "h1") for host in hosts(8, 8))
    running = [
        run("b", gpus=4, name="past", hosts={"h1": 4}, protected_until_s=AT_S),
        run("b", gpus=2, name="kept", hosts={"h1": 2}, protected_until_s=AT_S + 1),
        run("b", gpus=2, name="unpaid", hosts={"h1": 2}, klass="unallocated"),
    ]
    state = cluster(ACCOUNTS, [], running, on=old, reservations=[bound({"h1": 8000})])
    cycle = run_cycle(state, PolicyConfig())
    assert told_to_leave(cycle) == ["past", "unpaid"]
    assert cycle.decisions[0].reason == (
        "Leaves its host, which is being emptied: nothing protects the run any more."
    )
    assert cycle.reservations == ()


def test_a_head_reserves_what_is_empty_earliest_with_a_notice() -> None:
    for until_s, notice_s, at_s in ((AT_S + HOUR_S, 900, AT_S + HOUR_S), (AT_S + 60, 900, AT_S + 900),
                                    (AT_S + 60, 0, AT_S + 60)):  # fmt: skip
        cycle, _ = after(running=busy(until_s), notice_s=notice_s)
        assert [(kept.kind.value, kept.at_s) for kept in cycle.reservations] == [("bound", at_s)]


def test_a_quantum_keeps_a_run_though_its_protection_is_over() -> None:
    running = [replace(run, started_at_s=AT_S - 60, protected_until_s=AT_S - 30) for run in busy()]
    cycle, _ = after(running=running, notice_s=0)
    assert [kept.at_s for kept in cycle.reservations] == [AT_S - 60 + PolicyConfig().quantum_s]


def test_own_work_takes_nothing_that_a_reservation_counts_on() -> None:
    """Past its protection, young could leave for urgent; but were it spared, it would be safe when w's GPUs are due."""
    kept = bound({"h0": 2000}, at_s=AT_S + 180)
    queue = [pending("w", "a", gpus=2), pending("urgent", "b", gpus=2, priority=1)]
    young = {"started_at_s": AT_S - 60, "protected_until_s": AT_S - 30}
    for long_gpus, reservations, leaves in ((4, (kept,), []), (3, ("urgent", kept), ["young"])):
        running = [
            *busy(AT_S + 2 * HOUR_S)[1:],
            run("a", gpus=long_gpus, name="long", hosts={"h0": long_gpus}, protected_until_s=AT_S + HOUR_S),
            run("b", gpus=1, name="young", hosts={"h0": 1}, **young),
            run("b", gpus=2, name="old", hosts={"h0": 2}, protected_until_s=AT_S),
            run("a", gpus=1, name="past", hosts={"h0": 1}, protected_until_s=AT_S),
        ]
        cycle, _ = after(kept, running=running, queue=queue)
        found = [one if one == kept else one.workload for one in cycle.reservations]
        assert (tuple(found), told_to_leave(cycle)) == (reservations, leaves), long_gpus


def test_a_head_counts_on_nobody_who_was_told_to_leave_and_may_yet_be_spared() -> None:
    """young leaves for urgent. Were that cancelled, young would be safe until its quantum is over."""
    running = [
        *busy(AT_S + 2 * HOUR_S, account="a")[1:],
        run("b", gpus=4, name="young", hosts={"h0": 4}, started_at_s=AT_S - 60, protected_until_s=AT_S - 30),
        run("b", gpus=4, name="first", hosts={"h0": 4}, protected_until_s=AT_S + 100, priority=9),
    ]
    queue = [pending("urgent", "b", gpus=2, priority=5, eligible_at_s=-1), pending("head", "a", gpus=6)]
    cycle, state = after(running=running, queue=queue, notice_s=0)
    assert told_to_leave(cycle) == ["young"]
    head = bound({"h0": 6000}, at_s=AT_S - 60 + PolicyConfig().quantum_s, workload="head")
    assert cycle.reservations[0] == head
    cancelled = replace(state, pending=state.pending[1:], reservations=cycle.reservations)
    assert run_cycle(cancelled, PolicyConfig(notice_s=0)).reservations == (head,)


def first_of_all(*kept: Reservation, running: list[RunningRun], next_gpus: int = 8) -> Cycle:
    """wide needs both hosts, and its account comes first; small of another has a reservation."""
    accounts = [account("a"), account("b", used=300)]
    queue = [
        pending("wide", "a", gpus=16),
        pending("small", "b", gpus=8),
        pending("next", "b", gpus=next_gpus, submitted_at_s=1),
    ]
    return run_cycle(cluster(accounts, queue, running, on=hosts(8, 8), reservations=kept), PolicyConfig())


def promised_to_small(at_s: int) -> list[str]:
    """Who leaves where small waits for run1 of h1, and next could have the GPU of free on h0."""
    running = [
        run("b", gpus=1, name="free", hosts={"h0": 1}, klass="unallocated"),
        run("b", gpus=7, name="paid", hosts={"h0": 7}, protected_until_s=AT_S + HOUR_S),
        run("b", gpus=8, name="run1", hosts={"h1": 8}),
    ]
    kept = replace(promise({"h1": 8000}, "run1", workload="small"), at_s=at_s)
    return told_to_leave(first_of_all(kept, running=running, next_gpus=1))


def test_who_comes_first_of_all_gets_hosts_before_the_reservations_of_others_are_renewed() -> None:
    running = busy()[:1]
    cycle = first_of_all(bound({"h1": 8000}, at_s=AT_S - 1, workload="small"), running=running)
    said = {decision.workload: (decision.action.value, decision.reason) for decision in cycle.decisions}
    assert said["small"][0] == "start"
    assert cycle.reservations == (), "else one of b's after the other keeps wide from having any"
    assert said["wide"][1].endswith("What is reserved for others leaves no hosts to reserve.")
    assert said["next"][1].endswith(
        "wide of account a comes first: what is reserved for others leaves no hosts for it, and until they have"
        " started nobody else gets a reservation."
    )
    running.append(
        run("b", gpus=8, name="small", hosts={"h1": 8}, started_at_s=AT_S, protected_until_s=AT_S + HOUR_S)
    )
    queue = [pending("wide", "a", gpus=16), pending("next", "b", gpus=8)]
    state = cluster([account("a"), account("b", used=300)], queue, running, on=hosts(8, 8))
    assert [kept.workload for kept in run_cycle(state, PolicyConfig()).reservations] == ["wide"]


def test_promises_are_not_renewed_either_where_they_alone_keep_the_first_from_hosts() -> None:
    assert promised_to_small(AT_S) == ["run1"]


def test_a_promise_that_nobody_makes_room_for_holds_up_no_others() -> None:
    assert promised_to_small(AT_S - HOUR_S) == ["free", "run1"]


def test_of_hosts_that_are_empty_at_once_the_one_of_who_is_furthest_beyond_is_reserved() -> None:
    """Both runs may leave now; that a exceeds b by less than delta lets neither leave for ratios."""
    accounts = [account("a", used=300), account("b", used=301), account("c", used=300)]
    for first, second in ("ab", "ba"):
        running = [
            run(first, gpus=8, name="run0", hosts={"h0": 8}),
            run(second, gpus=8, name="run1", hosts={"h1": 8}),
        ]
        state = cluster(accounts, [pending("w", "c", gpus=8)], running, on=hosts(8, 8))
        (kept,) = run_cycle(state, PolicyConfig()).reservations
        assert kept.placement == {f"h{(first, second).index('b')}": 8000}


def test_of_hosts_that_are_empty_at_once_the_one_that_loses_least_is_reserved() -> None:
    """Both are as far beyond the asker; with ``most-used`` it is the host of who is furthest beyond."""
    accounts = [account("a", used=301), account("b", used=302), account("c", used=300)]
    running = [
        run("a", gpus=8, name="run0", hosts={"h0": 8}, checkpointed_at_s=AT_S - 60),
        run("b", gpus=8, name="run1", hosts={"h1": 8}, checkpointed_at_s=AT_S - 600),
    ]
    state = cluster(accounts, [pending("w", "c", gpus=8)], running, on=hosts(8, 8))
    for victims, expected in (("least-work", "h0"), ("most-used", "h1")):
        (kept,) = run_cycle(state, PolicyConfig(victims=victims)).reservations
        assert kept.placement == {expected: 8000}


def test_of_hosts_that_are_empty_at_once_no_own_run_leaves_while_others_are_further_beyond() -> None:
    accounts = [account("a", used=301), account("c", used=300)]
    running = [
        run("a", gpus=8, name="run0", hosts={"h0": 8}),
        run("c", gpus=8, name="run1", hosts={"h1": 8}, checkpointed_at_s=AT_S - 1),
    ]
    state = cluster(accounts, [pending("w", "c", gpus=8)], running, on=hosts(8, 8))
    (kept,) = run_cycle(state, PolicyConfig()).reservations
    assert kept.placement == {"h0": 8000}


def test_a_gang_whose_account_exceeds_nobody_does_not_leave_for_a_narrow_one() -> None:
    """The gang may leave at once, the single run in an hour: who waits gets the date of that one."""
    accounts = [account("a", used=300), account("b", used=300), account("c", used=300)]
    gang = run("b", gpus=16, name="gang", hosts={"h0": 8, "h1": 8})
    single = run("c", gpus=8, name="single", hosts={"h2": 8}, protected_until_s=AT_S + 3600)
    state = cluster(accounts, [pending("w", "a", gpus=8)], [gang, single], on=hosts(8, 8, 8))
    (kept,) = run_cycle(state, PolicyConfig()).reservations
    assert (kept.placement, kept.at_s) == ({"h2": 8000}, AT_S + 3600)
    (at_once,) = run_cycle(state, PolicyConfig(victims="most-used")).reservations
    assert (at_once.placement, at_once.at_s) == ({"h0": 8000}, AT_S + 900)


@pytest.mark.parametrize(
    ("beyond", "gpus", "after_s"),
    [
        pytest.param(False, 16, 28_800, id="nobody else could: after the protection cap"),
        pytest.param(True, 16, 60, id="its account exceeds the asker: by ratio, after the grace"),
        pytest.param(False, 8, 900, id="it is as narrow: after the notice"),
    ],
)
def test_when_a_gang_leaves_for_a_narrow_one(*, beyond: bool, gpus: int, after_s: int) -> None:
    accounts = [account("a", used=300), account("b", used=900 if beyond else 300)]
    gang = run("b", gpus=gpus, name="gang", hosts={f"h{n}": 8 for n in range(gpus // 8)})
    state = cluster(accounts, [pending("w", "a", gpus=8)], [gang], on=hosts(*[8] * (gpus // 8)))
    (kept,) = run_cycle(state, PolicyConfig()).reservations
    assert kept.at_s == AT_S + after_s
