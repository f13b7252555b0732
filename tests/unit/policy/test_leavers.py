"""Who leaves first."""

from tests.unit.policy.forests import AT_S, forest, run

from gpuledger.policy.leavers import Leavers
from gpuledger.policy.ranking import Ranking
from gpuledger.policy.runs import Runs
from gpuledger.policy.state import PolicyConfig, RunningRun, WorkClass


def leavers(*running: RunningRun) -> Leavers:
    config = PolicyConfig()
    accounts = {
        "a": {"used": 10, "unallocated_gpu_ms": 1},
        "p": {"used": 0},
        "p/x": {"used": 30, "unallocated_gpu_ms": 2},
    }
    tree = forest(accounts, running={"p": 1})
    return Leavers(Runs(running, AT_S, config.quantum_s), Ranking(tree, config), AT_S)


def names(runs: list[RunningRun]) -> list[str]:
    return [one.workload for one in runs]


def test_of_an_account_who_loses_least_and_for_its_own_work_the_lowest_priority() -> None:
    saved = run("a", gpus=8, name="saved", checkpointed_at_s=AT_S - 1)
    small = run("a", gpus=1, name="small", priority=1)
    large = run("a", gpus=2, name="large")
    found = leavers(large, small, saved)
    assert names(found.takeable("a")) == ["saved", "small", "large"]
    assert names(found.own("a")) == ["saved", "large", "small"]
    assert sorted(one.workload for one in found.may_leave_for_own("a")) == ["large", "saved", "small"]
    assert found.least_priorities == {"a": 0}
    assert (found.least_priority("a"), found.least_priority("p/x")) == (0, None)


def test_of_several_the_account_that_is_furthest_beyond_its_share_or_paid_least() -> None:
    runs = [run(path, gpus=1, name=path) for path in ("a", "p", "p/x")]
    free = [run(path, gpus=1, name=f"free {path}", klass="unallocated") for path in ("a", "p/x")]
    found = leavers(*runs, *free)
    assert found.leaf == {"a": "a", "p": "p/~own", "p/x": "p/x"}
    assert found.leaves == ["p/~own", "p/x", "a"]  # its own work has no share there
    assert sorted(found.takeable_leaves) == ["a", "p/x", "p/~own"]
    assert names(found.takeable("p/~own")) == names(list(found.may_leave_for_others("p/~own"))) == ["p"]
    assert names(found.in_order(found.free)) == ["free p/x", "free a"]


ACCOUNTS = {
    "a": {"share": 2, "used": 10, "unallocated_gpu_ms": 10},
    "b": {"share": 1, "used": 900, "unallocated_gpu_ms": 90},
    "c": {"share": 1, "used": 500, "unallocated_gpu_ms": 60},
}


def saved(ago_s: int, account: str, klass: WorkClass = "allocated") -> RunningRun:
    """A run of one GPU that saved its work so long ago, after which it is called."""
    return run(account, gpus=1, name=f"{account}-{ago_s}", checkpointed_at_s=AT_S - ago_s, klass=klass)


def ranked(runs: list[RunningRun], victims: str) -> Leavers:
    ranking = Ranking(forest(ACCOUNTS), PolicyConfig())
    return Leavers(Runs(runs, AT_S, 900), ranking, AT_S, victims)


def test_of_unallocated_runs_those_of_who_used_more_than_its_part_come_first_and_of_them_who_loses_least() -> (
    None
):
    free = [saved(ago_s, path, "unallocated") for path, ago_s in (("a", 1), ("b", 6), ("c", 3), ("c", 8))]
    for victims, expected in (
        ("least-work", ["c-3", "b-6", "c-8", "a-1"]),
        ("most-used", ["b-6", "c-3", "c-8", "a-1"]),
    ):
        assert names(ranked(free, victims).in_order(free)) == expected


def test_whatever_the_ratios_runs_of_who_is_further_beyond_than_the_asker_come_first() -> None:
    runs = [saved(1, "a"), saved(9, "b"), saved(2, "c"), saved(5, "c")]
    for victims, expected in (
        ("least-work", ["b-9", "a-1", "c-2", "c-5"]),
        ("most-used", ["b-9", "c-2", "c-5", "a-1"]),
    ):
        found = ranked(runs, victims)
        assert names(found.past_safety("c")) == expected
        assert names(sorted(runs, key=lambda one: (found.rank_for("c")(one), one.workload))) == expected


def test_of_equal_losses_whose_account_is_furthest_beyond_comes_first() -> None:
    equal = [saved(1, path) for path in "abc"]
    found = ranked(equal, "least-work")
    assert names(sorted(equal, key=found.least_loss_first)) == ["b-1", "c-1", "a-1"]


def test_nobody_leaves_where_nobody_may() -> None:
    found = leavers(run("a", gpus=1, protected_until_s=AT_S + 1))
    assert (found.leaves, found.in_order(found.free), found.takeable("a"), found.own("a")) == ([], [], [], [])
    assert found.least_priorities == {}
