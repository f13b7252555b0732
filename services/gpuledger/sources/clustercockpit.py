"""Jobs of a ClusterCockpit archive as one row per job, with devices and measured utilisation.

The trace names its clusters, users and projects. It has no submit time: a job counts as submitted when it
started. A device is known as ``node/PCI address``, because addresses repeat on every node.
"""

from collections.abc import Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from typing import NamedTuple

from gpuledger.events.envelope import Event, make
from gpuledger.events.telemetry import INTERVAL_MAX_S, GpuSample, Sampled
from gpuledger.kernel.accounts import escape_part
from gpuledger.kernel.amounts import GPU_MILLI
from gpuledger.kernel.errors import BadRecord
from gpuledger.sources.files import file_size
from gpuledger.sources.jobs import RUN, Job, Teams, UnderstoodJob
from gpuledger.sources.pieces import Facts
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


class _Row(NamedTuple):
    """A row, understood.

    Args:
        job: What is booked.
        oddities: What is odd about it.
        duration_s: How long it ran.
        devices: Its devices by host.
        use: Their mean utilisation in percent; None where nothing was measured.
    """

    job: Job
    oddities: list[Odd]
    duration_s: int
    devices: Mapping[str, list[str]]
    use: Decimal | None


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

    def translate(self, record: Record) -> Facts:
        row = self._row(record)
        facts = row.job.facts()
        if row.use is not None and row.duration_s:
            facts += _samples(row.job, row.duration_s, row.devices, row.use)
        return tuple(facts), row.oddities

    def job(self, record: Record) -> UnderstoodJob:
        row = self._row(record)
        return row.job, row.oddities

    def _row(self, record: Record) -> _Row:
        values = record.values
        job_id = name("job_id", values["job_id"], limit_bytes=PART_LIMIT_BYTES)
        own_cluster = escape_part(name("cluster", values["cluster"], limit_bytes=PART_LIMIT_BYTES))
        cluster = self._cluster or own_cluster
        user = name("user", values["user"])
        start_s = _start(values["start_time"])
        duration_s, _ = seconds_and_fraction("duration", values["duration"])
        end_s = instant_in_bounds("duration", start_s + duration_s, values["duration"])
        gpus = gpu_count("num_acc", values["num_acc"])
        hosts = [name("nodes", host) for host in values["nodes"].split(";")] if values["nodes"] else []
        devices = _devices(values["accelerators"], hosts)
        use, unmeasured = _use(values["acc_utilization_avg"], duration_s)
        limit_s, state, oddities = _limit_and_state(values, duration_s)
        oddities += unmeasured
        account, clashes = self._teams.account("project", cluster, values["project"])
        oddities += clashes
        if gpus != sum(map(len, devices.values())):
            listed = sum(map(len, devices.values()))
            oddities.append(
                ("gpu-count-differs", f"num_acc: {gpus} GPUs, but {listed} are listed; {gpus} are booked")
            )
        workload = f"{job_id}-{start_s}"
        if cluster != own_cluster:
            workload = f"{own_cluster}:{workload}"  # two clusters that are imported as one may share numbers
        uuids = [uuid for listed_on_host in devices.values() for uuid in listed_on_host]
        source = f"trace/clustercockpit/{cluster}"
        job = Job(
            source=source,
            cluster=cluster,
            workload=workload,
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
        )
        return _Row(job, oddities, duration_s, devices, use)


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


def _limit_and_state(values: Mapping[str, str], duration_s: int) -> tuple[int, str, list[Odd]]:
    oddities: list[Odd] = []
    limit_s = whole_number("walltime", values["walltime"]) if values["walltime"] else 0
    if 0 < limit_s < duration_s:
        message = f"duration: {duration_s} s, {duration_s - limit_s} s longer than its limit of {limit_s} s"
        oddities.append(("past-time-limit", message))
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
