"""The Kubernetes API as a small HTTP server that gives recorded answers."""

import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

Object = dict[str, Any]

PATHS = {
    "Node": "/api/v1/nodes",
    "Pod": "/api/v1/pods",
    "Workload": "/apis/kueue.x-k8s.io/v1beta2/workloads",
    "PodGroup": "/apis/scheduling.run.ai/v2alpha2/podgroups",
    "ResourceClaim": "/apis/resource.k8s.io/v1/resourceclaims",
    "ResourceSlice": "/apis/resource.k8s.io/v1/resourceslices",
}
CUT = 0
"""The status of an answer that ends before its end."""

GROUPS = {
    "kueue.x-k8s.io": ("v1beta1", "v1beta2"),
    "resource.k8s.io": ("v1", "v1beta1"),
    "scheduling.run.ai": ("v2alpha2",),
}
USUAL, CLAIMS = ("kueue.x-k8s.io", "scheduling.run.ai"), "resource.k8s.io"


class Recorded:
    """What a cluster answers: its objects, and what happened after each version.

    Args:
        groups: API groups beside the core that it serves.
    """

    def __init__(self, groups: tuple[str, ...] = USUAL) -> None:
        self.groups = groups
        self.version = 100
        self.objects: dict[str, dict[str, Object]] = {kind: {} for kind in PATHS}
        self.history: dict[str, list[tuple[int, str, Object]]] = {kind: [] for kind in PATHS}
        self.forgotten = 0
        """Versions before this one answer 410."""
        self.refuses: dict[str, int] = {}
        """Kind -> the status it answers with."""
        self.troubles: dict[str, list[int | None]] = {kind: [] for kind in PATHS}
        """Kind -> what its next answers are instead: a status, or None for a connection cut in the middle."""
        self.late: set[str] = set()
        """Kinds whose lists and watches have not come to what is there."""
        self.logins: list[str] = []
        """What clients sent to be let in."""
        self.page = 500
        self.asked: list[str] = []

    def happen(self, change: str, found: Object) -> None:
        """Let an object change."""
        self.version += 1
        kind = found["kind"]
        whole = found | {"metadata": found["metadata"] | {"resourceVersion": str(self.version)}}
        self.history[kind].append((self.version, change, whole))
        if change == "DELETED":
            del self.objects[kind][whole["metadata"]["name"]]
        else:
            self.objects[kind][whole["metadata"]["name"]] = whole

    def forget(self) -> None:
        """Forget what happened so far; only what is there now is known."""
        self.version += 10
        self.forgotten = self.version

    def answer(self, path: str, query: dict[str, str]) -> tuple[int, bytes]:
        """Return status and body."""
        self.asked.append(path)
        if path.rstrip("/") == "/apis":
            return 200, json.dumps(
                {"kind": "APIGroupList", "groups": [_group(name) for name in self.groups]}
            ).encode()
        kind = next((kind for kind, at in PATHS.items() if at == path), None)
        if kind is None:
            return self._one(path)
        if self.troubles[kind]:
            status = self.troubles[kind].pop(0)
            return (CUT, self._list(kind, 0)) if status is None else (status, b'{"kind": "Status"}')
        if kind in self.refuses:
            return self.refuses[kind], b'{"kind": "Status"}'
        if query.get("watch", "").lower() == "true":
            return 200, self._watch(kind, int(query["resourceVersion"]))
        return 200, self._list(kind, int(query.get("continue", "0")))

    def _one(self, path: str) -> tuple[int, bytes]:
        """Return the object of a path that ends in ``namespaces/NAMESPACE/PLURAL/NAME``."""
        base, _, rest = path.partition("/namespaces/")
        space, _, rest = rest.partition("/")
        plural, _, name = rest.partition("/")
        for kind, at in PATHS.items():
            found = self.objects[kind].get(name)
            if at == f"{base}/{plural}" and found and found["metadata"].get("namespace") == space:
                return self.refuses.get(kind, 200), json.dumps(found).encode()
        return 404, b"{}"

    def _list(self, kind: str, start: int) -> bytes:
        every: list[Object] = [
            {k: v for k, v in found.items() if k not in {"kind", "apiVersion"}}
            for found in self.objects[kind].values()
            if kind not in self.late
        ]
        metadata = {"resourceVersion": str(self.version)}
        if start + self.page < len(every):
            metadata["continue"] = str(start + self.page)
        return json.dumps(
            {"kind": f"{kind}List", "metadata": metadata, "items": every[start : start + self.page]}
        ).encode()

    def _watch(self, kind: str, since: int) -> bytes:
        if since < self.forgotten:
            gone = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old resource version"}
            return json.dumps({"type": "ERROR", "object": gone}).encode() + b"\n"
        lines = [{"type": change, "object": found} for at, change, found in self.history[kind] if at > since]
        lines = [] if kind in self.late else lines
        lines.append(
            {"type": "BOOKMARK", "object": {"kind": kind, "metadata": {"resourceVersion": str(self.version)}}}
        )
        return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def _group(name: str) -> Object:
    versions = [{"groupVersion": f"{name}/{version}", "version": version} for version in GROUPS[name]]
    return {"name": name, "versions": versions, "preferredVersion": versions[0]}


@contextmanager
def served(recorded: Recorded, folder: Path) -> Iterator[Path]:
    """Serve the answers on the loopback; yield a kubeconfig that says where."""
    with listening(recorded) as port:
        yield kubeconfig(folder, f"http://127.0.0.1:{port}")


@contextmanager
def listening(recorded: Recorded, tls: ssl.SSLContext | None = None) -> Iterator[int]:
    """Serve the answers on the loopback, over TLS if that is given; yield the port."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            recorded.logins.append(self.headers.get("Authorization", ""))
            parts = urlsplit(self.path)
            query = {key: values[0] for key, values in parse_qs(parts.query).items()}
            status, body = recorded.answer(parts.path, query)
            self.send_response(status or 200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body if status else body[: len(body) // 2])
            self.close_connection = status == CUT

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the server's own
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()


def kubeconfig(folder: Path, address: str) -> Path:
    """Write a kubeconfig for an address."""
    path = folder / "kubeconfig"
    named = {"name": "recorded"}
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "recorded",
        "clusters": [named | {"cluster": {"server": address}}],
        "users": [named | {"user": {}}],
        "contexts": [named | {"context": {"cluster": "recorded", "user": "recorded"}}],
    }
    path.write_text(json.dumps(content))
    return path
