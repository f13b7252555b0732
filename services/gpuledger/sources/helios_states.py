"""Running and pending GPUs of virtual clusters by the minute: a row wherever a value changed.

A row holds until the next row of its virtual cluster, and the last rows to the end of the day on which the
table ends. Each is one run of that length with that many GPUs: the table knows no jobs, hence no waits either.
What a row means depends on later ones, so that the file is gone through twice; where a row cannot be read, the
one before it counts up to what was last seen, as an estimate.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from gpuledger.kernel.amounts import GPU_MILLI
from gpuledger.kernel.errors import BadRecord
from gpuledger.sources.helios_tables import HeliosTable
from gpuledger.sources.jobs import NO_USER, Job, UnderstoodJob
from gpuledger.sources.lines import Broken
from gpuledger.sources.protocol import ImportOptions
from gpuledger.sources.spans import TRACE_END
from gpuledger.sources.surveys import surveyed_rows
from gpuledger.sources.table import JobTable, Record, open_table
from gpuledger.sources.values import PART_LIMIT_BYTES, LocalTimes, Odd, gpu_count, name, shown

_CHANGED = "changed"
_UNREADABLE = "unreadable-row"
_GPUS = ("running_gpu_num", "total_gpu_num")


class _Until(NamedTuple):
    """Where a row ends, and why; an end that is not the next row's time is an estimate."""

    at_s: int
    reason: str


class States(HeliosTable, JobTable):
    """Rows of a table of states."""

    required = (
        "time",
        "vc",
        "total_job_num",
        "running_job_num",
        "pending_job_num",
        "total_gpu_num",
        "running_gpu_num",
        "pending_gpu_num",
        "idle_gpu_num",
        "gpu_utilization",
    )

    def __init__(self, options: ImportOptions, context: Mapping[str, object] | None = None) -> None:
        """Begin without a survey: then no row can be read."""
        super().__init__(options, context)
        self._until: dict[tuple[str, int], _Until] = {}
        self._rows = _Rows()

    def survey(self, path: Path) -> None:
        """Find where each row ends."""
        table = open_table(path)
        order = _Order(self.times)
        for row in surveyed_rows(table):
            if isinstance(row, Broken | BadRecord):
                order.break_off()
            else:
                order.add(row)
        self._until = order.close()

    def job(self, record: Record) -> UnderstoodJob:
        """Return the run that a row stands for."""
        values = record.values
        vc, at_s, doubt = _place(self.times, values)
        running, total = (gpu_count(column, values[column]) for column in _GPUS)
        self._rows.check(vc, at_s, running, values)
        until = self._until.get((vc, at_s))
        if until is None:
            raise BadRecord(
                f"time: what {shown(vc)} held from {values['time']} on depends on the rows around it",
                code="out-of-order",
                hint="import the whole file again: what is already booked is not booked twice",
            )
        account, oddities = self.teams.account("vc", self.cluster, vc)
        job = Job(
            source=self.source,
            cluster=self.cluster,
            workload=f"{vc}-{at_s}",
            account=account,
            user=NO_USER,
            gpus_milli=running * GPU_MILLI,
            submitted_s=None,
            started_s=at_s,
            ended_s=until.at_s,
            reason=until.reason,
            estimated=until.reason != _CHANGED,
        )
        if doubt:
            oddities = [*oddities, doubt]
        if running > total:
            message = f"running_gpu_num: {running} of {total} GPUs; {running} are booked"
            oddities = [*oddities, ("over-capacity", message)]
        return job, oddities


class _Order:
    """Finds the end of each row while the table is gone through for the first time."""

    def __init__(self, times: LocalTimes) -> None:
        self._times = times
        self._until: dict[tuple[str, int], _Until] = {}
        self._open: dict[str, int] = {}
        self._rows = _Rows()
        self._latest_s = 0

    def add(self, values: Mapping[str, str]) -> None:
        """Take in a row: it ends the one before of its virtual cluster."""
        try:
            vc, at_s, _ = _place(self._times, values)
            running, _ = (gpu_count(column, values[column]) for column in _GPUS)
            self._rows.check(vc, at_s, running, values)
        except BadRecord:
            self.break_off(values["vc"])
            return
        if (before_s := self._open.get(vc, at_s)) != at_s:
            self._until[vc, before_s] = _Until(at_s, _CHANGED)
        self._open[vc] = at_s
        self._latest_s = max(self._latest_s, at_s)

    def break_off(self, vc: str = "") -> None:
        """Take in a row that cannot be read: nobody knows what its virtual cluster, or any, held from then on."""
        for broken in [vc] if vc in self._rows else list(self._open):
            if (since_s := self._open.pop(broken, None)) is not None:
                self._until[broken, since_s] = _Until(self._latest_s, _UNREADABLE)

    def close(self) -> dict[tuple[str, int], _Until]:
        """Return all ends; rows still open end with the day of the last row."""
        end_s = self._times.following_midnight(self._latest_s)
        for vc, since_s in self._open.items():
            self._until[vc, since_s] = _Until(end_s, TRACE_END)
        return self._until


def _place(times: LocalTimes, values: Mapping[str, str]) -> tuple[str, int, Odd | None]:
    vc = name("vc", values["vc"], limit_bytes=PART_LIMIT_BYTES)
    at_s, doubt = times.read("time", values["time"])
    return vc, at_s, doubt


class _Rows:
    """The last row of each virtual cluster: the next must be later, or say the same again."""

    def __init__(self) -> None:
        self._last: dict[str, tuple[int, int]] = {}

    def __contains__(self, vc: str) -> bool:
        return vc in self._last

    def check(self, vc: str, at_s: int, running: int, values: Mapping[str, str]) -> None:
        """Take in a row.

        Raises:
            BadRecord: When it is not after the row before of its virtual cluster.
        """
        last = self._last.get(vc)
        if last is not None and at_s <= last[0] and (at_s, running) != last:
            raise BadRecord(
                f"time: {values['time']} is not after the row before of {shown(vc)}",
                code="out-of-order",
                hint="sort the file by time, with one row a minute for each virtual cluster",
            )
        self._last[vc] = (at_s, running)
