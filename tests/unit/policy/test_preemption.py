"""Who leaves for whom, in which order, and how few."""

from collections.abc import Iterable
from typing import Any

import pytest
from tests.unit.policy.forests import AT_S, account, cluster, hosts, pending, run

from gpuledger.policy import preemption
from gpuledger.policy.cycle import (
    AccountState,
    HostState,
    PendingWorkload,
    PolicyConfig,
    RunningRun,
    run_cycle,
)
from gpuledger.policy.fair_share import Turn, order_workloads
from gpuledger.policy.preemption import Preemption
from gpuledger.policy.tree import Capacity, build_tree
from gpuledger.policy.victims import Ground
from gpuledger.policy.yard import Yard

WEEK_OF_8 = 8 * 168


class Scene:
    """A preemption before anything is decided; ``askers`` in their order."""

    def __init__(
        self,
        accounts: Iterable[AccountState],
        askers: Iterable[PendingWorkload],
        running: Iterable[RunningRun],
        *,
        on: tuple[HostState, ...],
        **knobs: Any,  # noqa: ANN401 - knobs
    ) -> None:
        config = PolicyConfig(floor_alpha_permille=knobs.pop("alpha", 1000), **knobs)
        state = cluster(accounts, askers, running, on=on)
        capacity = Capacity(
            healthy_milli=state.healthy_milli,
            window_gpu_ms=state.capacity_window_gpu_ms,
            ahead_gpu_ms=state.healthy_milli * config.protection_cap_s,
        )
        busy: dict[str, int] = {}
        for going in state.running:
            if going.klass == "allocated":
                busy[going.account] = busy.get(going.account, 0) + going.gpus_milli
        tree = build_tree(state.accounts, capacity, running_milli=busy)
        self.turns = {turn.workload.workload: turn for turn in order_workloads(tree, state.pending, config)}
        self.yard = Yard(state, config.quantum_s)
        self.preemption = Preemption(tree, state, self.yard, config)

    def turn(self, asker: str) -> Turn:
        return self.turns[asker]

    def victims(self, asker: str, *, only_own: bool = False) -> list[tuple[str, str]] | None:
        found = self.preemption.find(self.turn(asker), only_own=only_own)
        return None if found is None else [(v.run.workload, v.ground.value) for v in found]


def test_unallocated_runs_leave_first_of_who_used_most_per_share_and_lose_least() -> None:
    accounts = [
        account("a", share=4),
        account("b", share=2, used=9999, unallocated_gpu_ms=3),
        account("c", unallocated_gpu_ms=2),
    ]
    running = [
        run("b", gpus=8, name="paid", hosts={"h0": 8}),
        run("b", gpus=8, name="b", hosts={"h1": 8}, klass="unallocated"),
        run("c", gpus=8, name="c-long", hosts={"h2": 8}, klass="unallocated"),
        run("c", gpus=8, name="c-saved", hosts={"h3": 8}, klass="unallocated", checkpointed_at_s=AT_S - 1),
    ]
    for gangs, expected in ((1, ["c-saved"]), (2, ["c-saved", "c-long"]), (3, ["c-saved", "c-long", "b"]),
                            (4, ["c-saved", "c-long", "b", "paid"])):  # fmt: skip
        scene = Scene(accounts, [pending("w", "a", gpus=8 * gangs)], running, on=hosts(8, 8, 8, 8))
        assert [name for name, _ in scene.victims("w") or []] == expected


def test_of_all_who_exceed_the_asker_the_run_that_loses_least_leaves_first() -> None:
    accounts = [account("a"), account("b", used=900), account("c", used=700)]
    running = [
        run("b", gpus=8, name="b", hosts={"h0": 8}, checkpointed_at_s=AT_S - 700),
        run("c", gpus=8, name="c", hosts={"h1": 8}, checkpointed_at_s=AT_S - 60),
    ]
    for victims, expected in (("least-work", "c"), ("most-used", "b")):
        scene = Scene(accounts, [pending("w", "a", gpus=8)], running, on=hosts(8, 8), victims=victims)
        assert scene.victims("w") == [(expected, "ratio")]


def test_a_wide_run_stays_while_smaller_ones_would_do() -> None:
    accounts = [account("a"), account("b", used=900)]
    wide = run("b", gpus=16, name="wide", hosts={"h0": 8, "h1": 8}, checkpointed_at_s=AT_S)
    small = run("b", gpus=2, name="small", hosts={"h2": 2}, checkpointed_at_s=AT_S - 3600)
    other = run("b", gpus=6, name="other", hosts={"h2": 6}, protected_until_s=AT_S + 1)
    for victims, expected in (("least-work", "small"), ("most-used", "wide")):
        scene = Scene(
            accounts, [pending("w", "a", gpus=2)], [wide, small, other], on=hosts(8, 8, 8), victims=victims
        )
        assert scene.victims("w") == [(expected, "ratio")]


def test_runs_within_protection_or_quantum_stay() -> None:
    accounts = [account("a"), account("b", used=9999)]
    for fresh in (
        {"protected_until_s": AT_S + 1},
        {"protected_until_s": AT_S - 5, "started_at_s": AT_S - 899},
    ):
        scene = Scene(
            accounts, [pending("w", "a", gpus=8)], [run("b", gpus=8, hosts={"h0": 8}, **fresh)], on=hosts(8)
        )
        assert scene.victims("w") is None
    past = run("b", gpus=8, name="past", hosts={"h0": 8}, started_at_s=AT_S - 900, protected_until_s=AT_S)
    assert Scene(accounts, [pending("w", "a", gpus=8)], [past], on=hosts(8)).victims("w") == [
        ("past", "ratio")
    ]


def test_the_other_exceeds_by_more_than_delta() -> None:
    # 8 GPUs x 176 h x 1/2 = 704 GPU-hours: 71 is 0.1009 and 107 is 0.1520 of it.
    for used, delta, leaves in ((107, 50, True), (106, 50, False), (71, 0, False), (72, 0, True)):
        accounts = [account("a", used=71), account("b", used=used)]
        running = [run("b", gpus=8, name="b", hosts={"h0": 8})]
        scene = Scene(accounts, [pending("w", "a", gpus=8)], running, on=hosts(8), hysteresis_permille=delta)
        assert (scene.victims("w") is not None) == leaves, (used, delta)


def test_an_account_without_a_share_is_beyond_everybody() -> None:
    accounts = [account("a", used=9999), account("z", share=0)]
    scene = Scene(accounts, [pending("w", "a")], [run("z", gpus=8, name="z", hosts={"h0": 8})], on=hosts(8))
    assert scene.victims("w") == [("z", "ratio")]


def test_own_work_of_lower_priority_makes_room_when_nobody_else_does() -> None:
    running = [
        run("a", gpus=4, name="low", hosts={"h0": 4}, priority=1),
        run("a", gpus=4, name="lowest", hosts={"h0": 4}, priority=-1),
        run("b", gpus=8, name="b", hosts={"h1": 8}, protected_until_s=AT_S + 1),
    ]
    for priority, gpus, expected in (
        (1, 4, [("lowest", "own")]),
        (1, 5, None),
        (2, 5, [("lowest", "own"), ("low", "own")]),
        (-1, 4, None),
    ):
        scene = Scene(
            [account("a"), account("b")],
            [pending("w", "a", gpus=gpus, priority=priority)],
            running,
            on=hosts(8, 8),
        )
        assert scene.victims("w") == expected


def test_behind_a_head_only_own_work_may_be_taken() -> None:
    running = [
        run("b", gpus=8, name="b", hosts={"h0": 8}, klass="unallocated"),
        run("a", gpus=8, name="mine", hosts={"h1": 8}),
    ]
    scene = Scene(
        [account("a"), account("b")], [pending("w", "a", gpus=8, priority=1)], running, on=hosts(8, 8)
    )
    assert scene.victims("w", only_own=True) == [("mine", "own")]


def test_nobody_leaves_when_it_does_not_make_the_gang_fit() -> None:
    running = [
        run("b", gpus=8, name="free", hosts={"h0": 8}, klass="unallocated"),
        run("b", gpus=8, name="kept", hosts={"h1": 8}, protected_until_s=AT_S + 1),
    ]
    scene = Scene([account("a"), account("b")], [pending("w", "a", gpus=16), pending("v", "a", gpus=8)], running,
                  on=hosts(8, 8))  # fmt: skip
    assert scene.victims("w") is None
    assert scene.yard.leaving == set()
    assert scene.victims("v") == [("free", "unallocated")]


def test_what_turns_out_not_to_be_needed_is_spared() -> None:
    """The first candidates are on hosts that do not get empty; the last alone is enough."""
    accounts = [account("a"), account("b", used=9999)]
    running = [
        run("b", gpus=1, name="u0", hosts={"h0": 1}, klass="unallocated"),
        run("b", gpus=7, name="p0", hosts={"h0": 7}, protected_until_s=AT_S + 1),
        run("b", gpus=8, name="p1", hosts={"h1": 8}),
    ]
    scene = Scene(accounts, [pending("w", "a", gpus=8)], running, on=hosts(8, 8))
    assert scene.victims("w") == [("p1", "ratio")]


def test_an_account_keeps_its_floor_at_every_level_of_its_path() -> None:
    accounts = [account("a", share=2), account("p/x", used=9999), account("p/y", used=9000)]
    running = [
        run("p/x", gpus=8, name="x0", hosts={"h0": 8}),
        run("p/x", gpus=8, name="x1", hosts={"h1": 8}),
        run("p/y", gpus=8, name="y0", hosts={"h2": 8}),
    ]
    # Of 24 GPUs p is entitled to 8 and each project to 4; with alpha 0 that is their floor, which keeps no run of 8 for
    # a project, but the last of them for p.
    for alpha, gpus, expected in (
        (0, 8, ["x0"]),
        (0, 16, ["x0", "x1"]),
        (0, 24, None),
        (1000, 24, ["x0", "x1", "y0"]),
    ):
        scene = Scene(accounts, [pending("w", "a", gpus=gpus)], running, on=hosts(8, 8, 8), alpha=alpha)
        found = scene.victims("w")
        assert (None if found is None else [name for name, _ in found]) == expected, (alpha, gpus)


def test_a_run_that_a_floor_refuses_beside_others_is_taken_in_their_place() -> None:
    accounts = [account("a"), account("b", used=9999), account("c")]
    safe = {"protected_until_s": AT_S + 1}
    running = [
        run("b", gpus=2, name="small", hosts={"h0": 2}),
        run("c", gpus=6, name="stays", hosts={"h0": 6}),
        run("b", gpus=8, name="whole", hosts={"h1": 8}),
        run("b", gpus=7, name="safe", hosts={"h2": 7}, **safe),
    ]
    # Each is entitled to 8 of 24 GPUs; b runs 17 of them.
    scene = Scene(accounts, [pending("w", "a", gpus=8)], running, on=hosts(8, 8, 8), alpha=0)
    assert scene.victims("w") == [("whole", "ratio")]


def test_not_more_than_so_many_are_looked_at_in_other_orders(monkeypatch: pytest.MonkeyPatch) -> None:
    accounts = [account("a"), account("b", used=9999)]
    running = [
        run("b", gpus=3, name="three", hosts={"h0": 3}),
        run("b", gpus=4, name="four", hosts={"h0": 4}),
        run("b", gpus=5, name="safe", hosts={"h1": 5}, protected_until_s=AT_S + 1),
        run("a", gpus=3, name="mine", hosts={"h1": 3}, protected_until_s=AT_S + 1),
        run("a", gpus=1, name="mine too", hosts={"h0": 1}, protected_until_s=AT_S + 1),
    ]
    for looks_max, expected in ((preemption.LOOKS_MAX, [("four", "ratio")]), (0, None)):
        monkeypatch.setattr(preemption, "LOOKS_MAX", looks_max)
        scene = Scene(accounts, [pending("w", "a", gpus=4)], running, on=hosts(8, 8), alpha=0)
        assert scene.victims("w") == expected
        assert (scene.yard.leaving == set()) == (expected is None)


def test_a_try_that_floors_leave_in_vain_touches_no_host() -> None:
    """Each of b's runs would do with the other gone; its floor lets either go, but not both."""
    accounts = [account("a"), account("b", used=9999), account("c", used=9999)]
    running = [
        run("b", gpus=2, name="two", hosts={"h0": 2}),
        run("b", gpus=3, name="three", hosts={"h0": 3}),
        run("a", gpus=3, name="mine", hosts={"h0": 3}, protected_until_s=AT_S + 1),
        run("c", gpus=8, name="safe", hosts={"h1": 8}, protected_until_s=AT_S + 1),
    ]
    scene = Scene(accounts, [pending("w", "a", gpus=5)], running, on=hosts(8, 8), alpha=500)
    before = scene.yard.version
    assert scene.victims("w") is None
    assert (scene.yard.version, scene.yard.leaving) == (before, set())


def test_where_credits_divide_who_runs_less_than_it_is_issued_takes_from_who_runs_more() -> None:
    """Of 16 GPUs each is issued 8, and a has used more. Once a's eight run, ratios decide, and they are against it."""
    accounts = [account("a", used=300, demand=16), account("b", used=100, demand=16)]
    why = "a runs less than it is issued, b runs more, and the minimum runtime of the run is over."
    past = [run("b", gpus=8, name=f"b{n}", hosts={f"h{n}": 8}) for n in range(2)]
    mine = run("a", gpus=8, name="mine", hosts={"h0": 8}, protected_until_s=AT_S + 1)
    for division, running, leaves in (
        ("credits", past, ["b0"]),
        ("credits", [mine, past[1]], []),
        ("deficit", past, []),
    ):
        state = cluster(accounts, [pending("w", "a", gpus=8)], running, on=hosts(8, 8))
        cycle = run_cycle(state, PolicyConfig(division=division))
        told = {decision.workload: decision.reason for decision in cycle.decisions if decision.run}
        assert list(told) == leaves
        assert all(reason.endswith(f": {why}") for reason in told.values())


def test_between_two_accounts_gpus_move_one_way() -> None:
    accounts = [account("a"), account("b")]
    running = [
        run("a", gpus=8, name="a", hosts={"h0": 8}, klass="unallocated"),
        run("b", gpus=8, name="b", hosts={"h1": 8}, klass="unallocated"),
        run("b", gpus=8, name="b2", hosts={"h2": 8}, klass="unallocated"),
    ]
    for taken, found in (
        ([], [("a", "unallocated"), ("b", "unallocated"), ("b2", "unallocated")]),
        ([("wa", {"h1": 8000})], None),
    ):
        scene = Scene(
            accounts, [pending("wa", "a", gpus=8), pending("wb", "b", gpus=24)], running, on=hosts(8, 8, 8)
        )
        for asker, there in taken:
            assert scene.preemption.clear(scene.turn(asker), there)
        assert scene.victims("wb") == found


def test_reservations_that_are_due_against_one_another_are_both_cleared() -> None:
    running = [run("a", gpus=8, name="a", hosts={"h0": 8}), run("b", gpus=8, name="b", hosts={"h1": 8})]
    scene = Scene(
        [account("a"), account("b")],
        [pending("wa", "a", gpus=8), pending("wb", "b", gpus=8)],
        running,
        on=hosts(8, 8),
    )
    cleared = [
        scene.preemption.clear(scene.turn(name), there)
        for name, there in (("wa", {"h1": 8000}), ("wb", {"h0": 8000}))
    ]
    assert [[victim.run.workload for victim in found or ()] for found in cleared] == [["b"], ["a"]]


def test_reserved_gpus_are_cleared_whatever_the_ratios_but_only_of_what_is_in_the_way() -> None:
    running = [
        run("b", gpus=3, name="small", hosts={"h0": 3}),
        run("b", gpus=5, name="large", hosts={"h0": 5}),
        run("b", gpus=8, name="elsewhere", hosts={"h1": 8}),
    ]
    scene = Scene(
        [account("a", used=9999), account("b")], [pending("w", "a", gpus=5)], running, on=hosts(8, 8)
    )
    assert scene.victims("w") is None
    cleared = scene.preemption.clear(scene.turn("w"), {"h0": 5000})
    assert cleared is not None
    assert [(victim.run.workload, victim.ground) for victim in cleared] == [("large", Ground.RESERVED)]
