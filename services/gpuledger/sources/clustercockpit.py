"""Jobs of a ClusterCockpit archive as one row per job, with devices and measured utilisation.

The trace names its clusters, users and projects. It has no submit time: a job counts as submitted when it
started. A device is known as ``node/PCI address``, because addresses repeat on every node.
"""

from collections.abc import Iterator, Mapping
from decimal import Decimal
from functools import lru_cache, partial
from pathlib import Path
from typing import NamedTuple

from gpuledger.events.envelope import Event, make
from gpuledger.events.fields import END_OF_TIME_S
from gpuledger.events.telemetry import INTERVAL_MAX_S, GpuSample, Sampled
from gpuledger.kernel.accounts import escape_part
from gpuledger.kernel.amounts import GPU_MILLI
from gpuledger.kernel.errors import BadRecord
from gpuledger.sources.columns import Columns, each, floored_seconds, names, whole_numbers
from gpuledger.sources.files import file_size
from gpuledger.sources.jobs import RUN, Job, Teams, UnderstoodJob
from gpuledger.sources.protocol import Fault, ImportOptions, Translated
from gpuledger.sources.table import (
    JobTable,
    Record,
    check_header,
    open_table,
    retry_row,
    translate_table,
)
from gpuledger.sources.values import (
    PART_LIMIT_BYTES,
    LocalTimes,
    Odd,
    cluster_name,
    epoch_second,
    gpu_count,
    instant_in_bounds,
    name,
    percent,
    seconds_and_fraction,
    shown,
    unknown_state,
    whole_number,
)

_STATES = frozenset(
    (
        "boot_fail",
        "cancelled",
        "completed",
        "deadline",
        "failed",
        "node_fail",
        "out_of_memory",
        "preempted",
        "running",
        "stopped",
        "timeout",
    )
)
_USUAL = {state: state for state in _STATES}
_RUNNING = "running"


class ClusterCockpit:
    """Source ``clustercockpit``: a CSV export of the archive's job table."""

    name = "clustercockpit"

    def read(self, path: Path, options: ImportOptions) -> Iterator[Translated | Fault]:
        """Yield every job of the file; see ``Source.read``."""
        translator = _Jobs(options)
        table = open_table(path)
        check_header(table, _Jobs)
        return translate_table(table, translator)

    def retry(self, raw: bytes, context: Mapping[str, object]) -> Translated:
        """Translate one row again; see ``Source.retry``."""
        return retry_row(_Jobs, raw, context)

    def size(self, path: Path) -> int:
        """Return the size of the file on disk."""
        return file_size(path)


class _MeasuredJob(Job, kw_only=True, gc=False):
    """A job, and what it used.

    Args:
        duration_s: How long it ran.
        devices: Its devices by host.
        use: Their mean utilisation in percent; None where nothing was measured.
    """

    duration_s: int = 0
    devices: Mapping[str, list[str]] = {}
    use: Decimal | None = None

    def facts(self) -> list[tuple[Event, bytes]]:
        """Return what happened to the job, and its use as one sample per host over the whole run."""
        facts = super().facts()
        if self.use is not None and self.duration_s:
            facts += _samples(self, self.duration_s, self.devices, self.use)
        return facts


class _Named(NamedTuple):
    """A cluster, who tells of it, and what its jobs are called with in another's name."""

    cluster: str
    source: str
    prefix: str


class _Placed(NamedTuple):
    """The hosts of a job, and its devices, all and by host."""

    hosts: list[str]
    devices: Mapping[str, list[str]]
    uuids: list[str]


class _Jobs(JobTable):
    required = (
        "job_id",
        "cluster",
        "subcluster",
        "user",
        "project",
        "start_time",
        "duration",
        "walltime",
        "state",
        "num_acc",
        "nodes",
        "accelerators",
        "acc_utilization_avg",
    )
    optional = (
        "partition",
        "num_nodes",
        "num_hwthreads",
        "smt",
        "shared",
        "array_job_id",
        "acc_mem_used_avg",
        "cpu_load_avg",
        "mem_used_avg",
        "energy",
    )

    def __init__(self, options: ImportOptions, context: Mapping[str, object] | None = None) -> None:
        super().__init__(options)
        LocalTimes(options.timezone)  # the times are instants; a zone that does not exist is still refused
        self._cluster = None if options.cluster is None else cluster_name(options.cluster)
        self._teams = Teams(context)

    def remember(self, values: Mapping[str, str]) -> dict[str, object]:
        if not values["cluster"]:
            return {}
        return self._teams.remember(self._cluster or escape_part(values["cluster"]), values["project"])

    def job(self, record: Record) -> UnderstoodJob:
        values = record.values
        job_id = name("job_id", values["job_id"], limit_bytes=PART_LIMIT_BYTES)
        named = self._named(values["cluster"])
        cluster = named.cluster
        user = name("user", values["user"])
        start_s = _start(values["start_time"])
        duration_s, _ = seconds_and_fraction("duration", values["duration"])
        end_s = instant_in_bounds("duration", start_s + duration_s, values["duration"])
        gpus = gpu_count("num_acc", values["num_acc"])
        hosts, devices, uuids = _placed((values["nodes"], values["accelerators"]))
        use, unmeasured = _use(values["acc_utilization_avg"], duration_s)
        limit_s, state, oddities = _limit_and_state(values, duration_s)
        oddities += unmeasured
        account, clashes = self._teams.account("project", cluster, values["project"])
        oddities += clashes
        if gpus != len(uuids):
            message = f"num_acc: {gpus} GPUs, but {len(uuids)} are listed; {gpus} are booked"
            oddities.append(("gpu-count-differs", message))
        job = _MeasuredJob(
            source=named.source,
            cluster=cluster,
            workload=f"{named.prefix}{job_id}-{start_s}",
            account=account,
            user=user,
            gpus_milli=gpus * GPU_MILLI,
            submitted_s=start_s,
            started_s=start_s,
            ended_s=None if state == _RUNNING else end_s,
            reason=state,
            gpu_model=name("subcluster", values["subcluster"]) if gpus else None,
            time_limit_s=limit_s or None,
            hosts=hosts,
            gpu_uuids=uuids or None,
            duration_s=duration_s,
            devices=devices,
            use=use,
        )
        return job, oddities

    def jobs(self, rows: Columns) -> Iterator[UnderstoodJob | None]:
        fields = zip(
            names(rows["job_id"], PART_LIMIT_BYTES),
            each(rows["cluster"], self._named),
            each(rows["user"], partial(name, "user")),
            rows["project"],
            each(rows["subcluster"], partial(name, "subcluster")),
            whole_numbers(rows["start_time"]),
            floored_seconds(rows["duration"]),
            whole_numbers([limit or "0" for limit in rows["walltime"]]),
            map(_USUAL.get, rows["state"]),
            each(rows["num_acc"], partial(gpu_count, "num_acc")),
            each([*zip(rows["nodes"], rows["accelerators"], strict=True)], _placed),
            each([used or "0" for used in rows["acc_utilization_avg"]], partial(percent, "")),
            rows["acc_utilization_avg"],
            strict=True,
        )
        for (
            job_id, named, user, team, model, start_s, duration_s, limit_s, state, gpus, placed, use, told
        ) in fields:  # fmt: skip
            if (
                job_id is None
                or named is None
                or user is None
                or model is None
                or not start_s  # 0 stands for unknown
                or duration_s is None
                or limit_s is None
                or state is None
                or placed is None
                or gpus != len(placed.uuids)
                or use is None
                or (account := self._teams.known(named.cluster).get(team)) is None
                or duration_s > INTERVAL_MAX_S
                or start_s + duration_s >= END_OF_TIME_S
            ):
                yield None
                continue
            job = _MeasuredJob(
                source=named.source,
                cluster=named.cluster,
                workload=f"{named.prefix}{job_id}-{start_s}",
                account=account,
                user=user,
                gpus_milli=gpus * GPU_MILLI,
                submitted_s=start_s,
                started_s=start_s,
                ended_s=None if state == _RUNNING else start_s + duration_s,
                reason=state,
                gpu_model=model if gpus else None,
                time_limit_s=limit_s or None,
                hosts=placed.hosts,
                gpu_uuids=placed.uuids or None,
                duration_s=duration_s,
                devices=placed.devices,
                use=use if told else None,
            )
            yield job, _past_limit(limit_s, duration_s)

    def _named(self, own: str) -> _Named:
        """Return what follows from the name of a job's own cluster."""
        own_cluster = escape_part(name("cluster", own, limit_bytes=PART_LIMIT_BYTES))
        cluster = self._cluster or own_cluster
        # Two clusters that are imported as one may share numbers.
        prefix = "" if cluster == own_cluster else f"{own_cluster}:"
        return _Named(cluster, f"trace/clustercockpit/{cluster}", prefix)


@lru_cache(maxsize=1 << 12)
def _placed(told: tuple[str, str]) -> _Placed:
    """Read the hosts and the devices of a job."""
    nodes, accelerators = told
    hosts = [name("nodes", host) for host in nodes.split(";")] if nodes else []
    devices = _devices(accelerators, hosts)
    return _Placed(hosts, devices, [uuid for on_host in devices.values() for uuid in on_host])


def _start(value: str) -> int:
    start_s = epoch_second("start_time", value)
    if start_s == 0:
        raise BadRecord(
            "start_time: 0 stands for unknown",
            code="missing-value",
            hint="fill in when the job started, or leave the row out",
        )
    return start_s


def _use(value: str, duration_s: int) -> tuple[Decimal | None, list[Odd]]:
    """Return the mean utilisation over a job, None where nothing was measured or nobody can have."""
    use = percent("acc_utilization_avg", value) if value else None
    if use is None or duration_s <= INTERVAL_MAX_S:
        return use, []
    message = f"acc_utilization_avg: a mean over {duration_s} s, more than a year; left out as not measured"
    return None, [("impossible-value", message)]


def _past_limit(limit_s: int, duration_s: int) -> list[Odd]:
    """Say so where a job ran longer than it may; a limit of 0 is none."""
    if not 0 < limit_s < duration_s:
        return []
    message = f"duration: {duration_s} s, {duration_s - limit_s} s longer than its limit of {limit_s} s"
    return [("past-time-limit", message)]


def _limit_and_state(values: Mapping[str, str], duration_s: int) -> tuple[int, str, list[Odd]]:
    limit_s = whole_number("walltime", values["walltime"]) if values["walltime"] else 0
    oddities = _past_limit(limit_s, duration_s)
    state = name("state", values["state"])
    if state not in _STATES:
        oddities.append(unknown_state("state", state))
    return limit_s, state, oddities


def _devices(listed: str, hosts: list[str]) -> dict[str, list[str]]:
    """Return the devices by host, each once, in the order of the row; one without an address is unknown."""
    devices: dict[str, list[str]] = {}
    for uuid in dict.fromkeys(listed.split(";")) if listed else ():
        host, slash, address = name("accelerators", uuid).partition("/")
        if not slash or host not in hosts:
            raise BadRecord(
                f"accelerators: {shown(uuid)} is not a device of a node of the job",
                code="bad-device",
                hint="write node/address, with a node that stands in nodes",
            )
        if address:
            devices.setdefault(host, []).append(uuid)
    return devices


def _samples(
    job: Job, duration_s: int, devices: Mapping[str, list[str]], use: Decimal
) -> Iterator[tuple[Event, bytes]]:
    """Yield the job's mean utilisation as one sample per host over the whole run."""
    run = f"{job.workload}/{RUN}"
    for host, uuids in devices.items():
        sample = Sampled(
            cluster=job.cluster,
            host=host,
            interval_s=duration_s,
            gpus=[GpuSample(uuid=uuid, run=run, gpu_util=use) for uuid in uuids],
        )
        yield make(
            id=f"{job.workload}/{host}/sampled", source=job.source, at_s=job.started_s or 0, data=sample
        )
