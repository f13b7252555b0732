"""Which jobs Kueue Workloads stand for: a pod of one of them books nothing itself.

A job is remembered as long as its Workload is there. States of pods and of Workloads come apart: the last state of a
pod may be heard after its Workload is gone, or after a restart. So the newest that are gone are remembered too.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from gpuledger.sources.kubernetes.objects import Meta
from gpuledger.sources.kubernetes.owners import is_named, keys_of_owner, keys_of_pod
from gpuledger.sources.kubernetes.reading import at_s

GONE_MAX = 5_000
"""Workloads that are gone and are remembered: their pods go with them, within seconds; these are hours of them."""


class Stands(NamedTuple):
    """What is known of a job.

    Args:
        workload: The Workload that stands for it.
        gone_s: When that was gone; None while it is there.
    """

    workload: str
    gone_s: int | None


class Standing:
    """Remembers jobs."""

    def __init__(self) -> None:
        self._jobs: dict[str, Stands] = {}
        self._keys: dict[str, list[str]] = {}
        self._gone: dict[str, None] = {}

    def __len__(self) -> int:
        """Return how many Workloads are remembered."""
        return len(self._keys)

    def stand(self, workload: str, meta: Meta) -> None:
        """Remember whose pods a Workload stands for.

        Args:
            workload: Its name.
            meta: Its metadata, which says who owns it.
        """
        keys = [key for own in meta.owner_references or () for key in keys_of_owner(meta, own)]
        if keys:
            self._gone.pop(workload, None)
            self._put(workload, keys, None)

    def leave(self, workload: str, gone_s: int) -> None:
        """Say that a Workload is no more. Those that went first are forgotten when there are too many."""
        keys = self._keys.get(workload)
        if keys is None or workload in self._gone:
            return
        self._put(workload, keys, gone_s)
        self._gone[workload] = None
        while len(self._gone) > GONE_MAX:
            oldest = next(iter(self._gone))
            del self._gone[oldest]
            for key in self._keys.pop(oldest):
                if key in self._jobs and self._jobs[key].workload == oldest:
                    del self._jobs[key]

    def only(self, workloads: Collection[str], now_s: int) -> None:
        """Say which Workloads there are: all others are gone."""
        for workload in [known for known in self._keys if known not in workloads]:
            self.leave(workload, now_s)

    def workload(self, meta: Meta) -> str | None:
        """Return the Workload that stands for the job of a pod.

        A name may be given again: a pod that was made after the Workload was gone is of another job of that name.
        """
        for key in keys_of_pod(meta):
            found = self._jobs.get(key)
            if found is None:
                continue
            made_s = at_s(meta.creation_timestamp) or 0
            if found.gone_s is None or not is_named(key) or made_s <= found.gone_s:
                return found.workload
        return None

    def kept(self) -> dict[str, tuple[list[str], int | None]]:
        """Return what must be known after a restart: Workload -> its jobs, and when it was gone; the oldest first."""
        whole: dict[str, tuple[list[str], int | None]] = {}
        for workload in (*(known for known in self._keys if known not in self._gone), *self._gone):
            own = [key for key in self._keys[workload] if self._jobs.get(key, _NOBODY).workload == workload]
            if own:
                whole[workload] = own, self._jobs[own[0]].gone_s
        return whole

    def restore(self, kept: Mapping[str, tuple[Iterable[str], int | None]]) -> None:
        """Remember what was known before a restart."""
        for workload, (keys, gone_s) in kept.items():
            self._put(workload, list(keys), None)
            if gone_s is not None:
                self.leave(workload, gone_s)

    def _put(self, workload: str, keys: list[str], gone_s: int | None) -> None:
        """Note a Workload under the keys of its jobs; one that is gone yields to whoever bears a name now."""
        self._keys[workload] = keys
        for key in keys:
            bearer = self._jobs.get(key)
            if gone_s is None or bearer is None or bearer.workload == workload:
                self._jobs[key] = Stands(workload, gone_s)


_NOBODY = Stands("", None)
