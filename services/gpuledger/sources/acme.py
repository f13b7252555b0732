"""Job tables of the Acme trace (Shanghai AI Lab, clusters Seren and Kalos), one row per job.

Booked is the time from ``start_time`` to ``end_time``. The ``duration`` of Kalos counts the queue as well, and
``gpu_time`` is its product: both are compared and reported, never booked. The trace names no team: the type of
work stands in for it.
"""

from collections.abc import Iterator, Mapping

from gpuledger.kernel.amounts import GPU_MILLI
from gpuledger.sources.jobs import Teams, UnderstoodJob
from gpuledger.sources.protocol import ImportOptions
from gpuledger.sources.spans import JOB_STATES, Span, compare, job_row, told_seconds
from gpuledger.sources.table import JobTable, Record, TableSource
from gpuledger.sources.values import LocalTimes, Odd, cluster_name, unknown_state


class _Jobs(JobTable):
    required = (
        "job_id",
        "user",
        "node_num",
        "gpu_num",
        "cpu_num",
        "type",
        "state",
        "submit_time",
        "start_time",
        "end_time",
        "duration",
        "queue",
        "gpu_time",
    )
    optional = ("mem_per_pod_GB", "shared_mem_per_pod", "fail_time", "stop_time")

    def __init__(self, options: ImportOptions, context: Mapping[str, object] | None = None) -> None:
        super().__init__(options)
        self._cluster = cluster_name(options.cluster or Acme.name)
        self._source = f"trace/acme/{self._cluster}"
        self._times = LocalTimes(options.timezone)
        self._teams = Teams(context)

    def remember(self, values: Mapping[str, str]) -> dict[str, object]:
        return self._teams.remember(self._cluster, values["type"])

    def job(self, record: Record) -> UnderstoodJob:
        values = record.values
        row = job_row((self._source, self._cluster), self._teams, "type", self._times, values)
        if values["state"] not in JOB_STATES:
            row.oddities.append(unknown_state("state", values["state"]))
        gpus = row.job.gpus_milli // GPU_MILLI
        if not _is_told(values, row.held, gpus):
            row.oddities.extend(odd for odd in _differences(values, row.held, gpus) if odd)
        return row.job, [*row.oddities, *row.clashes]


def _is_told(values: Mapping[str, str], held: Span, gpus: int) -> bool:
    """Say whether the row tells the very sums that follow from its times, as almost every row does."""
    ran_s = held.ran_s
    return (
        values["duration"] == str(ran_s)
        and values["queue"] == str(held.waited_s)
        and values["gpu_time"] == f"{ran_s * gpus}.0"
    )


def _differences(values: Mapping[str, str], held: Span, gpus: int) -> Iterator[Odd | None]:
    """Compare the row's own sums with its times; the times are what is booked."""
    ran_s, waited_s = held.ran_s, held.waited_s
    told_s, odd = told_seconds("duration", values["duration"])
    if told_s is not None and waited_s and told_s == ran_s + waited_s:
        message = f"duration: {told_s} s counts the {waited_s} s in the queue; {ran_s} s are booked"
        yield "duration-with-queue", message
    else:
        yield odd or compare("duration", values["duration"], ran_s)
    yield compare("queue", values["queue"], waited_s)
    if told_s is not None:
        told_gpu_s, odd = told_seconds("gpu_time", values["gpu_time"])
        if told_gpu_s is not None and told_gpu_s != told_s * gpus:
            odd = ("gpu-time-differs", f"gpu_time: {told_gpu_s} is not {told_s} x {gpus}; it is not booked")
        yield odd


class Acme(TableSource):
    """Source ``acme``: ``trace_seren.csv`` or ``trace_kalos.csv``."""

    name = "acme"
    kinds = (_Jobs,)
