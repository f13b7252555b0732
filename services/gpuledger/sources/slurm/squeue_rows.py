"""One job of ``squeue`` in text, its fields by column, whatever the columns are called -> a run of a job.

Columns have two names, as the short and the long format of the command print them. What is allocated is told in one
column only; where it is missing, how many GPUs a job holds is not known: what it asked for of each host is not what
it got.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from msgspec.structs import replace

from gpuledger.kernel.amounts import GPU_MILLI
from gpuledger.kernel.errors import BadRecord
from gpuledger.sources.protocol import ImportOptions
from gpuledger.sources.slurm.hosts import hosts_of
from gpuledger.sources.slurm.job import SlurmJob
from gpuledger.sources.slurm.live import TextReader, is_eligible, start_of
from gpuledger.sources.slurm.reading import EMPTY, REPEATED
from gpuledger.sources.slurm.states import PENDING, RUNNING, SUSPENDED, state_of
from gpuledger.sources.slurm.times import limit_seconds
from gpuledger.sources.slurm.tres import Gpus
from gpuledger.sources.values import GPU_LIMIT, Odd, name, shown, whole_number

NUMBERS = ("JOBARRAYID", "JOBID", "JOBID#2")
NAMES: Mapping[str, tuple[str, ...]] = {
    "array": ("ARRAY_JOB_ID", "ARRAYJOBID"),
    "task": ("ARRAY_TASK_ID", "ARRAYTASKID"),
    "leader": ("HET_JOB_ID", "HETJOBID"),
    "offset": ("HET_JOB_OFFSET", "HETJOBOFFSET"),
    "state": ("STATE",),
    "submit": ("SUBMIT_TIME", "SUBMITTIME"),
    "eligible": ("ELIGIBLE_TIME", "ELIGIBLETIME"),
    "start": ("START_TIME", "STARTTIME"),
    "end": ("END_TIME", "ENDTIME"),
    "resize": ("RESIZE_TIME", "RESIZETIME"),
    "limit": ("TIME_LIMIT", "TIMELIMIT"),
    "user": ("USER", "USERNAME", "USER_NAME"),
    "account": ("ACCOUNT",),
    "partition": ("PARTITION",),
    "qos": ("QOS",),
    "cluster": ("CLUSTER",),
    "hosts": ("NODELIST",),
    "hosts_or_reason": ("NODELIST(REASON)",),
    "reason": ("REASON",),
    "held": ("TRES_ALLOC", "TRES-ALLOC", "TRESALLOC"),
    "per_job": ("TRES_PER_JOB", "TRES-PER-JOB", "TRESPERJOB"),
    "per_node": ("TRES_PER_NODE", "TRES-PER-NODE", "TRESPERNODE"),
    "nodes": ("NODES", "NUMNODES"),
    "restarts": ("RESTART_COUNT", "RESTARTCNT", "RESTARTCOUNT"),
}
"""What is read -> what its column may be called."""

OWN = (
    "state", "array", "task", "leader", "offset", "submit", "eligible", "start", "end", "resize", "hosts",
    "hosts_or_reason", "reason",
)  # fmt: skip
"""What is each job's own; the state is looked at first, and again with what it is shared with."""

SHARED = (
    "held",
    "per_job",
    "per_node",
    "nodes",
    "cluster",
    "account",
    "user",
    "partition",
    "qos",
    "limit",
    "restarts",
)
"""What many jobs have in common."""

_RESIZE = OWN.index("resize")

_NUMBER = re.compile(r"(\d+)(?:_(\d+)|_\[([^\]]*)\]?|\+(\d+))")


def found_in(columns: Collection[str]) -> dict[str, str]:
    """Return what is read -> the column that holds it, as far as there is one."""
    known = (
        (what, next((column for column in names if column in columns), None)) for what, names in NAMES.items()
    )
    return {what: column for what, column in known if column is not None}


class Number(NamedTuple):
    """The number of a job as people see it, or of the tasks of an array that wait together."""

    job: str
    array: str = ""
    tasks: str = ""


class SqueueReader(TextReader):
    """Understands a job whose fields are told apart already."""

    def __init__(self, options: ImportOptions, context: Mapping[str, object] | None = None) -> None:
        """Remember nothing yet of what jobs share."""
        super().__init__(options, context)
        self._like = lru_cache(maxsize=REPEATED)(self._as_told)

    def job(
        self, ids: Sequence[str], own: Sequence[str | None], shared: Sequence[str | None]
    ) -> Sequence[SlurmJob]:
        """Return the run that a row tells of; the tasks of an array that wait are one row.

        Args:
            ids: The number of the job, in each way in which the row tells it.
            own: What the row says of ``OWN``; None for what it does not tell.
            shared: What it says of ``SHARED``; None for what it does not tell.

        Raises:
            BadRecord: When a field that money depends on is missing or wrong.
        """
        (
            word, array, task, leader, offset, submit, eligible, start, end, resize, listed, hosts_or_reason, reason,
        ) = ["" if cell is None or cell in EMPTY else cell for cell in own]  # fmt: skip
        state = state_of("STATE", word)
        number = _number(ids, array, task, leader, offset)
        oddities: list[Odd] = []
        submitted_s = self.instant("SUBMIT_TIME", submit, oddities)
        start_s = self.instant("START_TIME", start, oddities)
        if submitted_s is None or (start_s is None and state.kind in (RUNNING, SUSPENDED)):
            raise BadRecord(
                f"{'SUBMIT_TIME' if submitted_s is None else 'START_TIME'}: is missing",
                code="missing-value",
                hint="the run cannot be told from others; ask squeue for its times, or import squeue --json",
            )
        hosts, reason = _hosts(listed or hosts_or_reason), reason or hosts_or_reason.strip("()")
        like = self._like((word, *shared))
        job = replace(
            like,
            job=number.job,
            submitted_s=submitted_s,
            eligible_s=self.instant("ELIGIBLE_TIME", eligible, oddities),
            started_s=start_of(state.kind, start_s, hosts),
            resized_s=self.instant("RESIZE_TIME", resize, oddities),
            ended_s=self.instant("END_TIME", end, oddities),
            hosts=hosts if state.kind is not PENDING else (),
            oddities=tuple(oddities),
            is_eligible=is_eligible(state.kind, reason),
            is_vague=own[_RESIZE] is None,
            raw=next((told for told in ids if told.isdigit()), None),
        )
        if number.tasks and state.kind is PENDING:
            return self.waiting(job, number.array, number.tasks)
        return (job,)

    def _as_told(self, shared: tuple[str | None, ...]) -> SlurmJob:
        """Return a job with all that it shares with others, and nothing of its own."""
        state = state_of("STATE", shared[0] or "")
        untracked = None if shared[1] is not None else "no column TRES_ALLOC"
        _, held, per_job, per_node, nodes, cluster, account, user, partition, qos, limit, restarts = map(
            _told, shared
        )
        told = self.tres.text("TRES_ALLOC", held)
        is_pending = state.kind is PENDING  # before the start what is held repeats what was asked for
        return SlurmJob(
            cluster=self.cluster_of(cluster or None),
            job="",
            state=state,
            submitted_s=0,
            user=name("USER", user) if user else None,
            account=account or None,
            asked=told if is_pending and told else self._asked(per_job, per_node, nodes),
            held=None if is_pending else told,
            untracked=untracked,
            time_limit_s=limit_seconds("", limit),
            labels=self.labels(account or None, partition, qos),
            restarts=whole_number("RESTART_COUNT", restarts) if restarts else None,
        )

    def _asked(self, per_job: str, per_node: str, nodes: str) -> Gpus | None:
        """Return the GPUs that were asked for, where the request is told for the job or for each of its hosts."""
        of_job = self._requested("TRES_PER_JOB", per_job)
        if of_job is not None:
            return of_job
        of_node = self._requested("TRES_PER_NODE", per_node)
        if of_node is None or not nodes.isdecimal():
            return None
        milli = of_node.milli * whole_number("NODES", nodes)
        if milli > GPU_LIMIT * GPU_MILLI:
            raise BadRecord(
                f"NODES: {shown(nodes)} times {of_node.milli} milli-GPU are more than any job has",
                code="out-of-bounds",
                hint="look at the job in Slurm",
            )
        return of_node._replace(milli=milli)

    def _requested(self, field: str, value: str) -> Gpus | None:
        return self.tres.details(field, [value.replace("gres/", "").replace("gres:", "")]) if value else None


def _told(value: str | None) -> str:
    return "" if value is None or value in EMPTY else value


def _number(ids: Sequence[str], array: str, task: str, leader: str, offset: str) -> Number:
    for told in ids:
        found = None if told.isdecimal() else _NUMBER.fullmatch(told)
        if found is not None:
            return Number(told, found[1], found[3] or "")
    if array and task:
        return Number(f"{array}_{task}") if task.isdigit() else Number(array, array, task)
    if offset and leader:
        return Number(f"{leader}+{offset}")
    if not ids or not ids[0].isdigit():
        raise BadRecord(
            f"JOBID: {shown(ids[0] if ids else '')} is no number of a job",
            code="bad-job-id",
            hint="see squeue",
        )
    return Number(ids[0])


def _hosts(told: str) -> tuple[str, ...]:
    return () if told.startswith("(") else hosts_of("NODELIST", told)
