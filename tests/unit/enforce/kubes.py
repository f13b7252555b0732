"""Objects of Kueue and KAI as the API prints them, and an API that takes patches; made for tests."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.unit.collect.recorded import kubeconfig

Object = dict[str, Any]

GROUPS = {"kueue.x-k8s.io": ("v1beta2",), "scheduling.run.ai": ("v2", "v2alpha2")}


def meta(name: str, account: str | None = None, **more: Any) -> Object:  # noqa: ANN401
    """Return metadata; with an account it carries our mark."""
    marks: Object = {}
    if account is not None:
        marks = {"labels": {"gpuledger/enforce": "true"}, "annotations": {"gpuledger/account": account}}
    return {"name": name, "uid": f"uid-{name}", **marks, **more}


def quota(nominal: str, flavor: str = "h100", **limits: str) -> Object:
    """Return a resource group of one flavour, CPUs beside GPUs."""
    resources = [
        {"name": "cpu", "nominalQuota": "900"}, {"name": "nvidia.com/gpu", "nominalQuota": nominal, **limits},
    ]  # fmt: skip
    return {
        "coveredResources": ["cpu", "nvidia.com/gpu"], "flavors": [{"name": flavor, "resources": resources}],
    }  # fmt: skip


def cluster_queue(name: str, account: str | None, *groups: Object, **spec: Any) -> Object:  # noqa: ANN401
    return {
        "kind": "ClusterQueue", "metadata": meta(name, account),
        "spec": {"cohortName": "org", "resourceGroups": list(groups), **spec},
    }  # fmt: skip


def cohort(name: str, account: str, *groups: Object, **spec: Any) -> Object:  # noqa: ANN401
    return {
        "kind": "Cohort",
        "metadata": meta(name, account),
        "spec": {"resourceGroups": list(groups), **spec},
    }


def workload(name: str, queue: str | None, *, active: bool = True, **annotations: str) -> Object:
    status = {} if queue is None else {"admission": {"clusterQueue": queue}}
    noted = (
        {"annotations": {key.replace("__", "/"): value for key, value in annotations.items()}}
        if annotations
        else {}
    )
    return {
        "kind": "Workload", "metadata": {**meta(name), "namespace": "team", **noted},
        "spec": {"active": active}, "status": status,
    }  # fmt: skip


def queue(name: str, gpu: Object | None, account: str | None = None, **spec: Any) -> Object:  # noqa: ANN401
    resources = {} if gpu is None else {"resources": {"gpu": gpu}}
    return {"kind": "Queue", "metadata": meta(name, account), "spec": {**resources, **spec}}


def pod_group(name: str, queue_name: str) -> Object:
    return {
        "kind": "PodGroup",
        "metadata": {**meta(name), "namespace": "team"},
        "spec": {"queue": queue_name},
    }


def pod(name: str, group: str, *, node: str | None = "n1", phase: str = "Running", **more: Any) -> Object:  # noqa: ANN401
    of_group = {"annotations": {"pod-group-name": group}}
    bound = {} if node is None else {"nodeName": node}
    return {
        "kind": "Pod", "metadata": {**meta(name), "namespace": "team", **of_group, **more}, "spec": bound,
        "status": {"phase": phase},
    }  # fmt: skip


def patched(found: Object, operations: list[Object]) -> Object | None:
    """Return an object after a JSON patch, or None when a test of it fails. Knows ``test``, ``add`` and ``remove``."""
    whole: Object = json.loads(json.dumps(found))
    for operation in operations:
        *way, last = [part.replace("~1", "/").replace("~0", "~") for part in operation["path"].split("/")[1:]]
        at: Any = whole
        for part in way:
            at = at[int(part)] if isinstance(at, list) else at[part]
        if operation["op"] == "test":
            if at[last] != operation["value"]:
                return None
        elif operation["op"] == "remove":
            del at[last]
        else:
            at[last] = operation["value"]
    return whole


class Kubernetes:
    """A cluster: its objects, and what it was asked to do.

    Args:
        objects: What it holds.
    """

    def __init__(self, *objects: Object) -> None:
        self.objects = {(one["kind"], one["metadata"]["name"]): one for one in objects}
        self.patches: list[str] = []
        self.evicted: list[str] = []
        self.refuses: dict[str, int] = {}
        """Name of an object -> the status that a change of it answers with."""
        self.causes: list[Object] = []
        """What a refusal says of single fields."""

    def __getitem__(self, key: tuple[str, str]) -> Object:
        return self.objects[key]

    def get(self, path: str) -> tuple[int, Object]:
        """Answer a GET."""
        if path.rstrip("/") == "/apis":
            groups = [
                {
                    "name": name,
                    "versions": [{"groupVersion": f"{name}/{v}", "version": v} for v in versions],
                    "preferredVersion": {"groupVersion": f"{name}/{versions[0]}", "version": versions[0]},
                }
                for name, versions in GROUPS.items()
            ]
            return 200, {"kind": "APIGroupList", "groups": groups}
        plural = path.rpartition("/")[2]
        items = [one for (kind, _), one in self.objects.items() if f"{kind.lower()}s" == plural]
        return 200, {"kind": "List", "metadata": {"resourceVersion": "1"}, "items": items}

    def change(self, path: str, body: Any) -> tuple[int, Object]:  # noqa: ANN401
        """Answer a PATCH, or a POST of an eviction."""
        parts = path.split("/")
        name = parts[-2] if parts[-1] == "eviction" else parts[-1]
        if name in self.refuses:
            status = {"kind": "Status", "code": self.refuses[name], "details": {"causes": self.causes}}
            return self.refuses[name], status
        if parts[-1] == "eviction":
            self.evicted.append(f"{name}/{body['deleteOptions']['preconditions']['uid']}")
            del self.objects["Pod", name]
            return 201, {"kind": "Status", "status": "Success"}
        kind = next(kind for kind, known in self.objects if known == name and f"{kind.lower()}s" == parts[-2])
        after = patched(self.objects[kind, name], body)
        if after is None:
            return 422, {"kind": "Status", "code": 422}
        self.patches.append(path)
        self.objects[kind, name] = after
        return 200, after


@contextmanager
def serving(cluster: Kubernetes, folder: Path) -> Iterator[Path]:
    """Serve a cluster on the loopback; yield a kubeconfig that says where."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(*cluster.get(urlsplit(self.path).path))

        def do_PATCH(self) -> None:
            assert self.headers["Content-Type"] == "application/json-patch+json"
            self._answer(*cluster.change(urlsplit(self.path).path, self._body()))

        def do_POST(self) -> None:
            self._answer(*cluster.change(urlsplit(self.path).path, self._body()))

        def _body(self) -> Any:  # noqa: ANN401
            return json.loads(self.rfile.read(int(self.headers["Content-Length"])))

        def _answer(self, status: int, document: Object) -> None:
            body = json.dumps(document).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the server's own
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield kubeconfig(folder, f"http://127.0.0.1:{server.server_port}")
    finally:
        server.shutdown()
        server.server_close()
