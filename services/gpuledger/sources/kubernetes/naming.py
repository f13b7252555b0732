"""Identity, so that whatever format tells of a run gives it the same names.

| what | workload | run |
|---|---|---|
| Kueue Workload | ``namespace/name/uid`` | the ordinal of its admission |
| Pod of a KAI PodGroup | ``namespace/group`` | the pod's uid |
| any other Pod | ``namespace/name/uid`` | ``1`` |
"""

from typing import TypedDict

from gpuledger.events.envelope import Event, make
from gpuledger.events.registry import Fact
from gpuledger.sources.kubernetes.objects import Meta
from gpuledger.sources.values import name

MADE = tuple[Event, bytes]

DEFAULT_CLUSTER = "kubernetes"


def identity(meta: Meta) -> str:
    """Return ``namespace/name/uid``.

    Raises:
        BadRecord: When one of them is missing or cannot be a name.
    """
    return f"{namespace(meta)}/{name('metadata.name', meta.name)}/{name('metadata.uid', meta.uid)}"


def namespace(meta: Meta) -> str:
    """Return the namespace.

    Raises:
        BadRecord: When it is missing or cannot be a name.
    """
    return name("metadata.namespace", meta.namespace)


def group_workload(meta: Meta, group: str) -> str:
    """Return the workload of the pods of a PodGroup.

    Raises:
        BadRecord: When a name is missing or cannot be one.
    """
    return f"{namespace(meta)}/{name('pod-group-name', group)}"


class Named(TypedDict):
    """What every fact about a workload names."""

    cluster: str
    workload: str


class Told:
    """Makes facts of one object, and passes over those that an earlier state of it gave rise to already.

    A state that adds nothing repeats the first fact: it is a record, and one that is known.

    Args:
        source: Who says so.
        subject: What the ids of the events begin with.
    """

    def __init__(self, source: str, subject: str) -> None:
        self.source, self.subject = source, subject
        self.known: set[str] = set()
        self._fresh: list[MADE] = []
        self._first: MADE | None = None

    def tell(self, what: str, at_s: int, data: Fact) -> None:
        """Make a fact, unless it was made before."""
        if what not in self.known:
            made = make(id=f"{self.subject}/{what}", source=self.source, at_s=at_s, data=data)
            self.known.add(what)
            self._first = self._first or made
            self._fresh.append(made)

    def alone(self, what: str, at_s: int, data: Fact) -> list[MADE]:
        """Make a fact that the state of another object gives rise to, unless it was made before; return it."""
        if what in self.known:
            return []
        self.known.add(what)
        return [make(id=f"{self.subject}/{what}", source=self.source, at_s=at_s, data=data)]

    def take(self) -> list[MADE]:
        """Return the facts made since the last call; the very first again when there are none."""
        fresh, self._fresh = self._fresh, []
        return fresh or ([] if self._first is None else [self._first])
