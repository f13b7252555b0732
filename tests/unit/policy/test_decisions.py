"""What the walk decides for waiting workloads: starts, backfill, lending, heads by size class."""

from dataclasses import replace

from tests.unit.policy.forests import AT_S, account, cluster, hosts, pending, run

from gpuledger.policy.cycle import (
    Action,
    ClusterState,
    Cycle,
    HostState,
    PendingWorkload,
    PolicyConfig,
    Reservation,
    ReservationKind,
    RunningRun,
    run_cycle,
    tree_of,
)
from gpuledger.policy.decisions import Walk
from gpuledger.policy.fair_share import Turn, lines, turns_of
from gpuledger.policy.outcomes import Decision, Shared
from gpuledger.policy.preemption import Preemption
from gpuledger.policy.yard import Yard

HOUR_S = 3600
ACCOUNTS = [account("a"), account("b", used=300), account("z", share=0)]


def decide(
    queue: list[PendingWorkload], running: list[RunningRun], on: tuple[HostState, ...] = hosts(8, 8)
) -> Cycle:
    return run_cycle(cluster(ACCOUNTS, queue, running, on=on), PolicyConfig())


def actions(cycle: Cycle) -> dict[str, str]:
    return {decision.workload: decision.action.value for decision in cycle.decisions}


def reason(cycle: Cycle, workload: str) -> str:
    return next(decision.reason for decision in cycle.decisions if decision.workload == workload)


def test_without_words_the_same_is_decided() -> None:
    going, kept = (
        run("b", gpus=8, name=f"busy{n}", hosts={f"h{n}": 8}, protected_until_s=AT_S + n) for n in (0, 1)
    )
    promise = Reservation(
        workload="held",
        placement={"h0": 8000},
        at_s=AT_S + 60,
        kind=ReservationKind.PROMISE,
        leaving=(going.id,),
    )
    queue = [pending("held", "a", gpus=8), pending("head", "a", gpus=8), pending("fits", "a", gpus=4)]
    state = replace(cluster(ACCOUNTS, queue, [going, kept], on=hosts(8, 8, 4)), reservations=(promise,))
    found = []
    for has_words in (True, False):
        yard, tree = Yard(state, 900), tree_of(state, queue, PolicyConfig())
        turns = turns_of(lines(tree, queue, PolicyConfig()))
        preemption = Preemption(tree, state, yard, PolicyConfig())
        walk = Walk(turns, state, yard, preemption, PolicyConfig(), has_words=has_words)
        decided = [walk.decide_one(turn) for turn in turns] + list(walk.leaving())
        assert all(bool(one.reason) == has_words for one in decided if isinstance(one, Decision))
        found.append([(one.workload, one.action, one.placement, one.run, one.klass) for one in decided])
    assert found[0] == found[1]
    assert {name: action.value for name, action, *_ in found[0]} == {
        "held": "wait", "head": "wait", "fits": "start", "busy0": "preempt",
    }  # fmt: skip


def test_gangs_start_packed_on_the_hosts_that_the_decision_names() -> None:
    cycle = decide(
        [pending("w", "a", gpus=8), pending("v", "b", gpus=2)], [run("b", gpus=5, hosts={"h1": 5})]
    )
    assert {d.workload: d.placement for d in cycle.decisions} == {"w": {"h0": 8000}, "v": {"h1": 2000}}


def head_on_one_of_two_hosts(*queue: PendingWorkload, protected_s: int = 2 * HOUR_S) -> Cycle:
    """gang needs both hosts; h0 is free, h1 is protected for two hours."""
    busy = run("b", gpus=8, name="busy", hosts={"h1": 8}, protected_until_s=AT_S + protected_s)
    return decide([pending("gang", "a", gpus=16, priority=9), *queue], [busy])


def test_reserved_hosts_are_lent_to_what_is_over_before_and_to_unallocated_work() -> None:
    cycle = head_on_one_of_two_hosts(
        pending("short", "b", gpus=2, hours=2),
        pending("long", "b", gpus=2, hours=3),
        pending("free", "b", gpus=2, hours=0),
        pending("unfunded", "z", gpus=2, hours=8),
    )
    assert actions(cycle) == {
        "gang": "wait", "short": "start", "long": "wait", "free": "start", "unfunded": "start",
    }  # fmt: skip
    assert [(kept.workload, kept.at_s) for kept in cycle.reservations] == [("gang", AT_S + 2 * HOUR_S)]


def test_work_that_would_pass_a_reservation_is_told_of_it() -> None:
    cycle = head_on_one_of_two_hosts(pending("long", "b", gpus=2, hours=3))
    assert reason(cycle, "long") == (
        "Waits at place 2: its 2 GPUs would fit, but are reserved for gang from 1970-01-12T15:46:40Z on, and its "
        "minimum runtime would end later."
    )
    assert reason(cycle, "gang") == (
        "Waits at the head of its size class: account a (ratio 0.000000) is next, but of the 16 GPUs asked for, "
        "8 GPUs are missing. Reserved: 16 GPUs on 2 hosts (h0 to h1), from 1970-01-12T15:46:40Z on at the latest, "
        "when the runs there are past their minimum runtime."
    )


def test_funded_work_shorter_than_a_quantum_needs_a_quantum_beside_a_reservation() -> None:
    """Within its quantum nobody takes its GPUs, so it would hold up the reservation."""
    debug = PendingWorkload(
        workload="debug",
        account="b",
        gpus_milli=1000,
        submitted_at_s=0,
        eligible_at_s=0,
        minimum_runtime_s=60,
    )
    assert actions(head_on_one_of_two_hosts(debug, protected_s=901))["debug"] == "start"
    in_time = head_on_one_of_two_hosts(debug, protected_s=60)
    assert [kept.at_s for kept in in_time.reservations] == [AT_S + 900]
    assert actions(in_time)["debug"] == "start"


def test_each_size_class_has_a_head_and_smaller_work_does_not_wait_for_larger() -> None:
    busy = [
        run("b", gpus=8, name=f"busy{n}", hosts={f"h{n}": 8}, protected_until_s=AT_S + HOUR_S)
        for n in range(3)
    ]
    cycle = decide(
        [
            pending("wide", "a", gpus=16, priority=2),
            pending("wide2", "a", gpus=16, priority=1),
            pending("small", "a", gpus=4),
            pending("small2", "a", gpus=4, submitted_at_s=1),
        ],
        busy,
        on=hosts(8, 8, 8),
    )
    assert [kept.workload for kept in cycle.reservations] == ["small", "wide"]
    assert reason(cycle, "wide2").startswith(
        "Waits at place 2: wide of account a is ahead, for which 16 GPUs"
    )
    assert reason(cycle, "small2").endswith(
        "both are of account a (ratio 0.017045), where priority and then submit time decide."
    )


def test_a_head_for_which_other_reservations_leave_no_hosts_says_so() -> None:
    cycle = decide(
        [pending("wide", "a", gpus=16, priority=2), pending("small", "a", gpus=4)],
        [
            run("b", gpus=8, name=f"b{n}", hosts={f"h{n}": 8}, protected_until_s=AT_S + HOUR_S)
            for n in range(2)
        ],
    )
    assert [kept.workload for kept in cycle.reservations] == ["wide"]
    assert reason(cycle, "small").endswith("What is reserved for others leaves no hosts to reserve.")


def test_two_that_share_what_one_run_leaves_need_no_second_victim() -> None:
    running = [run("b", gpus=8, name=f"free{n}", hosts={f"h{n}": 8}, klass="unallocated") for n in range(2)]
    cycle = decide([pending("w", "a", gpus=4), pending("v", "a", gpus=4, submitted_at_s=1)], running)
    assert [d.workload for d in cycle.decisions if d.action is Action.PREEMPT] == ["free0"]
    assert [(kept.workload, dict(kept.placement)) for kept in cycle.reservations] == [
        ("v", {"h0": 4000}), ("w", {"h0": 4000}),
    ]  # fmt: skip


def test_own_work_makes_room_even_behind_a_head() -> None:
    running = [
        run("b", gpus=8, name="first", hosts={"h0": 8}, priority=9),
        run("b", gpus=8, name="mine", hosts={"h1": 8}),
    ]
    queue = [pending("head", "a", gpus=8), pending("urgent", "b", gpus=8, priority=5)]
    cycle = run_cycle(cluster([account("a"), account("b")], queue, running, on=hosts(8, 8)), PolicyConfig())
    assert [(kept.workload, dict(kept.placement)) for kept in cycle.reservations] == [
        ("head", {"h0": 8000}), ("urgent", {"h1": 8000}),
    ]  # fmt: skip
    assert [d.workload for d in cycle.decisions if d.action is Action.PREEMPT] == ["mine"]
    assert reason(cycle, "mine") == (
        "Leaves for urgent of account b, which asks for 8 GPUs: of the same account, with priority 5 over 0."
    )


def test_unallocated_work_takes_nothing_from_anybody() -> None:
    running = [run("b", gpus=8, name=f"b{n}", hosts={f"h{n}": 8}, klass="unallocated") for n in range(2)]
    cycle = decide([pending("w", "a", gpus=4, hours=0), pending("v", "z", gpus=4, hours=8)], running)
    assert actions(cycle) == {"w": "wait", "v": "wait"}
    assert cycle.reservations == ()


def test_free_gpus_that_no_host_has_together_are_said_to_be_apart() -> None:
    running = [run("b", gpus=5, name=f"b{n}", hosts={f"h{n}": 5}) for n in range(2)]
    cycle = decide([pending("w", "a", gpus=4, hours=0)], running)
    assert reason(cycle, "w").endswith(
        "of the 4 GPUs asked for, the 6 free are reserved or on hosts that cannot hold them together."
    )


class Walked(Walk):
    """A walk that remembers for whom it decided alone."""

    def __init__(self, state: ClusterState) -> None:
        config = PolicyConfig()
        tree, yard = tree_of(state, state.pending, config), Yard(state, config.quantum_s)
        self.turns = turns_of(lines(tree, state.pending, config))
        super().__init__(self.turns, state, yard, Preemption(tree, state, yard, config), config)
        self.alone: list[str] = []

    def decide_one(self, turn: Turn) -> Decision | Shared:
        self.alone.append(turn.workload.workload)
        return super().decide_one(turn)


def test_after_a_start_those_who_found_no_room_are_told_what_is_free_then_and_are_not_decided_anew() -> None:
    asked = {"head": (8, 1), "w1": (8, 1), "long1": (2, 3), "short": (4, 1), "w2": (8, 1), "long2": (2, 3)}
    queue = [
        pending(name, "a", gpus=gpus, hours=hours, submitted_at_s=n)
        for n, (name, (gpus, hours)) in enumerate(asked.items())
    ]
    busy = run("b", gpus=3, name="busy", hosts={"h0": 3}, protected_until_s=AT_S + 2 * HOUR_S)
    walk = Walked(cluster(ACCOUNTS, queue, [busy], on=hosts(8)))
    decided = {decision.workload: decision for decision in walk.decide(walk.turns)}
    assert walk.alone == ["head", "w1", "long1", "short"]
    assert [decided[name].numbers["free_milli"] for name in ("w1", "w2")] == [5000, 1000]
    told = "head of account a is ahead, for which 3 GPUs are missing; both are of account a (ratio 0."
    assert decided["w1"].reason.startswith(f"Waits at place 2: {told}")
    assert decided["w2"].reason.startswith(f"Waits at place 5: {told}")
    assert decided["long1"].reason.startswith(
        "Waits at place 3: its 2 GPUs would fit, but are reserved for head"
    )
    assert decided["long2"].reason.startswith("Waits at place 6: head of account a is ahead")


def test_who_found_no_room_with_its_own_runs_keeps_the_next_of_its_account_from_looking() -> None:
    queue = [
        pending("head", "a", gpus=8, priority=9),
        *(pending(f"own{n}", "b", gpus=8, hours=n + 1, priority=5, submitted_at_s=n) for n in range(3)),
        pending("other", "a", gpus=8, priority=5),
        *(pending(f"urgent{n}", "b", gpus=8, priority=6, submitted_at_s=n) for n in range(2)),
    ]
    running = [
        run("b", gpus=4, name="mine", hosts={"h0": 4}),
        run("z", gpus=4, name="busy", hosts={"h0": 4}, protected_until_s=AT_S + 2 * HOUR_S),
    ]
    walk = Walked(cluster(ACCOUNTS, queue, running, on=hosts(8)))
    decided = {decision.workload: decision for decision in walk.decide(walk.turns)}
    assert all(decided[one.workload].action is Action.WAIT for one in queue)
    assert walk.alone == ["head", "other", "urgent0", "own0", "own1", "own2"]


def test_who_found_no_room_beside_a_reservation_is_decided_anew_once_that_is_given_up() -> None:
    queue = [
        pending(name, "a", gpus=gpus, hours=2, priority=priority)
        for name, gpus, priority in (("k1", 6, 3), ("k2", 6, 2), ("w", 4, 1), ("k3", 6, 0))
    ]
    kept = Reservation(workload="w", placement={"h0": 4000}, at_s=AT_S + HOUR_S, kind=ReservationKind.BOUND)
    busy = run("b", gpus=4, name="busy", hosts={"h1": 4}, protected_until_s=AT_S + 2 * HOUR_S)
    cycle = run_cycle(cluster(ACCOUNTS, queue, [busy], on=hosts(8, 8), reservations=[kept]), PolicyConfig())
    assert actions(cycle) == {"k1": "wait", "k2": "wait", "w": "start", "k3": "start"}
    assert cycle.reservations == ()


def two_classes(
    *,
    used: int,
    on: tuple[HostState, ...] = hosts(8, 8, 8, 8),
    eligible_at_s: int = 0,
    gpu_model: str | None = None,
) -> Cycle:
    """Two heads: small of a, which used a hundred, and wide of b; c holds all 32 GPUs for an hour."""
    accounts = [
        account("a", used=100, demand=4),
        account("b", used=used, demand=16),
        account("c", share=9),
    ]
    first = pending("small", "a", gpus=4, eligible_at_s=eligible_at_s)
    queue = [replace(first, gpu_model=gpu_model), pending("wide", "b", gpus=16, gpu_model="h100")]
    busy = [
        run("c", gpus=8, name=f"c{n}", hosts={host.host: 8}, protected_until_s=AT_S + HOUR_S)
        for n, host in enumerate(on)
    ]
    return run_cycle(cluster(accounts, queue, busy, on=on), PolicyConfig())


def test_the_head_of_a_class_gets_no_reservation_while_one_waits_whom_it_exceeds() -> None:
    assert [kept.workload for kept in two_classes(used=100).reservations] == ["small", "wide"]
    cycle = two_classes(used=200)
    assert [kept.workload for kept in cycle.reservations] == ["small"]
    assert reason(cycle, "wide").endswith(
        "16 GPUs are missing. Nothing is reserved for it: b (ratio 0.390625) is further beyond its entitlement "
        "than a (ratio 0.195312), which waits, too."
    )


def test_who_comes_first_of_all_gets_its_reservation_whomever_it_exceeds() -> None:
    """What a has may not start yet."""
    cycle = two_classes(used=200, eligible_at_s=AT_S + 1)
    assert [kept.workload for kept in cycle.reservations] == ["wide"]


def test_of_those_whom_a_head_exceeds_it_is_told_of_the_one_that_is_least_far() -> None:
    accounts = [account("a", used=100), account("b", used=200), account("c", share=8), account("d", used=50)]
    queue = [pending("small", "a", gpus=4), pending("tiny", "d", gpus=1), pending("wide", "b", gpus=16)]
    busy = [
        run("c", gpus=8, name=f"c{n}", hosts={f"h{n}": 8}, protected_until_s=AT_S + HOUR_S) for n in range(4)
    ]
    cycle = run_cycle(cluster(accounts, queue, busy, on=hosts(8, 8, 8, 8)), PolicyConfig())
    assert reason(cycle, "wide").endswith("than d (ratio 0.097656), which waits, too.")


def test_who_waits_for_another_model_keeps_nobody_from_a_reservation() -> None:
    both = ["small", "wide"]
    for asked, reserved in (("h100", ["small"]), (None, ["small"]), ("h200", both)):
        other = HostState(host="other", gpus_milli=8000, gpu_model="h200")
        cycle = two_classes(used=200, on=(*hosts(8, 8, 8), other), gpu_model=asked)
        assert [kept.workload for kept in cycle.reservations] == reserved, asked


def test_for_whom_the_floor_counts_gets_the_reservation_of_its_class_whomever_it_exceeds() -> None:
    """Both run less than half of what they are entitled to, 5 GPUs and 16, and their gangs stay within."""
    accounts = [account("a", share=2, used=100), account("b", share=6, used=2000), account("c", share=4)]
    queue = [pending("small", "a", gpus=4), pending("wide", "b", gpus=16)]
    busy = [
        run("c", gpus=8, name=f"c{n}", hosts={f"h{n}": 8}, protected_until_s=AT_S + HOUR_S) for n in range(4)
    ]
    cycle = run_cycle(cluster(accounts, queue, busy, on=hosts(8, 8, 8, 8)), PolicyConfig())
    assert [decision.workload for decision in cycle.decisions] == ["small", "wide"]
    assert [kept.workload for kept in cycle.reservations] == ["small", "wide"]


def test_who_found_none_of_its_own_runs_in_the_way_looks_anew_once_a_reservation_is_given_up() -> None:
    """h0 is reserved for w, so that none of a's own work could stay there; w starts on h1, which takes no h100."""
    on = (*hosts(8), HostState(host="h1", gpus_milli=8000, gpu_model="h200"))
    queue = [
        pending("head", "c", gpus=8, gpu_model="h100"),
        pending("first", "a", gpus=8, gpu_model="h100", priority=5),
        pending("w", "b", gpus=8),
        pending("second", "a", gpus=8, gpu_model="h100", priority=5, submitted_at_s=1),
    ]
    accounts = [account("a", used=100), account("b", used=101), account("c", used=99)]
    kept = Reservation(workload="w", placement={"h0": 8000}, at_s=AT_S + HOUR_S, kind=ReservationKind.BOUND)
    mine = run("a", gpus=8, name="mine", hosts={"h0": 8})
    state = cluster(accounts, queue, [mine], on=on, reservations=[kept])
    cycle = run_cycle(state, PolicyConfig(floor_alpha_permille=1000))
    assert actions(cycle) == {
        "head": "wait",
        "first": "wait",
        "w": "start",
        "second": "wait",
        "mine": "preempt",
    }
    assert [kept.workload for kept in cycle.reservations] == ["second"]


def test_without_reservations_nobody_gets_a_date_and_who_has_one_keeps_it() -> None:
    state = cluster(
        [account("a"), account("b")],
        [pending("w", "a", gpus=8)],
        [run("b", gpus=8, name="busy", hosts={"h0": 8}, protected_until_s=AT_S + 5000)],
        on=hosts(8),
    )
    without = PolicyConfig(reservations="none")
    cycle = run_cycle(state, without)
    assert cycle.reservations == ()
    (decision,) = cycle.decisions
    assert decision.reason.endswith("Nobody gets a date: the policy makes no reservations.")
    (kept,) = run_cycle(state, PolicyConfig()).reservations
    assert run_cycle(replace(state, reservations=(kept,)), without).reservations == (kept,)


def test_without_reservations_the_first_of_the_queue_stops_nobodys_promise() -> None:
    running = [
        run("b", gpus=8, name="busy", hosts={"h0": 8}, protected_until_s=AT_S + 5000),
        run("b", gpus=4, name="free", hosts={"h1": 4}, klass="unallocated"),
        run("b", gpus=4, name="kept", hosts={"h1": 4}, protected_until_s=AT_S + 5000),
    ]
    state = cluster(
        [account("a"), account("b", used=900)],
        [pending("first", "a", gpus=16), pending("small", "a", gpus=4, submitted_at_s=1)],
        running,
        on=hosts(8, 8),
    )
    (promise,) = run_cycle(state, PolicyConfig(reservations="none")).reservations
    assert (promise.workload, promise.kind.value) == ("small", "promise")
