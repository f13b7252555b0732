"""Which run holds a device, asked of the host: the scheduler's own traces of it."""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Protocol

import msgspec

from gpuledger.agent.driver import Device
from gpuledger.kernel import handles

_SLURM_JOB = re.compile(r"/job_(\d+)(?:/|$)", re.MULTILINE)


class Owners(Protocol):
    """Says who holds devices."""

    def look(self) -> None:
        """Take a fresh look; called once before the devices of a host are asked for."""
        ...

    def handle(self, device: Device, pids: Sequence[int]) -> str | None:
        """Return what the host calls the run that holds a device, or None when nobody can tell."""
        ...


class Nobody:
    """Where no scheduler is told of: samples belong to no run."""

    def look(self) -> None:
        """See nothing."""

    def handle(self, device: Device, pids: Sequence[int]) -> str | None:
        """Return None."""
        del device, pids
        return None


class Slurm:
    """Slurm: a map that a prolog writes, else the cgroups of the processes on the device.

    A job that holds a device and does not use it has no process there: only the map shows it.

    Args:
        job_map: A folder with a file per device, named by its index or UUID, whose first line is the job's number;
            the layout that dcgm-exporter reads too.
        proc: Where the kernel lists processes.
    """

    def __init__(self, job_map: Path | None = None, proc: Path = Path("/proc")) -> None:
        self._job_map, self._proc = job_map, proc
        self._jobs: dict[str, str] = {}

    def look(self) -> None:
        """Read the map anew."""
        self._jobs = {}
        for path in _listed(self._job_map):
            if text := _read(path).strip():
                self._jobs[path.name] = text.splitlines()[0].strip()

    def handle(self, device: Device, pids: Sequence[int]) -> str | None:
        """Return the run; None when jobs share the device, for then no sample belongs to one of them."""
        job = self._jobs.get(device.uuid) or self._jobs.get(str(device.index))
        if job:
            return handles.slurm_job(job)
        jobs = set(self._jobs_of(pids))
        return handles.slurm_job(jobs.pop()) if len(jobs) == 1 else None

    def _jobs_of(self, pids: Iterable[int]) -> Iterable[str]:
        for pid in pids:
            found = _SLURM_JOB.search(_read(self._proc / str(pid) / "cgroup"))
            if found:
                yield found[1]


class Kubelet:
    """Kubernetes: what the kubelet remembers of devices that it gave to pods.

    Args:
        checkpoint: The kubelet's file, ``kubelet_internal_checkpoint`` in its folder of device plugins.
        resource: Names of resources that are devices begin so.
    """

    def __init__(self, checkpoint: Path, resource: str = "nvidia.com/") -> None:
        self._checkpoint, self._resource = checkpoint, resource
        self._pods: dict[str, str] = {}

    def look(self) -> None:
        """Read the checkpoint anew; one that cannot be read tells of nobody."""
        self._pods = {}
        try:
            document = msgspec.json.decode(_read(self._checkpoint).encode(), type=_Checkpoint)
        except msgspec.DecodeError:
            return
        for entry in document.Data.PodDeviceEntries or ():
            if entry.ResourceName.startswith(self._resource):
                listed = entry.DeviceIDs.values() if isinstance(entry.DeviceIDs, dict) else [entry.DeviceIDs]
                self._pods.update((uuid, entry.PodUID) for uuids in listed for uuid in uuids)

    def handle(self, device: Device, pids: Sequence[int]) -> str | None:
        """Return the run of the pod that was given the device."""
        del pids
        pod = self._pods.get(device.uuid)
        return None if pod is None else handles.pod_uid(pod)


class _Entry(msgspec.Struct):
    PodUID: str
    ResourceName: str
    DeviceIDs: dict[str, list[str]] | list[str]


class _Data(msgspec.Struct):
    PodDeviceEntries: list[_Entry] | None = None


class _Checkpoint(msgspec.Struct):
    Data: _Data


def _listed(folder: Path | None) -> list[Path]:
    """Return the files of a folder; none when there is none, or it may not be read."""
    try:
        return [] if folder is None else sorted(folder.iterdir())
    except OSError:
        return []


def _read(path: Path) -> str:
    """Return a small file's text; empty when it went away, as processes do."""
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""
