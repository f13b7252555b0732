"""Jobs as accounting tells them in JSON: ``sacct --json``, and slurmrestd's ``slurmdb`` answers.

The document is read whole, its records one by one. Duplicates (the runs of a requeued job) are always among them.
Steps stand inside the records and charge nothing.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from gpuledger.kernel.errors import BadRecord
from gpuledger.sources.documents import open_document
from gpuledger.sources.pieces import PieceSource
from gpuledger.sources.protocol import Fault, ImportOptions, Translated
from gpuledger.sources.slurm.hosts import hosts_of
from gpuledger.sources.slurm.job import SlurmJob
from gpuledger.sources.slurm.reading import (
    JobReader,
    asks_for_gpus,
    number_of,
    read_jobs,
    waiting_tasks,
    with_banner,
)
from gpuledger.sources.slurm.shapes import (
    UNREADABLE,
    Association,
    TresItem,
    Value,
    Words,
    bad_shape,
    duration_of,
    gres,
    instant_of,
    limit_of,
    plain,
    small,
)
from gpuledger.sources.slurm.states import Kind, state_of
from gpuledger.sources.values import name

JOBS = "jobs"


class _Struct(msgspec.Struct, frozen=True, gc=False):
    """A part of a record."""


class _Time(_Struct, frozen=True):
    submission: Value = None
    eligible: Value = None
    start: Value = None
    end: Value = None
    elapsed: Value = None
    suspended: Value = None
    limit: Value = None


class _State(_Struct, frozen=True):
    current: Words = None


class _Tres(_Struct, frozen=True):
    allocated: list[TresItem] = []
    requested: list[TresItem] = []


class _Array(_Struct, frozen=True):
    job_id: Value = None
    task_id: Value = None
    task: str | None = None


class _Het(_Struct, frozen=True):
    job_id: Value = None
    job_offset: Value = None


class _Signal(_Struct, frozen=True):
    id: Value = None
    signal_id: Value = None


class _Exit(_Struct, frozen=True):
    return_code: Value = None
    signal: _Signal | None = None


class Record(_Struct, frozen=True):
    """A job of accounting; what is not named here is not read."""

    job_id: int
    state: _State
    time: _Time
    tres: _Tres
    cluster: str | None = None
    account: str | None = None
    user: str | None = None
    association: Association = Association()
    partition: str | None = None
    qos: str | None = None
    nodes: str | None = None
    array: _Array = _Array()
    het: _Het = _Het()
    flags: list[str] | None = None
    exit_code: _Exit | None = None
    submit_line: str | None = None
    restart_cnt: Value = None
    sluid: str | None = None
    original_sluid: str | None = None


_decoder = msgspec.json.Decoder(Record)


class AccountingReader(JobReader):
    """Understands a job of accounting."""

    def parse(self, raw: bytes) -> Sequence[SlurmJob]:
        """Return the run that a record tells of; the tasks of an array that wait are one record."""
        try:
            record = _decoder.decode(raw)
        except UNREADABLE as error:
            raise bad_shape(raw, error) from error
        job = self._job(record)
        array = plain(record.array.job_id)
        if array and job.state.kind is Kind.PENDING and record.array.task and job.job == str(record.job_id):
            return waiting_tasks(job, str(array), record.array.task)
        return (job,)

    def _job(self, record: Record) -> SlurmJob:
        time, tres, own = record.time, record.tres, record.association
        submitted_s = instant_of("time.submission", time.submission)
        if submitted_s is None:
            raise BadRecord(
                "time.submission: is missing", code="missing-value", hint="the run cannot be told from others"
            )
        account, user = record.account or own.account, record.user or own.user
        asked = self.tres.items("tres.requested", gres(tres.requested))
        held = self.tres.items("tres.allocated", gres(tres.allocated))
        return SlurmJob(
            cluster=self.cluster_of(record.cluster or own.cluster),
            job=number_of(
                record.job_id,
                plain(record.array.job_id),
                plain(record.array.task_id),
                plain(record.het.job_id),
                plain(record.het.job_offset),
            ),
            state=state_of("state.current", record.state.current or ""),
            submitted_s=submitted_s,
            eligible_s=instant_of("time.eligible", time.eligible),
            started_s=instant_of("time.start", time.start),
            ended_s=instant_of("time.end", time.end),
            elapsed_s=duration_of("time.elapsed", time.elapsed),
            suspended_s=duration_of("time.suspended", time.suspended) or 0,
            user=name("user", user) if user else None,
            account=account,
            asked=asked,
            held=held,
            untracked=None if asked or held else asks_for_gpus(record.submit_line),
            time_limit_s=limit_of(time.limit, 60),
            hosts=hosts_of("nodes", record.nodes),
            labels=self.labels(account, record.partition, record.qos),
            exit=_exit(record.exit_code),
            restarts=small(record.restart_cnt),
            lineage=record.original_sluid or record.sluid or None,
            is_altered="JOB_ALTERED" in (record.flags or ()),
            raw=str(record.job_id),
        )


def _exit(code: _Exit | None) -> str | None:
    if code is None:
        return None
    signal = code.signal or _Signal()
    number = plain(signal.id) if signal.signal_id is None else plain(signal.signal_id)
    return f"{plain(code.return_code) or 0}:{number or 0}"


class SacctJson(PieceSource):
    """Source ``slurm-sacct-json``: what ``sacct --json`` prints."""

    name = "slurm-sacct-json"
    interpreter = AccountingReader

    def read(self, path: Path, options: ImportOptions) -> Iterator[Translated | Fault]:
        """Yield every job of the document; see ``Source.read``."""
        document = open_document(path)
        pieces = document.pieces(JOBS)
        return with_banner(document, read_jobs(path, pieces, AccountingReader(options)))
