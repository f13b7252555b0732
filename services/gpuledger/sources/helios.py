"""The Helios trace (SenseTime): job tables, states of virtual clusters by the minute, GPUs by virtual cluster and day.

No file says in which zone its times are, so none is read without ``--tz``; nor does it name its cluster.
"""

from gpuledger.kernel.amounts import GPU_MILLI
from gpuledger.sources.helios_capacity import Capacity
from gpuledger.sources.helios_states import States
from gpuledger.sources.helios_tables import NAME, HeliosTable
from gpuledger.sources.jobs import Job
from gpuledger.sources.pieces import Facts
from gpuledger.sources.spans import JOB_STATES, NEVER_STARTED, compare, span
from gpuledger.sources.table import Record, TableSource
from gpuledger.sources.values import PART_LIMIT_BYTES, gpu_count, name, shown

_SUSPENDED = "SUSPENDED"


class _Jobs(HeliosTable):
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

    def translate(self, record: Record) -> Facts:
        values = record.values
        job_id = name("job_id", values["job_id"], limit_bytes=PART_LIMIT_BYTES)
        gpus = gpu_count("gpu_num", values["gpu_num"])
        state = name("state", values["state"])
        held, oddities = span(self.times, values)
        account, clashes = self.teams.account("vc", self.cluster, values["vc"])
        job = Job(
            source=self.source,
            cluster=self.cluster,
            workload=f"{job_id}-{held.submitted_s}",
            account=account,
            user=name("user", values["user"]),
            gpus_milli=gpus * GPU_MILLI,
            submitted_s=held.submitted_s,
            started_s=held.started_s,
            ended_s=held.ended_s,
            reason=NEVER_STARTED if held.started_s is None else state.lower(),
            labels={"vc": values["vc"]},
        )
        if state not in JOB_STATES and state != _SUSPENDED:
            oddities.append(("unknown-state", f"state: {shown(state)} is not known; booked as ended"))
        sums = (("duration", held.ran_s), ("queue", held.waited_s))
        oddities += [odd for field, told_s in sums if (odd := compare(field, values[field], told_s))]
        return tuple(job.facts()), [*oddities, *clashes]


class Helios(TableSource):
    """Source ``helios``: ``cluster_log.csv``, ``cluster_gpu_number.csv``, or a table of states by the minute."""

    name = NAME
    kinds = (_Jobs, States, Capacity)
