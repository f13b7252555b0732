"""The official client against recorded answers of the API."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.unit.collect.recorded import Recorded, kubeconfig, served
from tests.unit.sources.kubernetes.building import bound, node, pod, pod_set, workload

from gpuledger.collect.kubernetes_api import RESOURCES, Gone, KubernetesApi, Resource
from gpuledger.kernel.errors import Refused, Unavailable

NODE, WORKLOAD, _, POD = RESOURCES


@pytest.fixture
def recorded() -> Recorded:
    recorded = Recorded()
    recorded.happen("ADDED", node("node-1"))
    recorded.happen("ADDED", workload("train", [pod_set("main", 1, 8)], None))
    for number in range(5):
        recorded.happen("ADDED", pod(f"p{number}", 1, bound("2026-10-31T20:05:00Z")))
    return recorded


@pytest.fixture
def api(recorded: Recorded, tmp_path: Path) -> Iterator[KubernetesApi]:
    with served(recorded, tmp_path) as config:
        yield KubernetesApi(config)


def test_the_kinds_that_a_cluster_has_are_found_with_their_version(
    api: KubernetesApi, recorded: Recorded
) -> None:
    assert [(resource.kind, version) for resource, version in api.resources()] == [
        ("Node", "v1"),
        ("Workload", "v1beta2"),
        ("PodGroup", "v2alpha2"),
        ("Pod", "v1"),
    ]
    recorded.groups = ()
    assert [resource.kind for resource, _ in api.resources()] == ["Node", "Pod"]


@pytest.mark.parametrize(
    ("resource", "version", "count"), [(NODE, "v1", 1), (WORKLOAD, "v1beta2", 1), (POD, "v1", 5)]
)
def test_a_list_holds_every_page_and_each_object_its_kind(
    api: KubernetesApi, recorded: Recorded, resource: Resource, version: str, count: int
) -> None:
    recorded.page = 2
    listing = api.list(resource, version)
    assert (len(listing.objects), listing.version) == (count, str(recorded.version))
    assert {json.loads(found)["kind"] for found in listing.objects} == {resource.kind}


def test_a_watch_says_what_happened_since(api: KubernetesApi, recorded: Recorded) -> None:
    since = str(recorded.version)
    recorded.happen("MODIFIED", pod("p1", 1, bound("2026-10-31T20:05:00Z", "Succeeded")))
    recorded.happen("DELETED", pod("p2", 1, None))
    changes = list(api.watch(POD, "v1", since, 1))
    assert [(change.change, change.version) for change in changes] == [
        ("MODIFIED", "108"),
        ("DELETED", "109"),
        ("BOOKMARK", "109"),
    ]
    assert json.loads(changes[0].object)["metadata"]["name"] == "p1"


def test_a_version_that_is_forgotten_is_gone(api: KubernetesApi, recorded: Recorded) -> None:
    recorded.forget()
    with pytest.raises(Gone, match="410"):
        list(api.watch(WORKLOAD, "v1beta2", "100", 1))


@pytest.mark.parametrize(
    ("status", "error"), [(403, Refused), (401, Refused), (404, Refused), (410, Gone), (500, Unavailable)]
)
def test_a_refusal_says_what_to_allow(
    api: KubernetesApi, recorded: Recorded, status: int, error: type[Exception]
) -> None:
    recorded.refuses["Pod"] = status
    with pytest.raises(error, match=f"pods: the Kubernetes API answered {status}"):
        api.list(POD, "v1")
    with pytest.raises(error, match=str(status)):
        list(api.watch(POD, "v1", "100", 1))


def test_an_api_that_nobody_answers_for_is_unavailable(tmp_path: Path) -> None:
    api = KubernetesApi(kubeconfig(tmp_path, "http://127.0.0.1:9"))
    with pytest.raises(Unavailable, match="cannot be reached"):
        api.list(POD, "v1")
    with pytest.raises(Unavailable, match="cannot be reached"):
        api.resources()


def test_a_cluster_that_nothing_names_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Refused, match="no Kubernetes cluster"):
        KubernetesApi(tmp_path / "nowhere")
    config = kubeconfig(tmp_path, "http://127.0.0.1:9")
    with pytest.raises(Refused, match="no Kubernetes cluster"):
        KubernetesApi(config, context="other")
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    monkeypatch.setattr("kubernetes.config.kube_config.KUBE_CONFIG_DEFAULT_LOCATION", str(tmp_path / "none"))
    with pytest.raises(Refused, match="no Kubernetes cluster"):
        KubernetesApi()
