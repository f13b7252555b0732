"""The Helios trace (SenseTime): job tables, states of virtual clusters by the minute, GPUs by virtual cluster and day.

No file says in which zone its times are, so none is read without ``--tz``; nor does it name its cluster.
"""

from collections.abc import Iterable, Iterator, Sequence

from gpuledger.sources.columns import Columns
from gpuledger.sources.helios_capacity import Capacity
from gpuledger.sources.helios_states import States
from gpuledger.sources.helios_tables import NAME, HeliosTable
from gpuledger.sources.jobs import UnderstoodJob
from gpuledger.sources.spans import JOB_STATES, Span, Told, compare, job_row, job_rows
from gpuledger.sources.table import JobTable, Record, TableSource
from gpuledger.sources.values import Odd, unknown_state

_SUSPENDED = "SUSPENDED"


class _Jobs(HeliosTable, JobTable):
    required = (
        "job_id",
        "user",
        "vc",
        "gpu_num",
        "cpu_num",
        "node_num",
        "state",
        "submit_time",
        "start_time",
        "end_time",
        "duration",
        "queue",
    )

    def job(self, record: Record) -> UnderstoodJob:
        values = record.values
        row = job_row((self.source, self.cluster), self.teams, "vc", self.times, values)
        if values["state"] not in JOB_STATES and values["state"] != _SUSPENDED:
            row.oddities.append(unknown_state("state", values["state"]))
        row.oddities.extend(_differences((values["duration"], values["queue"]), row.held))
        return row.job, [*row.oddities, *row.clashes]

    def jobs(self, rows: Columns) -> Iterator[UnderstoodJob | None]:
        return job_rows((self.source, self.cluster), self.teams, "vc", self.times, _TOLD, rows)


def _usual(ran_s: Sequence[int], waited_s: Sequence[int], _: Sequence[int | None]) -> Sequence[Iterable[str]]:
    return map(str, ran_s), map(str, waited_s)


def _differences(told: Sequence[str], held: Span, gpus: int = 0) -> list[Odd]:
    """Compare the row's own sums with its times; the times are what is booked."""
    del gpus
    sums = zip(("duration", "queue"), told, (held.ran_s, held.waited_s), strict=True)
    return [odd for field, value, is_s in sums if (odd := compare(field, value, is_s))]


_TOLD = Told(("duration", "queue"), _usual, _differences)


class Helios(TableSource):
    """Source ``helios``: ``cluster_log.csv``, ``cluster_gpu_number.csv``, or a table of states by the minute."""

    name = NAME
    kinds = (_Jobs, States, Capacity)
