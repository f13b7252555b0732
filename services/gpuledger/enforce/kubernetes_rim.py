"""Kueue and KAI through the Kubernetes API: their objects as they are, and what is done to them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import msgspec
import sqlalchemy as sa

from gpuledger.collect.kubernetes_api import KubernetesApi, Resource
from gpuledger.database.engine import Reader, reading
from gpuledger.enforce import kai, kueue
from gpuledger.enforce.config import Common, Kai, Kueue
from gpuledger.enforce.facts import Facts
from gpuledger.enforce.names import Reading
from gpuledger.enforce.objects import Object
from gpuledger.enforce.plan import Action, Applied, Draft, Eviction, Patch
from gpuledger.enforce.reading import read_facts
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.clock import Clock, seconds
from gpuledger.kernel.errors import Refused
from gpuledger.ledger import queries

KUEUE_GROUP, KAI_GROUP = "kueue.x-k8s.io", "scheduling.run.ai"
CLUSTER = "kubernetes"
"""The cluster in the ledger unless the configuration names one: as ``collect kubernetes`` calls it."""

CLUSTER_QUEUES = Resource("ClusterQueue", "clusterqueues", KUEUE_GROUP, ("v1beta2", "v1beta1"))
COHORTS = Resource("Cohort", "cohorts", KUEUE_GROUP, ("v1beta2", "v1beta1", "v1alpha1"))
WORKLOADS = Resource("Workload", "workloads", KUEUE_GROUP, ("v1beta2", "v1beta1"))
QUEUES = Resource("Queue", "queues", KAI_GROUP, ("v2",))
POD_GROUPS = Resource("PodGroup", "podgroups", KAI_GROUP, ("v2alpha2",))
PODS = Resource("Pod", "pods", "", ("v1",))

Settings = TypeVar("Settings", bound=Common)


@dataclass(slots=True)
class Cluster:
    """A Kubernetes cluster as the enforcers of Kueue and KAI deal with it.

    Args:
        engine: The ledger.
        api: The cluster's API.
        clock: Says the present.
        calendar: The organisation's days before it has set its own.
        served: Kind -> the version to speak; found at the first look.
    """

    engine: sa.Engine
    api: KubernetesApi
    clock: Clock
    calendar: Calendar
    served: dict[str, tuple[Resource, str]] = field(default_factory=dict)

    def objects(self, resource: Resource) -> Sequence[Object]:
        """Return every object of a kind; none where the cluster does not have the kind.

        Raises:
            Unavailable: When the API cannot be reached.
            Refused: When it does not let us.
        """
        if resource.kind not in self.served:
            found = self.api.resources([resource])
            if not found:
                return ()
            self.served[resource.kind] = found[0]
        listing = self.api.list(*self.served[resource.kind])
        return [msgspec.json.decode(one) for one in listing.objects]

    def act(self, action: Action) -> None:
        """Carry out one change; see ``Scheduler.act``."""
        match action:
            case Patch(kind, namespace, name, operations):
                self.api.patch(*self.served[kind], namespace, name, operations)
            case Eviction(namespace, name, uid):
                self.api.evict(namespace, name, uid)
            case _:
                raise Refused(f"Kubernetes takes patches and evictions, not {action.shown}")

    def drafted(
        self, scheduler: str, config: Settings, draft: Callable[[Facts, Reader, str, Settings], Draft]
    ) -> tuple[str, Draft]:
        """Return the cycle and what is wanted, by one snapshot of the ledger."""
        cluster = config.cluster or CLUSTER
        with reading(self.engine) as reader:
            facts = read_facts(
                reader,
                cluster,
                seconds(self.clock.now()),
                scheduler=scheduler,
                calendar=self.calendar,
                stale_after_s=config.stale_after_s,
            )
            return facts.cycle, draft(facts, reader, cluster, config)


@dataclass(frozen=True, slots=True)
class KueueQueues:
    """Kueue in a cluster."""

    cluster: Cluster
    config: Kueue

    def draft(self, applied: Applied) -> tuple[str, Draft]:  # noqa: ARG002
        """Return the cycle and what is wanted; see ``Scheduler.draft``."""
        seen = kueue.Seen(
            self.cluster.objects(CLUSTER_QUEUES),
            self.cluster.objects(COHORTS),
            self.cluster.objects(WORKLOADS) if self.config.preempt else (),
        )
        return self.cluster.drafted(
            "kueue", self.config, lambda facts, _, __, config: kueue.draft(facts, seen, config)
        )

    def act(self, action: Action) -> None:
        """Carry out one change; see ``Scheduler.act``."""
        self.cluster.act(action)


@dataclass(frozen=True, slots=True)
class KaiQueues:
    """KAI in a cluster."""

    cluster: Cluster
    config: Kai

    def draft(self, applied: Applied) -> tuple[str, Draft]:  # noqa: ARG002
        """Return the cycle and what is wanted; see ``Scheduler.draft``."""
        seen = kai.Seen(
            self.cluster.objects(QUEUES),
            self.cluster.objects(POD_GROUPS) if self.config.preempt else (),
            self.cluster.objects(PODS) if self.config.preempt else (),
        )
        return self.cluster.drafted(
            "kai",
            self.config,
            lambda facts, reader, cluster, config: kai.draft(
                facts, seen, config, Reading(queries.mapping(reader, cluster), cluster, facts.now_s)
            ),
        )

    def act(self, action: Action) -> None:
        """Carry out one change; see ``Scheduler.act``."""
        self.cluster.act(action)
