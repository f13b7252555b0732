"""Lines of a watch stream -> facts: which object is read by whom."""

from collections.abc import Callable, Mapping
from contextlib import suppress

import msgspec

from gpuledger.kernel.errors import BadRecord
from gpuledger.sources.jobs import Teams
from gpuledger.sources.kubernetes.claims import Claims
from gpuledger.sources.kubernetes.naming import DEFAULT_CLUSTER, MADE
from gpuledger.sources.kubernetes.nodes import Nodes
from gpuledger.sources.kubernetes.podgroups import PodGroups
from gpuledger.sources.kubernetes.pods import QUEUE, Pods
from gpuledger.sources.kubernetes.reading import BOOKMARK, ERROR, Seen, unwrap
from gpuledger.sources.kubernetes.sharing import Shares
from gpuledger.sources.kubernetes.workloads import Workloads
from gpuledger.sources.pieces import Facts, Interpreter
from gpuledger.sources.protocol import ImportOptions
from gpuledger.sources.values import LocalTimes, Odd, cluster_name, shown

CONFIGURATION = frozenset(
    (
        "AdmissionCheck",
        "BindRequest",
        "ClusterQueue",
        "Cohort",
        "ConfigMap",
        "DeviceClass",
        "LocalQueue",
        "Namespace",
        "ProvisioningRequestConfig",
        "Queue",
        "ResourceClaimTemplate",
        "ResourceFlavor",
        "Topology",
        "WorkloadPriorityClass",
    )
)
"""Kinds that say how GPUs may be shared, not who held them; passed over."""

_FOLLOWED = "followed"
_CLAIMS, _KNOWN_CLAIMS = b'"resourceClaims"', "known_claims"

_Reader = Callable[[Seen], tuple[list[MADE], list[Odd]]]


class Watched(Interpreter):
    """Understands every kind that tells of GPUs, whichever of them a stream holds.

    Args:
        options: What the person who imports says; times carry their offset, a zone is not needed.
        context: What a fault of an earlier pass remembered, on a retry.
    """

    told_before = frozenset((_FOLLOWED,))

    def __init__(self, options: ImportOptions, context: Mapping[str, object] | None = None) -> None:
        super().__init__(options)
        LocalTimes(options.timezone)  # a zone that does not exist is still refused
        self.cluster = cluster_name(options.cluster or DEFAULT_CLUSTER)
        kind = (context or {}).get("kind")
        self.default_kind = kind if isinstance(kind, str) else ""
        self._teams = Teams(context)
        told = (context or {}).get(_FOLLOWED)
        followed = told if isinstance(told, str) else None
        self._workloads = Workloads(self.cluster, self._teams, followed)
        self._groups = PodGroups(self.cluster, self._teams, followed)
        self.standing = self._workloads.standing
        self.shares = Shares()
        forgotten = (context or {}).get(_KNOWN_CLAIMS)
        nodes = Nodes(self.cluster)
        claims = Claims(self.shares, forgotten if isinstance(forgotten, list) else ())
        self._pods = Pods(self.cluster, self._teams, nodes.device, self._workloads, self.shares, claims)
        if followed is not None:
            self._pods.follow(followed)
        self._readers: dict[str, _Reader] = {
            "Node": nodes.facts,
            "Pod": self._pods.facts,
            "PodGroup": self._groups.facts,
            "ResourceClaim": claims.claim,
            "ResourceSlice": claims.slice,
            "Workload": self._workloads.facts,
        }

    def translate(self, raw: bytes) -> Facts:
        """Return the facts of a line; none for bookmarks, configuration and objects without GPUs."""
        seen = unwrap(raw, self.default_kind)
        if seen.change == BOOKMARK:
            return (), ()
        if seen.change == ERROR:
            raise BadRecord(
                f"the watch ended with an error: {shown(bytes(seen.raw).decode('utf-8', 'replace'))}",
                code="watch-error",
                hint="what happened until the next state of each object is not in this stream",
            )
        reader = self._readers.get(seen.kind)
        if reader is None:
            if seen.kind in CONFIGURATION:
                return (), ()
            raise BadRecord(
                f"kind: {shown(seen.kind)} tells nothing about GPUs",
                code="unknown-kind",
                hint=f"kinds that are read: {', '.join(sorted(self._readers))}",
            )
        facts, oddities = reader(seen)
        return tuple(facts), oddities

    def unheard_claims(self, pod: bytes) -> list[tuple[str, str]]:
        """Return namespace and name of the claims of a bound Pod of which it was not heard what they were given."""
        return self._pods.unheard_claims(pod) if _CLAIMS in pod else []

    def follow(self, pod: str) -> None:
        """Take a Pod, ``namespace/name/uid``, for one that was told to have started: what it holds is not known."""
        self._pods.follow(pod)

    def remember(self, raw: bytes) -> dict[str, object]:
        """Return what a retry needs: the object's kind, the account of its team, whether it was told of before."""
        remembered: dict[str, object] = {"kind": self.default_kind} if self.default_kind else {}
        with suppress(*_UNREADABLE):
            seen = unwrap(raw, self.default_kind)
            meta = msgspec.json.decode(seen.raw, type=_Object).metadata
            team = (meta.labels or {}).get(QUEUE) or meta.namespace
            remembered |= self._teams.remember(self.cluster, team)
            if _CLAIMS in raw and (known := self._pods.known_claims(bytes(seen.raw))):
                remembered[_KNOWN_CLAIMS] = known
            names = msgspec.json.decode(seen.raw, type=_Names).metadata
            for reader, key in (
                (self._workloads, f"{meta.namespace}/{names.name}/{names.uid}"),
                (self._groups, names.uid),
                (self._pods, f"{meta.namespace}/{names.name}/{names.uid}"),
            ):
                if reader.follows(key):
                    remembered[_FOLLOWED] = key
        return remembered


_UNREADABLE = (BadRecord, msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class _Meta(msgspec.Struct):
    namespace: str = ""
    labels: dict[str, str] | None = None


class _Object(msgspec.Struct):
    metadata: _Meta


class _Named(msgspec.Struct):
    name: str = ""
    uid: str = ""


class _Names(msgspec.Struct):
    metadata: _Named
