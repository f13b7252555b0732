"""The official client against recorded answers of the API."""

import datetime as dt
import json
import ssl
import types
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.brokers.secured import Authority
from tests.unit.collect.recorded import CLAIMS, Recorded, kubeconfig, listening, served
from tests.unit.enforce.kubes import Kubernetes, queue, serving
from tests.unit.enforce.kubes import pod as kube_pod
from tests.unit.enforce.kubes import workload as kube_workload
from tests.unit.sources.kubernetes.building import bound, claim, node, pod, pod_set, workload

from gpuledger.collect.kubernetes_api import RESOURCES, Gone, KubernetesApi, Resource
from gpuledger.kernel.errors import Conflict, Refused, Unavailable

NODE, _, CLAIM, WORKLOAD, _, POD = RESOURCES


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
    recorded.groups = (CLAIMS,)
    assert [(resource.kind, version) for resource, version in api.resources()][1:3] == [
        ("ResourceSlice", "v1"),
        ("ResourceClaim", "v1"),
    ]
    recorded.groups = ()
    assert [resource.kind for resource, _ in api.resources()] == ["Node", "Pod"]


def test_one_object_is_asked_for_by_its_name(api: KubernetesApi, recorded: Recorded) -> None:
    recorded.happen("ADDED", claim("c", ["gpu-0"]))
    found = json.loads(api.get(CLAIM, "v1", "team-a", "c") or b"")
    assert found["status"]["allocation"]["devices"]["results"][0]["device"] == "gpu-0"
    assert api.get(CLAIM, "v1", "team-a", "other") is None
    recorded.refuses = {"ResourceClaim": 403}
    with pytest.raises(Refused, match="resourceclaims: the Kubernetes API answered 403"):
        api.get(CLAIM, "v1", "team-a", "c")


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
    ("status", "error"),
    [(403, Refused), (401, Refused), (404, Refused), (410, Gone), (429, Unavailable), (500, Unavailable)],
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


def test_a_connection_that_is_cut_in_the_middle_of_an_answer_can_be_tried_again(
    api: KubernetesApi, recorded: Recorded
) -> None:
    """Half a list is no list, and half a watch is told only as far as it came."""
    recorded.troubles["Pod"] = [None]
    with pytest.raises(Unavailable, match="cannot be reached"):
        api.list(POD, "v1")
    assert len(api.list(POD, "v1").objects) == 5
    recorded.troubles["Pod"] = [None]
    with pytest.raises(Unavailable, match="cannot be reached"):
        list(api.watch(POD, "v1", "100", 1))


@pytest.fixture
def account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that a pod is given: a token and who signs the API's certificate. Nothing else names a cluster."""
    folder = tmp_path / "serviceaccount"
    folder.mkdir()
    (folder / "token").write_text("first")
    monkeypatch.setattr("kubernetes.config.kube_config.KUBE_CONFIG_DEFAULT_LOCATION", str(tmp_path / "none"))
    monkeypatch.setattr("kubernetes.config.incluster_config.SERVICE_TOKEN_FILENAME", str(folder / "token"))
    monkeypatch.setattr("kubernetes.config.incluster_config.SERVICE_CERT_FILENAME", str(folder / "ca.crt"))
    return folder


def test_in_a_pod_its_own_account_says_where_the_cluster_is_and_who_asks(
    recorded: Recorded, account: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tokens of pods expire: the one in the file counts, read anew each minute."""
    authority = Authority.create(account / "ca.crt")
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(*authority.issue("api", tmp_path))
    with listening(recorded, tls) as port:
        monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
        monkeypatch.setenv("KUBERNETES_SERVICE_PORT", str(port))
        api = KubernetesApi()
        assert len(api.list(POD, "v1").objects) == 5
        (account / "token").write_text("second")
        later = types.SimpleNamespace(datetime=_Later, timedelta=dt.timedelta)
        monkeypatch.setattr("kubernetes.config.incluster_config.datetime", later)
        assert len(api.list(POD, "v1").objects) == 5
    assert [login.lower() for login in recorded.logins] == ["bearer first", "bearer second"]


class _Later(dt.datetime):
    """Two minutes after now."""

    @classmethod
    def now(cls, tz: dt.tzinfo | None = None) -> "_Later":
        return super().now(tz) + dt.timedelta(minutes=2)


def test_an_api_that_another_authority_vouches_for_is_not_talked_to(
    recorded: Recorded, account: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Authority.create(account / "ca.crt")
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(*Authority.create(tmp_path / "other.crt").issue("api", tmp_path))
    with listening(recorded, tls) as port:
        monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
        monkeypatch.setenv("KUBERNETES_SERVICE_PORT", str(port))
        with pytest.raises(Unavailable, match="certificate verify failed"):
            KubernetesApi().list(POD, "v1")
    assert recorded.logins == [], "it was never told the token"


def test_an_account_without_a_token_names_no_cluster(account: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    (account / "token").unlink()
    with pytest.raises(Refused, match="no Kubernetes cluster: Service token file does not exist"):
        KubernetesApi()


@pytest.fixture
def changing(tmp_path: Path) -> Iterator[tuple[KubernetesApi, Kubernetes]]:
    cluster = Kubernetes(queue("a", None), kube_workload("w", "a"), kube_pod("p", "g"))
    with serving(cluster, tmp_path) as config:
        yield KubernetesApi(config), cluster


QUEUE = Resource("Queue", "queues", "scheduling.run.ai", ("v2",))
SET = [{"op": "add", "path": "/spec/priority", "value": 7}]


def test_objects_with_and_without_a_namespace_are_patched(
    changing: tuple[KubernetesApi, Kubernetes],
) -> None:
    api, cluster = changing
    assert api.resources([QUEUE]) == [(QUEUE, "v2")]
    api.patch(QUEUE, "v2", "", "a", SET)
    api.patch(WORKLOAD, "v1beta2", "team", "w", SET)
    assert cluster.patches == [
        "/apis/scheduling.run.ai/v2/queues/a",
        "/apis/kueue.x-k8s.io/v1beta2/namespaces/team/workloads/w",
    ]
    assert cluster["Queue", "a"]["spec"]["priority"] == 7


def test_a_patch_whose_test_fails_is_a_conflict_and_changes_nothing(
    changing: tuple[KubernetesApi, Kubernetes],
) -> None:
    api, cluster = changing
    with pytest.raises(Conflict, match="it changed meanwhile"):
        api.patch(QUEUE, "v2", "", "a", [{"op": "test", "path": "/metadata/uid", "value": "other"}, *SET])
    assert "priority" not in cluster["Queue", "a"]["spec"]


def test_a_pod_is_evicted_if_it_is_the_one_that_was_meant(changing: tuple[KubernetesApi, Kubernetes]) -> None:
    api, cluster = changing
    api.evict("team", "p", "uid-p")
    assert cluster.evicted == ["p/uid-p"]


@pytest.mark.parametrize(
    ("status", "error", "said"),
    [
        (403, Refused, "answered 403"),
        (404, Refused, "answered 404"),
        (409, Conflict, "changed meanwhile"),
        (429, Unavailable, "answered 429"),
        (500, Unavailable, "answered 500"),
    ],
)
def test_what_a_change_is_refused_for_says_what_to_do(
    changing: tuple[KubernetesApi, Kubernetes], status: int, error: type[Exception], said: str
) -> None:
    api, cluster = changing
    cluster.refuses = {"a": status, "p": status}
    with pytest.raises(error, match=said):
        api.patch(QUEUE, "v2", "", "a", SET)
    with pytest.raises(error, match=said) as raised:
        api.evict("team", "p", "uid-p")
    if error is Refused:
        assert raised.value.hint == "let the account create pods/eviction pods p: docs/enforcing.md"  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("status", "cause", "error"),
    [
        (400, None, Refused),
        (422, "FieldValueInvalid", Refused),
        (422, "UnexpectedServerResponse", Conflict),
        (422, None, Conflict),
    ],
)
def test_a_value_that_no_api_would_take_is_refused_for_good_and_a_failed_test_is_not(
    changing: tuple[KubernetesApi, Kubernetes], status: int, cause: str | None, error: type[Exception]
) -> None:
    api, cluster = changing
    cluster.refuses = {"a": status}
    cluster.causes = [{"reason": cause, "field": "spec.priority"}] if cause else []
    with pytest.raises(error, match=f"answered {status}"):
        api.patch(QUEUE, "v2", "", "a", SET)
