"""Kueue's objects, out of a cycle."""

from collections.abc import Sequence

from tests.unit.enforce.kubes import Object, cluster_queue, cohort, patched, quota, workload
from tests.unit.enforce.told import CYCLE, TREE, allocation, facts, leaves, record, run

from gpuledger.enforce.config import Kueue
from gpuledger.enforce.kueue import Seen, draft
from gpuledger.enforce.plan import Draft, Patch

A = cluster_queue("a", "org/a", quota("4"), fairSharing={"weight": "1"})
B = cluster_queue("b", "org/b", quota("10"))
B_IS_IDLE = "10.500 GPUs issued to accounts that no ClusterQueue serves are lent to nobody: org/b"


def wants(told: Draft) -> dict[str, tuple[str | None, str]]:
    return {target.key: (target.now, target.wanted) for target in told.targets if target.now != target.wanted}


def after(one: Object, told: Draft) -> Object:
    """Return an object when all that is wanted of it is done."""
    for target in told.targets:
        assert isinstance(target.action, Patch)
        if target.action.name == one["metadata"]["name"] and target.now != target.wanted:
            found = patched(one, [dict(operation) for operation in target.action.operations])
            assert found is not None
            one = found
    return one


def kueue(
    queues: Sequence[Object] = (), cohorts: Sequence[Object] = (), config: Kueue | None = None
) -> Draft:
    return draft(facts(record(allocations=TREE)), Seen(queues, cohorts), config or Kueue())


def test_weights_and_quotas_of_queues_are_what_is_issued_in_whole_gpus() -> None:
    told = kueue([A, B])
    assert wants(told) == {
        "ClusterQueue a: fairSharing.weight": ("1", "6"),
        "ClusterQueue a: nominalQuota": ("4", "6"),
        "ClusterQueue b: fairSharing.weight": (None, "10500m"),
    }
    done = after(A, told)
    assert done["spec"]["fairSharing"] == {"weight": "6"}
    assert done["spec"]["resourceGroups"] == [quota("6")]
    assert wants(kueue([done, after(B, told)])) == {}


def test_what_no_queue_serves_is_told_as_it_lies_idle() -> None:
    assert kueue([A, B]).notes == ()
    assert kueue([A]).notes == (B_IS_IDLE,)
    assert kueue([]).notes == ()
    assert kueue([A], config=Kueue(quotas=False)).notes == ()
    assert kueue([cluster_queue("all", "org", quota("4"))]).notes == ()
    many = (allocation("org", 1_000_000, 7, 7), *(allocation(f"org/t{n}", 1, 1, 1) for n in range(7)))
    told = draft(
        facts(record(allocations=many)), Seen([cluster_queue("t", "org/t0", quota("1"))], []), Kueue()
    )
    assert told.notes[0].endswith("nobody: org/t1, org/t2, org/t3, org/t4, org/t5 and 1 more")


def test_the_root_cohort_holds_what_is_issued_to_nobody_so_that_quotas_sum_to_the_supply() -> None:
    root = cohort("org", "org", quota("0"), fairSharing={"weight": "16"})
    told = kueue([A, B], [root])
    assert "Cohort org: nominalQuota" not in wants(told)  # 6 and 10 are the 16 there are

    some = (
        allocation("org", 1_000_000, 7, 7),
        allocation("org/a", 500_000, 7, 7),
        allocation("org/b", 500_000, 0, 0),
    )
    told = draft(facts(record(allocations=some)), Seen([A, B], [root]), Kueue())
    assert wants(told)["ClusterQueue a: nominalQuota"] == ("4", "7")
    assert wants(told)["ClusterQueue b: nominalQuota"] == ("10", "0")
    assert wants(told)["ClusterQueue b: fairSharing.weight"] == (None, "8")
    assert wants(told)["Cohort org: nominalQuota"] == ("0", "9")


def test_what_no_queue_was_given_is_the_quota_of_one_root_each() -> None:
    two = (
        allocation("org", 800_000, 6, 6), allocation("org/a", 1_000_000, 6, 6), allocation("lab", 200_000, 0, 0),
    )  # fmt: skip
    roots = [cohort("org", "org", quota("0")), cohort("lab", "lab", quota("0"))]
    told = wants(draft(facts(record(allocations=two)), Seen([A], roots), Kueue(weights=False)))
    quotas = {key: wanted for key, (_, wanted) in told.items()}
    assert quotas == {
        "ClusterQueue a: nominalQuota": "6", "Cohort org: nominalQuota": "8", "Cohort lab: nominalQuota": "2",
    }  # fmt: skip
    assert sum(map(int, quotas.values())) == 16


def some(*issued: tuple[str, int]) -> tuple[dict[str, object], ...]:
    return tuple(allocation(path, 500_000, gpus, gpus) for path, gpus in issued)


def cohort_gets(allocations: tuple[dict[str, object], ...], *queues: Object) -> str:
    root = cohort("org", "org", quota("99"))
    told = wants(draft(facts(record(allocations=allocations)), Seen(queues, [root]), Kueue(weights=False)))
    return told["Cohort org: nominalQuota"][1]


def test_what_is_issued_to_an_account_without_a_managed_queue_is_nobody_elses_to_borrow() -> None:
    issued = some(("org", 13), ("org/a", 6), ("org/b", 7))
    assert cohort_gets(issued, A, B) == "3"  # 16 are there, 13 are issued
    assert cohort_gets(issued, A) == "3"  # b has its 7 elsewhere
    by_hand = cluster_queue("b", None, quota("8"))
    assert cohort_gets(issued, A, by_hand) == "2"  # somebody gave b 8
    assert cohort_gets(issued, A, cluster_queue("b", None, quota("5"))) == "3"
    assert cohort_gets(issued, A, cluster_queue("b", None, quota("500"))) == "0"
    assert cohort_gets(issued, A, cluster_queue("b", None, quota("8", "other"))) == "2"


def test_of_two_queues_one_above_the_other_each_gpu_is_the_quota_of_one() -> None:
    above = cluster_queue("all", "org", quota("0"))
    issued = some(("org", 13), ("org/a", 6), ("org/b", 7))
    told = draft(facts(record(allocations=issued)), Seen([above, A], []), Kueue(weights=False))
    assert wants(told) == {
        "ClusterQueue all: nominalQuota": ("0", "7"), "ClusterQueue a: nominalQuota": ("4", "6"),
    }  # fmt: skip
    assert [t.why for t in told.targets if t.object == "ClusterQueue all"] == [
        "13 GPUs are issued to org; queues below it hold the others"
    ]
    assert cohort_gets(issued, above, A) == "3"


def test_an_inner_cohort_is_weighed_and_holds_no_quota_of_its_own() -> None:
    told = kueue(cohorts=[cohort("a", "org/a", quota("3"))])
    assert wants(told) == {"Cohort a: fairSharing.weight": (None, "6")}


def test_borrowing_and_lending_are_left_alone_unless_something_is_said() -> None:
    limited = cluster_queue(
        "a", "org/a", quota("6", borrowingLimit="2", lendingLimit="1"), fairSharing={"weight": 6}
    )
    assert wants(kueue([limited])) == {}

    told = kueue([limited], config=Kueue(borrow=True, lend=False))
    assert wants(told) == {
        "ClusterQueue a: borrowingLimit": ("2", ""), "ClusterQueue a: lendingLimit": ("1", "0"),
    }  # fmt: skip
    assert after(limited, told)["spec"]["resourceGroups"] == [quota("6", lendingLimit="0")]


def test_a_queue_in_no_cohort_neither_borrows_nor_lends() -> None:
    alone = cluster_queue("a", "org/a", quota("6"), fairSharing={"weight": "6"})
    del alone["spec"]["cohortName"]
    told = kueue([alone], config=Kueue(borrow=False))
    assert wants(told) == {}
    assert told.notes == ("ClusterQueue a: it is in no cohort, and can neither borrow nor lend", B_IS_IDLE)


def test_of_several_flavours_the_one_of_the_cluster_must_be_named() -> None:
    both = quota("1")
    both["flavors"].append(quota("2", "a100")["flavors"][0])
    two = cluster_queue("a", "org/a", both)
    assert "several flavours have nvidia.com/gpu" in kueue([two]).notes[0]
    assert "no flavour has nvidia.com/gpu" in kueue([cluster_queue("a", "org/a")]).notes[0]

    told = kueue([two], config=Kueue(flavors=("a100",), weights=False))
    assert wants(told) == {"ClusterQueue a: nominalQuota": ("2", "6")}
    assert after(two, told)["spec"]["resourceGroups"][0]["flavors"][0] == quota("1")["flavors"][0]


def test_a_flavour_that_moved_meanwhile_is_not_changed() -> None:
    (target,) = (t for t in kueue([A]).targets if t.field == "nominalQuota")
    moved = cluster_queue("a", "org/a", quota("4", "a100"))
    assert isinstance(target.action, Patch)
    assert patched(moved, [dict(operation) for operation in target.action.operations]) is None


def test_queues_without_a_mark_and_without_an_account_are_left_alone() -> None:
    told = kueue([cluster_queue("x", None, quota("1")), cluster_queue("y", "org/nobody", quota("1"))])
    assert told.targets == ()
    assert told.notes == (
        "ClusterQueue y: no account of the cycle is known by that name, so nothing is changed",
    )


def test_work_past_its_minimum_runtime_is_deactivated_and_waits_again_once_it_gave_its_gpus_back() -> None:
    old, young = workload("old", "a"), workload("young", "a")
    foreign = workload("foreign", "elsewhere")
    names = [f"team/{name}/uid-{name}" for name in ("old", "young", "foreign")]
    told = draft(
        facts(
            record(*(leaves(name, "1") for name in names), allocations=TREE),
            run(names[0], "1", protected_for_s=0),
            run(names[1], "1", protected_for_s=9),
            run(names[2], "1", protected_for_s=0),
        ),
        Seen([A], (), [old, young, foreign]),
        Kueue(preempt=True, weights=False, quotas=False),
    )
    (target,) = told.targets
    assert (target.key, target.wanted, target.destructive) == (
        "Workload team/old: spec.active",
        "false",
        True,
    )
    assert told.notes == (
        f"Workload {names[1]} stays: it is within its minimum runtime for 9 s more",
        f"Workload {names[2]}: it runs in no queue that may be changed",
    )
    left = after(old, told)
    assert left["spec"]["active"] is False
    assert left["metadata"]["annotations"] == {"gpuledger/left": CYCLE}

    def again(one: Object) -> Draft:
        return draft(
            facts(record(allocations=TREE)),
            Seen([A], (), [one]),
            Kueue(preempt=True, weights=False, quotas=False),
        )

    assert again(left).targets == ()  # it holds its quota still
    evicted = {**left, "status": {}}
    assert wants(again(evicted)) == {"Workload team/old: spec.active": ("false", "true")}
    back = after(evicted, again(evicted))
    assert (back["spec"]["active"], back["metadata"]["annotations"]) == (True, {})
    assert again(workload("stopped-by-hand", None, active=False)).targets == ()
