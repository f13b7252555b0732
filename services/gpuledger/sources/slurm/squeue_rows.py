"""One job of ``squeue`` in text, its fields by column, whatever the columns are called -> a run of a job.

Columns have two names, as the short and the long format of the command print them. What is allocated is told in one
column only; where it is missing, how many GPUs a job holds is not known: what it asked for of each host is not what
it got.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from gpuledger.kernel.amounts import GPU_MILLI
from gpuledger.kernel.errors import BadRecord
from gpuledger.sources.slurm.hosts import hosts_of
from gpuledger.sources.slurm.job import SlurmJob
from gpuledger.sources.slurm.live import TextReader, is_eligible, start_of
from gpuledger.sources.slurm.reading import EMPTY
from gpuledger.sources.slurm.states import Kind, state_of
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

    def job(self, ids: Sequence[str], said: Mapping[str, str]) -> Sequence[SlurmJob]:
        """Return the run that a row tells of; the tasks of an array that wait are one row.

        Args:
            ids: The number of the job, in each way in which the row tells it.
            said: What is read -> what the row says of it.

        Raises:
            BadRecord: When a field that money depends on is missing or wrong.
        """
        fields = {what: "" if value in EMPTY else value for what, value in said.items()}
        state = state_of("STATE", fields.get("state", ""))
        number = _number(ids, fields)
        oddities: list[Odd] = []

        def at(what: str) -> int | None:
            return self.instant(NAMES[what][0], fields.get(what, ""), oddities)

        submitted_s, start_s = at("submit"), at("start")
        if submitted_s is None or (start_s is None and state.kind in (Kind.RUNNING, Kind.SUSPENDED)):
            column = NAMES["submit" if submitted_s is None else "start"][0]
            raise BadRecord(
                f"{column}: is missing",
                code="missing-value",
                hint="the run cannot be told from others; ask squeue for its times, or import squeue --json",
            )
        hosts, reason = _hosts(fields), fields.get("reason") or fields.get("hosts_or_reason", "").strip("()")
        told = self.tres.text("TRES_ALLOC", fields.get("held", ""))
        held = None if state.kind is Kind.PENDING else told  # before the start it repeats what was asked for
        asked = told if state.kind is Kind.PENDING and told else self._asked(fields)
        account, user = fields.get("account"), fields.get("user")
        job = SlurmJob(
            cluster=self.cluster_of(fields.get("cluster") or None),
            job=number.job,
            state=state,
            submitted_s=submitted_s,
            eligible_s=at("eligible"),
            started_s=start_of(state.kind, start_s, hosts),
            resized_s=at("resize"),
            ended_s=at("end"),
            user=name("USER", user) if user else None,
            account=account or None,
            asked=asked,
            held=held,
            untracked=None if "held" in said else "no column TRES_ALLOC",
            time_limit_s=limit_seconds("", fields.get("limit", "")),
            hosts=hosts if state.kind is not Kind.PENDING else (),
            labels=self.labels(account, fields.get("partition"), fields.get("qos")),
            restarts=whole_number("RESTART_COUNT", fields["restarts"]) if fields.get("restarts") else None,
            oddities=tuple(oddities),
            is_eligible=is_eligible(state.kind, reason),
            is_vague="resize" not in said,
            raw=next((told for told in ids if told.isdigit()), None),
        )
        if number.tasks and state.kind is Kind.PENDING:
            return self.waiting(job, number.array, number.tasks)
        return (job,)

    def _asked(self, fields: Mapping[str, str]) -> Gpus | None:
        """Return the GPUs that were asked for, where the request is told for the job or for each of its hosts."""
        per_job = self._requested("TRES_PER_JOB", fields.get("per_job", ""))
        if per_job is not None:
            return per_job
        per_node = self._requested("TRES_PER_NODE", fields.get("per_node", ""))
        nodes = fields.get("nodes", "")
        if per_node is None or not nodes.isdecimal():
            return None
        milli = per_node.milli * whole_number("NODES", nodes)
        if milli > GPU_LIMIT * GPU_MILLI:
            raise BadRecord(
                f"NODES: {shown(nodes)} times {per_node.milli} milli-GPU are more than any job has",
                code="out-of-bounds",
                hint="look at the job in Slurm",
            )
        return per_node._replace(milli=milli)

    def _requested(self, field: str, value: str) -> Gpus | None:
        return self.tres.details(field, [value.replace("gres/", "").replace("gres:", "")]) if value else None


def _number(ids: Sequence[str], fields: Mapping[str, str]) -> Number:
    for told in ids:
        found = _NUMBER.fullmatch(told)
        if found is not None:
            return Number(told, found[1], found[3] or "")
    array, task, offset = fields.get("array"), fields.get("task"), fields.get("offset")
    if array and task:
        return Number(f"{array}_{task}") if task.isdigit() else Number(array, array, task)
    if offset and fields.get("leader"):
        return Number(f"{fields['leader']}+{offset}")
    if not ids or not ids[0].isdigit():
        raise BadRecord(
            f"JOBID: {shown(ids[0] if ids else '')} is no number of a job",
            code="bad-job-id",
            hint="see squeue",
        )
    return Number(ids[0])


def _hosts(fields: Mapping[str, str]) -> tuple[str, ...]:
    told = fields.get("hosts") or fields.get("hosts_or_reason", "")
    return () if told.startswith("(") else hosts_of("NODELIST", told)
