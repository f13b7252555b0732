"""Who is looked at, and who is passed over, by a walk that decides what a full one would."""

from tests.unit.policy.forests import AT_S, account, cluster, hosts, pending, run

from gpuledger.policy.blocks import Blocks, cut
from gpuledger.policy.cycle import ClusterState, PendingWorkload, PolicyConfig, RunningRun, tree_of
from gpuledger.policy.decisions import Walk
from gpuledger.policy.fair_share import lines
from gpuledger.policy.lines import Line
from gpuledger.policy.preemption import Preemption
from gpuledger.policy.sparse import SparseWalk, Unfunded, walk_sparsely
from gpuledger.policy.yard import Yard

CONFIG = PolicyConfig()


class Counting(Walk):
    """A walk that remembers at whom it looked."""

    def __init__(self, state: ClusterState) -> None:
        self.tree = tree_of(state, state.pending, CONFIG)
        yard = Yard(state, CONFIG.quantum_s)
        self.preemption = Preemption(self.tree, state, yard, CONFIG)
        super().__init__((), state, yard, self.preemption, CONFIG)
        self.looked_at: list[str] = []

    def decide_one(self, turn):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201 - as its parent's
        self.looked_at.append(turn.workload.workload)
        return super().decide_one(turn)


def walked(
    queue: list[PendingWorkload], running: list[RunningRun], *sizes: int
) -> tuple[list[str], list[str]]:
    """Return at whom a walk looks, and who is decided."""
    state = cluster([account("a"), account("b")], queue, running, on=hosts(*sizes))
    walk = Counting(state)
    blocks = cut(lines(walk.tree, queue, CONFIG)["allocated"])
    sparse = SparseWalk(walk, blocks, 0, [], walk.preemption.least_of_own())
    return walk.looked_at, [decision.workload for decision in sparse.decide()]


def busy(n: int, path: str = "b", **more: int) -> RunningRun:
    return run(path, gpus=8, name=f"busy{n}", hosts={f"h{n}": 8}, protected_until_s=AT_S + 3600, **more)


def test_of_those_who_ask_for_the_same_all_behind_the_head_are_passed_over() -> None:
    queue = [pending(f"w{n}", "a", gpus=8, submitted_at_s=n) for n in range(9)]
    looked_at, decided = walked(queue, [busy(0)], 8)
    assert looked_at == decided == ["w0"]


def test_while_they_start_everybody_is_looked_at() -> None:
    queue = [pending(f"w{n}", "a", gpus=2, submitted_at_s=n) for n in range(9)]
    looked_at, decided = walked(queue, [busy(0)], 8, 8)
    assert looked_at == decided == ["w0", "w1", "w2", "w3", "w4"]


def test_who_asks_for_something_else_behind_a_head_is_looked_at_where_it_fits() -> None:
    queue = [
        *(pending(f"w{n}", "a", gpus=8, submitted_at_s=n) for n in range(4)),
        *(pending(f"v{n}", "a", gpus=8, submitted_at_s=9 + n, hours=2) for n in range(4)),
        *(pending(f"u{n}", "a", gpus=1, submitted_at_s=19 + n) for n in range(4)),
    ]
    looked_at, decided = walked(queue, [busy(0)], 8)
    assert looked_at == decided == ["w0"]
    small = run("b", gpus=6, name="small", hosts={"h1": 6}, protected_until_s=AT_S + 3600)
    looked_at, decided = walked(queue, [busy(0), small], 8, 8)
    assert looked_at == decided == ["w0", "u0", "u1"]


def test_where_runs_may_leave_for_their_own_accounts_work_the_first_of_each_priority_is_looked_at() -> None:
    own, kept = run("a", gpus=8, name="own", hosts={"h0": 8}), busy(1)
    queue = [
        pending(f"w{n}", "a", gpus=16, submitted_at_s=n, priority=priority)
        for n, priority in enumerate([2, 2, 2, 1, 1, 1, 0, 0])
    ]
    looked_at, _ = walked(queue, [own, kept], 8, 8)
    assert looked_at == ["w0", "w1", "w3"]
    looked_at, _ = walked(queue, [kept, busy(0)], 8, 8)
    assert looked_at == ["w0"]


def test_unallocated_work_is_put_in_order_where_some_of_it_has_room() -> None:
    queue = [pending("free", "a", gpus=4, hours=0), pending("wide", "b", gpus=8, hours=0)]
    for held, expected in ((6, []), (4, ["free"])):
        small = run("b", gpus=held, name="small", hosts={"h0": held}, protected_until_s=AT_S + 3600)
        state = cluster([account("a"), account("b")], queue, [small], on=hosts(8))
        tree, yard = tree_of(state, queue, CONFIG), Yard(state, CONFIG.quantum_s)
        both, ordered = lines(tree, queue, CONFIG), list[Blocks]()

        def made(line: Line = both["unallocated"], ordered: list[Blocks] = ordered) -> Blocks:
            ordered.append(cut(line))
            return ordered[-1]

        kinds = {work[-1] for work in both["unallocated"].entries}
        preemption = Preemption(tree, state, yard, CONFIG)
        _, decided = walk_sparsely(
            {"allocated": cut(both["allocated"]), "unallocated": Unfunded(kinds, made)},
            {"allocated": []},
            state,
            yard,
            preemption,
            CONFIG,
        )
        assert [decision.workload for decision in decided] == expected
        assert len(ordered) == len(expected)
