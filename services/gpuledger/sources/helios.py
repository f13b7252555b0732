"""The Helios trace (SenseTime): job tables, states of virtual clusters by the minute, GPUs by virtual cluster and day.

No file says in which zone its times are, so none is read without ``--tz``; nor does it name its cluster.
"""

from gpuledger.sources.helios_capacity import Capacity
from gpuledger.sources.helios_states import States
from gpuledger.sources.helios_tables import NAME, HeliosTable
from gpuledger.sources.jobs import UnderstoodJob
from gpuledger.sources.spans import JOB_STATES, compare, job_row
from gpuledger.sources.table import JobTable, Record, TableSource
from gpuledger.sources.values import unknown_state

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
        sums = (("duration", row.held.ran_s), ("queue", row.held.waited_s))
        row.oddities.extend(odd for field, told_s in sums if (odd := compare(field, values[field], told_s)))
        return row.job, [*row.oddities, *row.clashes]


class Helios(TableSource):
    """Source ``helios``: ``cluster_log.csv``, ``cluster_gpu_number.csv``, or a table of states by the minute."""

    name = NAME
    kinds = (_Jobs, States, Capacity)
