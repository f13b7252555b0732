"""The Kubernetes API through its official client: objects listed, watched and changed. Nothing else imports it."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import msgspec
import urllib3
from kubernetes import client, config, watch

from gpuledger.kernel.errors import Conflict, GpuledgerError, Refused, Unavailable

PAGE = 500
JSON_PATCH = "application/json-patch+json"


@dataclass(frozen=True, slots=True)
class Resource:
    """A kind of objects and where the API has them.

    Args:
        kind: Their kind.
        plural: Their name in a path.
        group: Their API group; empty for the core.
        versions: Versions that can be read, the preferred one first.
        is_optional: Whether a collector does without it where it has no right to it.
    """

    kind: str
    plural: str
    group: str
    versions: tuple[str, ...]
    is_optional: bool = False


_CLAIMS = "resource.k8s.io", ("v1", "v1beta2", "v1beta1"), True

# Nodes, slices and claims before pods: they say what a part of a device is, and which devices a pod was given.
# Workloads before the pods that they stand for.
RESOURCES = (
    Resource("Node", "nodes", "", ("v1",)),
    Resource("ResourceSlice", "resourceslices", *_CLAIMS),
    Resource("ResourceClaim", "resourceclaims", *_CLAIMS),
    Resource("Workload", "workloads", "kueue.x-k8s.io", ("v1beta2", "v1beta1")),
    Resource("PodGroup", "podgroups", "scheduling.run.ai", ("v2alpha2",)),
    Resource("Pod", "pods", "", ("v1",)),
)


class Gone(GpuledgerError):  # noqa: N818
    """The API does not remember what happened since that version: everything must be listed again."""


class Listing(NamedTuple):
    """All objects of a kind at one moment.

    Args:
        objects: Each as JSON.
        version: The moment, to watch from.
    """

    objects: list[bytes]
    version: str


class Change(NamedTuple):
    """A word of a watch: an object changed, or (``BOOKMARK``) nothing did up to a version.

    Args:
        change: ``ADDED``, ``MODIFIED``, ``DELETED`` or ``BOOKMARK``.
        object: The object as JSON.
        version: How far the watch has come with it.
    """

    change: str
    object: bytes
    version: str


class Api(Protocol):
    """What a collector asks a cluster."""

    def resources(self) -> list[tuple[Resource, str]]:
        """Return the kinds that the cluster has, each with the version to read.

        Raises:
            Unavailable: When the API cannot be reached.
            Refused: When it does not let us.
        """
        ...

    def list(self, resource: Resource, version: str) -> Listing:
        """Return every object of a kind.

        Raises:
            Gone: When the list changed too much while it was read.
            Unavailable: When the API cannot be reached.
            Refused: When it does not let us.
        """
        ...

    def get(self, resource: Resource, version: str, namespace: str, name: str) -> bytes | None:
        """Return an object of a namespace as JSON; None when there is none.

        Raises:
            Unavailable: When the API cannot be reached.
            Refused: When it does not let us.
        """
        ...

    def watch(self, resource: Resource, version: str, since: str, timeout_s: int) -> Iterator[Change]:
        """Yield what changes after a moment, until the API has not more to say in that time.

        Raises:
            Gone: When the API does not remember that moment.
            Unavailable: When the API cannot be reached.
            Refused: When it does not let us.
        """
        ...


class _ListMeta(msgspec.Struct, rename="camel"):
    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")


class _List(msgspec.Struct):
    metadata: _ListMeta
    items: list[dict[str, Any]] | None = None


class KubernetesApi:
    """The API of one cluster.

    Args:
        kubeconfig: The file that says where it is; the usual places unless given, else the pod's own account.
        context: The context in that file; its current one unless given.

    Raises:
        Refused: When nothing says where the cluster is.
    """

    def __init__(self, kubeconfig: Path | None = None, context: str | None = None) -> None:
        settings = client.Configuration()
        try:
            _configure(settings, kubeconfig, context)
        except config.ConfigException as error:
            raise Refused(
                f"no Kubernetes cluster: {error}",
                hint="name a kubeconfig with --kubeconfig or KUBECONFIG, or run in a pod with a service account",
            ) from error
        settings.retries = 0  # who asks decides when to ask again
        self._client = client.ApiClient(settings)
        self._core, self._custom = client.CoreV1Api(self._client), client.CustomObjectsApi(self._client)

    def resources(self, wanted: Sequence[Resource] = RESOURCES) -> list[tuple[Resource, str]]:
        """Return which of the kinds the cluster has; see ``Api.resources``."""
        with _reported("the API groups"):
            groups = client.ApisApi(self._client).get_api_versions().groups
        served = {group.name: {version.version for version in group.versions} for group in groups}
        return [
            (resource, version)
            for resource in wanted
            for version in resource.versions[:1] * (not resource.group)
            or [v for v in resource.versions if v in served.get(resource.group, ())][:1]
        ]

    def list(self, resource: Resource, version: str) -> Listing:
        """Return every object of a kind; see ``Api.list``."""
        objects: list[bytes] = []
        token = ""
        while True:
            with _reported(resource.plural):
                answer = self._ask(resource, version, limit=PAGE, _continue=token or None).data
            try:
                page = msgspec.json.decode(answer, type=_List)
            except msgspec.DecodeError as error:
                raise Unavailable(f"{resource.plural}: the API's answer cannot be read: {error}") from error
            # Members of a list do not say their kind.
            objects += [msgspec.json.encode({"kind": resource.kind, **item}) for item in page.items or ()]
            token = page.metadata.continue_
            if not token:
                return Listing(objects, page.metadata.resource_version)

    def get(self, resource: Resource, version: str, namespace: str, name: str) -> bytes | None:
        """Return an object of a group; see ``Api.get``."""
        with _reported(resource.plural):
            try:
                found: bytes = self._custom.get_namespaced_custom_object(
                    resource.group, version, namespace, resource.plural, name, _preload_content=False
                ).data
            except client.ApiException as error:
                if error.status == HTTPStatus.NOT_FOUND:
                    return None
                raise
        return found

    def watch(self, resource: Resource, version: str, since: str, timeout_s: int) -> Iterator[Change]:
        """Yield what changes after a moment; see ``Api.watch``."""
        watcher = watch.Watch(return_type="object")

        def ask(**options: Any) -> Any:  # noqa: ANN401 - the client's own
            return self._ask(resource, version, **options)

        with _reported(resource.plural):
            events = watcher.stream(
                ask,
                resource_version=since,
                timeout_seconds=timeout_s,
                allow_watch_bookmarks=True,
                _request_timeout=(10, timeout_s + 10),
            )
            for event in events:
                if event is None:
                    continue
                found = event["raw_object"]
                moment = found.get("metadata", {}).get("resourceVersion", "")
                yield Change(event["type"], msgspec.json.encode({"kind": resource.kind, **found}), moment)

    def patch(
        self,
        resource: Resource,
        version: str,
        namespace: str,
        name: str,
        operations: Sequence[Mapping[str, Any]],
    ) -> None:
        """Change an object by a JSON patch, whole or not at all.

        Args:
            resource: Its kind.
            version: The version of its API.
            namespace: Its namespace; empty when it belongs to none.
            name: Its name.
            operations: RFC 6902.

        Raises:
            Conflict: When it is not as the patch tests, or changed meanwhile.
            Unavailable: When the API cannot be reached.
            Refused: When it does not let us.
        """
        of = (resource.group, version, resource.plural, name, [dict(operation) for operation in operations])
        with _reported(f"{resource.plural} {name}", "patch"):
            if namespace:
                group, _, plural, _, body = of
                self._custom.patch_namespaced_custom_object(
                    group, version, namespace, plural, name, body, _content_type=JSON_PATCH
                )
            else:
                self._custom.patch_cluster_custom_object(*of, _content_type=JSON_PATCH)

    def evict(self, namespace: str, name: str, uid: str) -> None:
        """Ask a pod to leave, with the grace that it asked for itself; disruption budgets are heeded.

        Raises:
            Conflict: When the pod is another one by now.
            Unavailable: When the API cannot be reached, or a disruption budget forbids it now.
            Refused: When the API does not let us, or there is no such pod.
        """
        body = client.V1Eviction(
            metadata=client.V1ObjectMeta(name=name, namespace=namespace),
            delete_options=client.V1DeleteOptions(preconditions=client.V1Preconditions(uid=uid)),
        )
        with _reported(f"pods {name}", "create pods/eviction"):
            self._core.create_namespaced_pod_eviction(name, namespace, body)

    def _ask(self, resource: Resource, version: str, **options: Any) -> Any:  # noqa: ANN401
        options["_preload_content"] = False
        if resource.group:
            return self._custom.list_cluster_custom_object(
                resource.group, version, resource.plural, **options
            )
        if resource.kind == "Node":
            return self._core.list_node(**options)
        return self._core.list_pod_for_all_namespaces(**options)


def _configure(settings: client.Configuration, kubeconfig: Path | None, context: str | None) -> None:
    try:
        config.load_kube_config(
            config_file=None if kubeconfig is None else str(kubeconfig),
            context=context,
            client_configuration=settings,
            persist_config=False,
        )
    except config.ConfigException:
        if kubeconfig is not None or context is not None:
            raise
        config.load_incluster_config(client_configuration=settings)


@contextmanager
def _reported(what: str, verbs: str = "get, list and watch") -> Iterator[None]:
    """Say what an error of the client means for who asks."""
    try:
        yield
    except client.ApiException as error:
        said = f"{what}: the Kubernetes API answered {error.status} {error.reason}"
        if error.status == HTTPStatus.GONE:
            raise Gone(said) from error
        if error.status in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND}:
            docs = "docs/sources/kubernetes.md" if "list" in verbs else "docs/enforcing.md"
            raise Refused(said, hint=f"let the account {verbs} {what}: {docs}") from error
        if "list" not in verbs and (error.status == HTTPStatus.BAD_REQUEST or _is_invalid(error)):
            raise Refused(
                f"{said}: {str(error.body)[:300]}", hint=f"the API takes no such change of {what}"
            ) from error
        if error.status in {HTTPStatus.CONFLICT, HTTPStatus.UNPROCESSABLE_ENTITY}:
            raise Conflict(f"{said}: it changed meanwhile", hint="the next run looks at it again") from error
        raise Unavailable(said, hint="the next look goes on where this one stopped") from error
    except (urllib3.exceptions.HTTPError, OSError, ValueError) as error:
        raise Unavailable(f"{what}: the Kubernetes API cannot be reached: {error}") from error


def _is_invalid(error: client.ApiException) -> bool:
    """Tell whether a field's new value is refused; a test that fails has the same status, and passes the next time."""
    try:
        causes = msgspec.json.decode(error.body or "{}").get("details", {}).get("causes") or ()
        return any(str(cause.get("reason", "")).startswith("FieldValue") for cause in causes)
    except (msgspec.DecodeError, AttributeError):
        return False
