"""Source ``slurm-scontrol-jobs``: what ``scontrol show job`` prints, with ``-d`` also where each GPU is.

Times are local to whoever asked. The cluster is not told. What each host holds is counted only where GPUs are not
tracked: the indices in it are places in a host and name no device.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from gpuledger.kernel.errors import BadRecord
from gpuledger.sources.pieces import PieceSource
from gpuledger.sources.protocol import Fault, ImportOptions, Translated
from gpuledger.sources.slurm.hosts import hosts_of
from gpuledger.sources.slurm.job import SlurmJob
from gpuledger.sources.slurm.live import TextReader, is_eligible, start_of
from gpuledger.sources.slurm.reading import read_jobs
from gpuledger.sources.slurm.scontrol import read_blocks, words
from gpuledger.sources.slurm.states import Kind, state_of
from gpuledger.sources.slurm.times import limit_seconds
from gpuledger.sources.values import Odd, name, shown, whole_number

KEY = "JobId"
_PER = ("TresPerJob", "TresPerNode", "TresPerSocket", "TresPerTask")
_WANTED = (
    KEY, "ArrayJobId", "ArrayTaskId", "HetJobId", "HetJobOffset", "UserId", "Account", "QOS", "Partition", "JobState",
    "Reason", "Restarts", "TimeLimit", "SubmitTime", "EligibleTime", "StartTime", "EndTime", "SuspendTime",
    "ResizeTime", "NodeList", "TRES", "ReqTRES", "AllocTRES", *_PER,
)  # fmt: skip
_OF_HOSTS = re.compile(rb" Nodes=(\S+) CPU_IDs=\S* Mem=\S* GRES=(\S+)")
"""What the hosts of a job hold, each the same."""


class JobBlocks(TextReader):
    """Understands one block of ``scontrol show job``."""

    throttled = re.compile(rb" ArrayTaskId=\S*%")

    def parse(self, raw: bytes) -> Sequence[SlurmJob]:
        """Return the run that a block tells of; the tasks of an array that wait are one block."""
        said = words(raw, _WANTED)
        array, task = said["ArrayJobId"], said["ArrayTaskId"]
        job = self._job(raw, said, f"{array}_{task}" if task.isdigit() else _number(said))
        if array and task and not task.isdigit() and job.state.kind is Kind.PENDING:
            return self.waiting(job, array, task)
        return (job,)

    def _job(self, raw: bytes, said: Mapping[str, str], number: str) -> SlurmJob:
        oddities: list[Odd] = []

        def at(field: str) -> int | None:
            return self.instant(field, said[field], oddities)

        state = state_of("JobState", said["JobState"])
        submitted_s, changed_s = (
            at("SubmitTime"),
            at("SuspendTime"),
        )  # suspended or resumed, whichever came last
        if submitted_s is None:
            raise BadRecord(
                "SubmitTime: is missing", code="missing-value", hint="the run cannot be told from others"
            )
        hosts = hosts_of("NodeList", said["NodeList"]) if state.kind is not Kind.PENDING else ()
        asked = self.tres.text("ReqTRES", said["ReqTRES"] or said["TRES"])
        held = self.tres.text("AllocTRES", said["AllocTRES"] or said["TRES"])
        told = _of_hosts(raw) if held is None or held.model is None or len(hosts) > 1 else {}
        if held is None or held.model is None:
            on_hosts = self.tres.details("GRES", told.values())
            # Where types are not tracked, what the hosts hold names them.
            held = on_hosts if held is None or (on_hosts and on_hosts.milli == held.milli) else held
        user = said["UserId"].partition("(")[0]
        return SlurmJob(
            cluster=self.cluster_of(None),
            job=number,
            state=state,
            submitted_s=submitted_s,
            eligible_s=at("EligibleTime"),
            started_s=start_of(state.kind, at("StartTime"), hosts),
            resized_s=at("ResizeTime"),
            ended_s=at("EndTime"),
            suspended_at_s=changed_s if state.kind is Kind.SUSPENDED else None,
            resumed_at_s=changed_s if state.kind is not Kind.SUSPENDED else None,
            user=name("UserId", user) if user else None,
            account=said["Account"] or None,
            asked=asked,
            held=held,
            untracked=None if asked or held else _asks(said),
            time_limit_s=limit_seconds("", said["TimeLimit"]),
            hosts=hosts,
            host_gpus_milli=self.tres.uneven("GRES", list(told), list(told.values()), held),
            labels=self.labels(said["Account"], said["Partition"], said["QOS"]),
            restarts=whole_number("Restarts", said["Restarts"]) if said["Restarts"] else None,
            oddities=tuple(oddities),
            is_eligible=is_eligible(state.kind, said["Reason"]),
            raw=said[KEY],
        )


def _of_hosts(raw: bytes) -> dict[str, str]:
    """Return what each host holds, as far as it is told."""
    return {
        host: gres.decode()
        for hosts, gres in _OF_HOSTS.findall(raw)
        for host in hosts_of("Nodes", hosts.decode())
    }


def _number(said: Mapping[str, str]) -> str:
    if said["HetJobId"] and said["HetJobOffset"]:
        return f"{said['HetJobId']}+{said['HetJobOffset']}"
    if not said[KEY].isdigit():
        raise BadRecord(
            f"{KEY}: {shown(said[KEY])} is no number of a job", code="bad-job-id", hint="see scontrol"
        )
    return said[KEY]


def _asks(said: Mapping[str, str]) -> str | None:
    for field in _PER:
        if "gpu" in said[field] and not said[field].endswith(":0"):
            return f"{field} asks for GPUs ({shown(said[field])})"
    return None


class ScontrolJobs(PieceSource):
    """Source ``slurm-scontrol-jobs``."""

    name = "slurm-scontrol-jobs"
    interpreter = JobBlocks

    def read(self, path: Path, options: ImportOptions) -> Iterator[Translated | Fault]:
        """Yield every job of the listing; see ``Source.read``. It is held in memory: the controller holds it too."""
        pieces = list(read_blocks(path, KEY))
        reader = JobBlocks(options)
        reader.count_tasks(pieces)
        return read_jobs(path, pieces, reader)
