"""Which run holds a device, asked of the host: the scheduler's own traces of it."""

import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import msgspec

from gpuledger.agent.driver import Device
from gpuledger.kernel import handles
from gpuledger.kernel.errors import Unavailable

if TYPE_CHECKING:
    from gpuledger.agent.pod_resources import Given

DRIVER = "gpu.nvidia.com"
"""Who gives devices by claims; it names them ``gpu-MINOR``."""

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
        job_map: A folder with a file per device, named by its index or UUID, that has the number of each job there on a
            line; the layout that dcgm-exporter reads too.
        proc: Where the kernel lists processes.
    """

    def __init__(self, job_map: Path | None = None, proc: Path = Path("/proc")) -> None:
        self._job_map, self._proc = job_map, proc
        self._jobs: dict[str, set[str]] = {}

    def look(self) -> None:
        """Read the map anew."""
        self._jobs = {
            path.name: {job for line in _read(path).splitlines() if (job := line.strip())}
            for path in _listed(self._job_map)
        }

    def handle(self, device: Device, pids: Sequence[int]) -> str | None:
        """Return the run; None when jobs share the device, for then no sample belongs to one of them."""
        told = self._jobs.get(device.uuid) or self._jobs.get(str(device.index))
        jobs = told or set(self._jobs_of(pids))
        return handles.slurm_job(next(iter(jobs))) if len(jobs) == 1 else None

    def _jobs_of(self, pids: Iterable[int]) -> Iterable[str]:
        for pid in pids:
            found = _SLURM_JOB.search(_read(self._proc / str(pid) / "cgroup"))
            if found:
                yield found[1]


class Kubelet:
    """Kubernetes: what the kubelet says of devices that it gave to pods, else what its file remembers.

    The service names pods by name, the file by UID. Either is a handle of the run.

    Args:
        checkpoint: The kubelet's file, ``kubelet_internal_checkpoint`` in its folder of device plugins.
        service: Lists the devices of pods; None where nobody can be asked.
        resource: Names of resources that are devices begin so.
        note: Told when the service falls silent, and when it answers again.
    """

    def __init__(
        self,
        checkpoint: Path,
        service: Callable[[], Iterable["Given"]] | None = None,
        resource: str = "nvidia.com/",
        note: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._checkpoint, self._service, self._resource = checkpoint, service, resource
        self._note = note
        self._silent = False
        self._pods: dict[str, set[str]] = {}

    def look(self) -> None:
        """Ask the service, or read the checkpoint anew; one that cannot be read tells of nobody."""
        self._pods = {}
        for resource, device, handle in self._told():
            if resource == DRIVER:
                self._pods.setdefault(f"{DRIVER}/{device}", set()).add(handle)
            elif resource.startswith(self._resource):
                # Of a device that is shared in time there are several, GPU-1::0, GPU-1::1.
                self._pods.setdefault(device.partition("::")[0], set()).add(handle)

    def handle(self, device: Device, pids: Sequence[int]) -> str | None:
        """Return the run of the pod that was given the device; None when pods share it, as of jobs."""
        del pids
        pods = self._pods.get(device.uuid, set()) | self._pods.get(f"{DRIVER}/gpu-{device.minor}", set())
        return next(iter(pods)) if len(pods) == 1 else None

    def _told(self) -> Iterable[tuple[str, str, str]]:
        if self._service is None:
            return self._remembered()
        try:
            given = self._service()
        except Unavailable as error:
            if not self._silent:
                self._note(f"{error.message}; its file {self._checkpoint} is read instead. {error.hint}")
            self._silent = True
            return self._remembered()
        if self._silent:
            self._note("the kubelet's pod resources answer again")
        self._silent = False
        return [(g.resource, g.device, handles.pod_name(g.namespace, g.pod)) for g in given]

    def _remembered(self) -> Iterable[tuple[str, str, str]]:
        try:
            document = msgspec.json.decode(_read(self._checkpoint).encode(), type=_Checkpoint)
        except msgspec.DecodeError:
            return
        for entry in document.Data.PodDeviceEntries or ():
            listed = entry.DeviceIDs.values() if isinstance(entry.DeviceIDs, dict) else [entry.DeviceIDs]
            for device in (device for devices in listed for device in devices):
                yield entry.ResourceName, device, handles.pod_uid(entry.PodUID)


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
