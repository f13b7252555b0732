"""KAI's objects, out of a cycle."""

from tests.unit.enforce.kubes import Object, patched, pod, pod_group, queue
from tests.unit.enforce.told import CYCLE, TREE, facts, leaves, record, run

from gpuledger.enforce.config import Kai
from gpuledger.enforce.kai import Seen, draft
from gpuledger.enforce.names import Reading
from gpuledger.enforce.plan import Draft, Eviction, Patch
from gpuledger.ledger.mapping import Rules

RULES = Reading(Rules(), "org", 0)
SET = {"quota": 6, "overQuotaWeight": 6, "limit": -1}


def wants(told: Draft) -> dict[str, tuple[str | None, str]]:
    return {target.key: (target.now, target.wanted) for target in told.targets if target.now != target.wanted}


def kai(*queues: Object, config: Kai | None = None) -> Draft:
    settings = config or Kai(managed=("*",))
    return draft(facts(record(allocations=TREE)), Seen(queues), settings, RULES)


def after(one: Object, told: Draft) -> Object:
    for target in told.targets:
        if target.now != target.wanted:
            assert isinstance(target.action, Patch)
            found = patched(one, [dict(operation) for operation in target.action.operations])
            assert found is not None
            one = found
    return one


def test_quota_and_weight_are_what_is_issued_and_the_mapping_says_to_whom() -> None:
    one = queue("a", {"quota": 2, "overQuotaWeight": 1.5, "limit": -1}, parentQueue="org")
    told = kai(one)
    assert wants(told) == {"Queue a: gpu.quota": ("2", "6"), "Queue a: gpu.overQuotaWeight": ("1.5", "6")}
    done = after(one, told)
    assert done["spec"] == {"parentQueue": "org", "resources": {"gpu": SET}}
    assert wants(kai(done)) == {}


def test_parts_of_a_gpu_are_nobodys_quota_and_weigh_all_the_same() -> None:
    assert wants(kai(queue("b", {"quota": 10.0, "overQuotaWeight": 11, "limit": 8}))) == {}


def test_a_share_of_0_weighs_nothing() -> None:
    told = kai(queue("c", {"quota": 1, "overQuotaWeight": 1, "limit": -1}))
    assert wants(told) == {"Queue c: gpu.quota": ("1", "0"), "Queue c: gpu.overQuotaWeight": ("1", "0")}


def test_a_queue_that_says_nothing_of_gpus_gets_all_at_once_and_no_limit_by_accident() -> None:
    told = kai(queue("a", None))
    assert wants(told) == {"Queue a: gpu": (None, "limit -1, overQuotaWeight 6, quota 6")}
    done = after(queue("a", None), told)
    assert done["spec"]["resources"] == {"gpu": SET}
    assert wants(kai(done)) == {}


def test_limits_and_minimum_runtimes_are_set_when_they_are_asked_for() -> None:
    one = queue("a", SET, preemptMinRuntime="1h0m0s")
    told = kai(one, config=Kai(managed=("a",), limits=True, min_runtime_s=3600))
    assert wants(told) == {"Queue a: gpu.limit": ("-1", "6"), "Queue a: reclaimMinRuntime": (None, "3600s")}
    assert after(one, told)["spec"]["reclaimMinRuntime"] == "3600s"


def test_a_group_is_evicted_whole_when_all_of_it_may_leave() -> None:
    cycle = record(
        *(leaves("team/old", name) for name in ("uid-p0", "uid-p1")),
        leaves("team/half", "uid-h0"),
        leaves("team/young", "uid-y0"),
        leaves("team/elsewhere", "uid-e0"),
        allocations=TREE,
    )
    told = draft(
        facts(
            cycle,
            run("team/old", "uid-p0", protected_for_s=0),
            run("team/old", "uid-p1", protected_for_s=0),
            run("team/half", "uid-h0", protected_for_s=0),
            run("team/half", "uid-h1", protected_for_s=7),
            run("team/young", "uid-y0", protected_for_s=9),
            run("team/elsewhere", "uid-e0", protected_for_s=0),
        ),
        Seen(
            [queue("a", SET), queue("z", SET)],
            [pod_group("old", "a"), pod_group("half", "a"), pod_group("young", "a"), pod_group("elsewhere", "z")],
            [
                pod("p0", "old"), pod("p1", "old"), pod("p2", "old", node=None), pod("p3", "old", phase="Succeeded"),
                pod("p4", "old", deletionTimestamp="2026-11-30T12:00:00Z"), pod("h0", "half"), pod("e0", "elsewhere"),
            ],
        ),
        Kai(managed=("a",), preempt=True, quotas=False),
        RULES,
    )  # fmt: skip

    assert [target.action for target in told.targets] == [
        Eviction("team", "p0", "uid-p0"), Eviction("team", "p1", "uid-p1"),
    ]  # fmt: skip
    assert all(target.destructive for target in told.targets)
    assert told.targets[0].why == f"with PodGroup team/old, by {CYCLE}: Leaves for x."
    assert told.notes == (
        "PodGroup team/elsewhere: none of its pods runs in a queue that may be changed",
        "PodGroup team/half stays: its run uid-h1 is within its minimum runtime",
        "PodGroup team/young stays: it is within its minimum runtime for 9 s more",
    )
