"""Jobs as the controller tells them in JSON: ``squeue --json``, ``scontrol show job --json``, slurmrestd's ``slurm``.

The controller remembers a job for some minutes after its end, and knows its last run only. The end of a job that
runs, and the start of one that waits, are expectations. Where resources are not tracked, what each host holds is
told beside them, while the job holds it.
"""

import re
from collections.abc import Sequence

import msgspec

from gpuledger.kernel.errors import BadRecord
from gpuledger.sources.slurm.hosts import hosts_of
from gpuledger.sources.slurm.job import SlurmJob
from gpuledger.sources.slurm.live import LiveReader, is_eligible, start_of
from gpuledger.sources.slurm.reading import number_of
from gpuledger.sources.slurm.shapes import (
    UNREADABLE,
    Value,
    Words,
    bad_shape,
    instant_of,
    limit_of,
    plain,
    small,
)
from gpuledger.sources.slurm.states import Kind, state_of
from gpuledger.sources.values import name, shown

_PER = ("tres_per_job", "tres_per_node", "tres_per_socket", "tres_per_task")


class Record(msgspec.Struct, frozen=True, gc=False):
    """A job of the controller; what is not named here is not read."""

    job_id: int
    job_state: Words
    submit_time: Value = None
    eligible_time: Value = None
    start_time: Value = None
    end_time: Value = None
    resize_time: Value = None
    suspend_time: Value = None
    state_reason: str | None = None
    cluster: str | None = None
    account: str | None = None
    user_name: str | None = None
    partition: str | None = None
    qos: str | None = None
    nodes: str | None = None
    tres_alloc_str: str | None = None
    tres_req_str: str | None = None
    gres_detail: list[str] | None = None
    tres_per_job: str | None = None
    tres_per_node: str | None = None
    tres_per_socket: str | None = None
    tres_per_task: str | None = None
    array_job_id: Value = None
    array_task_id: Value = None
    array_task_string: str | None = None
    het_job_id: Value = None
    het_job_offset: Value = None
    time_limit: Value = None
    restart_cnt: Value = None
    sluid: str | None = None
    original_sluid: str | None = None


_decoder = msgspec.json.Decoder(Record)


class ControllerReader(LiveReader):
    """Understands a job of the controller."""

    throttled = re.compile(rb'"array_task_string":\s*"[^"]*%')

    def parse(self, raw: bytes) -> Sequence[SlurmJob]:
        """Return the run that a record tells of; the tasks of an array that wait are one record."""
        try:
            record = _decoder.decode(raw)
        except UNREADABLE as error:
            raise bad_shape(raw, error) from error
        job = self._job(record)
        array, tasks = plain(record.array_job_id), record.array_task_string
        if array and tasks and job.state.kind is Kind.PENDING and plain(record.array_task_id) is None:
            return self.waiting(job, str(array), tasks)
        return (job,)

    def _job(self, record: Record) -> SlurmJob:
        submitted_s = instant_of("submit_time", record.submit_time)
        if submitted_s is None:
            raise BadRecord(
                "submit_time: is missing", code="missing-value", hint="the run cannot be told from others"
            )
        state = state_of("job_state", record.job_state or "")
        paused_s = instant_of("suspend_time", record.suspend_time)  # of the last change, either way
        asked = self.tres.text("tres_req_str", record.tres_req_str or "")
        held = self.tres.text("tres_alloc_str", record.tres_alloc_str or "")
        if held is None and record.gres_detail:
            held = self.tres.details("gres_detail", record.gres_detail)
        hosts = hosts_of("nodes", record.nodes) if state.kind is not Kind.PENDING else ()
        return SlurmJob(
            cluster=self.cluster_of(record.cluster),
            job=number_of(
                record.job_id,
                plain(record.array_job_id),
                plain(record.array_task_id),
                plain(record.het_job_id),
                plain(record.het_job_offset),
            ),
            state=state,
            submitted_s=submitted_s,
            eligible_s=instant_of("eligible_time", record.eligible_time),
            started_s=start_of(state.kind, instant_of("start_time", record.start_time), hosts),
            resized_s=instant_of("resize_time", record.resize_time),
            ended_s=instant_of("end_time", record.end_time),
            suspended_at_s=paused_s if state.kind is Kind.SUSPENDED else None,
            resumed_at_s=paused_s if state.kind is not Kind.SUSPENDED else None,
            user=name("user_name", record.user_name) if record.user_name else None,
            account=record.account,
            asked=asked,
            held=held,
            untracked=None if asked or held else _asks(record),
            time_limit_s=limit_of(record.time_limit, 60),
            hosts=hosts,
            host_gpus_milli=self.tres.uneven("gres_detail", hosts, record.gres_detail or (), held),
            labels=self.labels(record.account, record.partition, record.qos),
            restarts=small(record.restart_cnt),
            lineage=record.original_sluid or record.sluid or None,
            is_eligible=is_eligible(state.kind, record.state_reason or ""),
            raw=str(record.job_id),
        )


def _asks(record: Record) -> str | None:
    """Return what of a request names GPUs, such as ``gres/gpu:8`` for the job or ``gres:gpu:4`` for each host."""
    for field in _PER:
        told: str | None = getattr(record, field)
        if told and "gpu" in told and not told.endswith(":0"):
            return f"{field} asks for GPUs ({shown(told)})"
    return None
