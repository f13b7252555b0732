"""Kueue and KAI through the API: objects become a plan, and a plan becomes patches and evictions."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.integration.enforce.worlds import CALENDAR, World
from tests.unit.enforce.kubes import (
    Kubernetes,
    cluster_queue,
    cohort,
    pod,
    pod_group,
    queue,
    quota,
    serving,
    workload,
)
from tests.unit.enforce.told import allocation, leaves

from gpuledger.collect.kubernetes_api import KubernetesApi
from gpuledger.database.engine import make_engine
from gpuledger.enforce.applying import Outcome, enforce, look
from gpuledger.enforce.config import Kai, Kueue
from gpuledger.enforce.kubernetes_rim import Cluster, KaiQueues, KueueQueues
from gpuledger.enforce.memory import Memory
from gpuledger.enforce.plan import Command
from gpuledger.kernel.errors import Refused

OLD = "team/old/uid-old"
ALLOCATIONS = (
    allocation("org", 1_000_000, 12, 12), allocation("org/a", 250_000, 4, 8), allocation("org/b", 750_000, 8, 8),
)  # fmt: skip


@pytest.fixture
def kubernetes() -> Kubernetes:
    return Kubernetes(
        cluster_queue("a", "org/a", quota("8")),
        cluster_queue("b", "org/b", quota("8")),
        cohort("org", "org", quota("0")),
        cluster_queue("foreign", None, quota("1")),
        workload("old", "a"),
        queue("a", {"quota": 1, "overQuotaWeight": 1, "limit": -1}, "org/a"),
        pod_group("gang", "a"),
        pod("p0", "gang"),
        pod("p1", "gang"),
    )


@pytest.fixture
def cluster(database_url: str, kubernetes: Kubernetes, tmp_path: Path) -> Iterator[tuple[World, Cluster]]:
    world = World(make_engine(database_url), "kubernetes")
    with serving(kubernetes, tmp_path) as config:
        yield world, Cluster(world.engine, KubernetesApi(config), world.clock, CALENDAR)


def run(world: World, scheduler: Any, folder: Path) -> Outcome:  # noqa: ANN401
    return enforce(scheduler, Memory(folder, "k"), world.now_s)


def test_kueue_is_set_once_and_then_left_alone(
    cluster: tuple[World, Cluster], kubernetes: Kubernetes, tmp_path: Path
) -> None:
    world, api = cluster
    world.record(allocations=ALLOCATIONS)
    queues = KueueQueues(api, Kueue())
    foreign = kubernetes["ClusterQueue", "foreign"]

    assert run(world, queues, tmp_path).failed == []
    assert kubernetes["ClusterQueue", "a"]["spec"]["resourceGroups"] == [quota("4")]
    assert kubernetes["ClusterQueue", "a"]["spec"]["fairSharing"] == {"weight": "4"}
    assert kubernetes["Cohort", "org"]["spec"]["resourceGroups"] == [
        quota("3")
    ]  # 16 less 4, 8, and 1 kept by hand
    assert kubernetes["ClusterQueue", "foreign"] == foreign
    again = run(world, queues, tmp_path)
    assert (again.plan.changes, again.plan.drifts) == ((), ())

    kubernetes["ClusterQueue", "a"]["spec"]["fairSharing"] = {"weight": "99"}
    assert [drift.key for drift in look(queues, Memory(tmp_path, "k")).plan.drifts] == [
        "ClusterQueue a: fairSharing.weight"
    ]


def test_what_the_api_refuses_is_told_and_done_the_next_time(
    cluster: tuple[World, Cluster], kubernetes: Kubernetes, tmp_path: Path
) -> None:
    world, api = cluster
    world.record(allocations=ALLOCATIONS)
    queues = KueueQueues(api, Kueue(weights=False))
    kubernetes.refuses = {"a": 403}
    ((target, why),) = run(world, queues, tmp_path).failed
    assert (target.key, "answered 403" in why.message) == ("ClusterQueue a: nominalQuota", True)

    kubernetes.refuses = {"a": 409}
    assert "it changed meanwhile" in run(world, queues, tmp_path).failed[0][1].message
    kubernetes.refuses = {}
    assert [t.key for t in run(world, queues, tmp_path).done] == ["ClusterQueue a: nominalQuota"]


def test_a_workload_is_deactivated_after_its_minimum_runtime_and_comes_back(
    cluster: tuple[World, Cluster], kubernetes: Kubernetes, tmp_path: Path
) -> None:
    world, api = cluster
    queues = KueueQueues(api, Kueue(weights=False, quotas=False, preempt=True))
    world.submit(OLD, "org/a", 8, minimum_s=60)
    world.start(OLD, "1", 8, "h1")
    for passed_s, active in ((0, True), (59, True), (1, False)):
        world.pass_time(passed_s)
        world.record(leaves(OLD, "1"), allocations=ALLOCATIONS)
        run(world, queues, tmp_path)
        assert kubernetes["Workload", "old"]["spec"]["active"] is active

    kubernetes["Workload", "old"]["status"] = {}
    run(world, queues, tmp_path)
    assert kubernetes["Workload", "old"]["spec"]["active"] is True


def test_kai_is_set_and_a_gang_is_evicted_whole(
    cluster: tuple[World, Cluster], kubernetes: Kubernetes, tmp_path: Path
) -> None:
    world, api = cluster
    world.submit("team/gang", "org/a", 16, minimum_s=60)
    for place, name in enumerate(("uid-p0", "uid-p1"), start=1):
        world.start("team/gang", name, 8, f"h{place}", attempt=place)
    queues = KaiQueues(api, Kai(preempt=True, min_runtime_s=60))
    for passed_s, evicted in ((59, []), (1, ["p0/uid-p0", "p1/uid-p1"])):
        world.pass_time(passed_s)
        world.record(leaves("team/gang", "uid-p0"), leaves("team/gang", "uid-p1"), allocations=ALLOCATIONS)
        assert run(world, queues, tmp_path).failed == []
        assert kubernetes.evicted == evicted
    assert kubernetes["Queue", "a"]["spec"] == {
        "resources": {"gpu": {"quota": 4, "overQuotaWeight": 4, "limit": -1}},
        "preemptMinRuntime": "60s",
        "reclaimMinRuntime": "60s",
    }
    assert run(world, queues, tmp_path).plan.changes == ()


def test_a_cluster_without_kai_has_no_queues(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.unit.enforce.kubes.GROUPS", {})
    world = World(make_engine(database_url), "kubernetes")
    world.record(allocations=ALLOCATIONS)
    with serving(Kubernetes(), tmp_path) as config:
        api = Cluster(world.engine, KubernetesApi(config), world.clock, CALENDAR)
        assert run(world, KaiQueues(api, Kai(preempt=True)), tmp_path).plan.changes == ()
        with pytest.raises(Refused, match="Kubernetes takes patches"):
            api.act(Command(("scontrol",)))
