"""Job tables of the Acme trace (Shanghai AI Lab, clusters Seren and Kalos), one row per job.

Booked is the time from ``start_time`` to ``end_time``. The ``duration`` of Kalos counts the queue as well, and
``gpu_time`` is its product: both are compared and reported, never booked. The trace names no team: the type of
work stands in for it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from gpuledger.kernel.amounts import GPU_MILLI
from gpuledger.sources.columns import Columns
from gpuledger.sources.jobs import Teams, UnderstoodJob
from gpuledger.sources.protocol import ImportOptions
from gpuledger.sources.spans import JOB_STATES, Span, Told, compare, job_row, job_rows, told_seconds
from gpuledger.sources.table import JobTable, Record, TableSource
from gpuledger.sources.values import LocalTimes, Odd, cluster_name, unknown_state

_SUMS = ("duration", "queue", "gpu_time")
"""What a row tells besides its times: compared with them, never booked."""


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
        told = [values[column] for column in _SUMS]
        row.oddities.extend(_differences(told, row.held, row.job.gpus_milli // GPU_MILLI))
        return row.job, [*row.oddities, *row.clashes]

    def jobs(self, rows: Columns) -> Iterator[UnderstoodJob | None]:
        return job_rows((self._source, self._cluster), self._teams, "type", self._times, _TOLD, rows)


def _usual(
    ran_s: Sequence[int], waited_s: Sequence[int], gpus: Sequence[int | None]
) -> Sequence[Iterable[str]]:
    used_s = (f"{lasted_s * (held or 0)}.0" for lasted_s, held in zip(ran_s, gpus, strict=True))
    return map(str, ran_s), map(str, waited_s), used_s


def _differences(told: Sequence[str], held: Span, gpus: int) -> list[Odd]:
    """Compare the row's own sums with its times; the times are what is booked."""
    duration, queue, gpu_time = told
    ran_s, waited_s = held.ran_s, held.waited_s
    both_s = ran_s + waited_s
    if waited_s and duration == str(both_s) and queue == f"{waited_s}.0" and gpu_time == f"{both_s * gpus}.0":
        return [_with_queue(both_s, waited_s, ran_s)]  # as the rows of Kalos do
    told_s, odd = told_seconds("duration", duration)
    if told_s is not None and waited_s and told_s == both_s:
        odd = _with_queue(told_s, waited_s, ran_s)
    odds = [odd or compare("duration", duration, ran_s), compare("queue", queue, waited_s)]
    if told_s is not None:
        told_gpu_s, odd = told_seconds("gpu_time", gpu_time)
        if told_gpu_s is not None and told_gpu_s != told_s * gpus:
            odd = ("gpu-time-differs", f"gpu_time: {told_gpu_s} is not {told_s} x {gpus}; it is not booked")
        odds.append(odd)
    return [odd for odd in odds if odd]


def _with_queue(told_s: int, waited_s: int, ran_s: int) -> Odd:
    message = f"duration: {told_s} s counts the {waited_s} s in the queue; {ran_s} s are booked"
    return "duration-with-queue", message


_TOLD = Told(_SUMS, _usual, _differences)


class Acme(TableSource):
    """Source ``acme``: ``trace_seren.csv`` or ``trace_kalos.csv``."""

    name = "acme"
    kinds = (_Jobs,)
