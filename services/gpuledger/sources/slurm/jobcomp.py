"""Jobs as Slurm's job completion plugins tell them, one JSON document a line: ``jobcomp/kafka``, ``elasticsearch``.

Times are UTC without saying so. A document of a start has no state; one of an end has no sign of its own: both may
stand in one file, in any order. What a document says of its state is the base state alone, so that a run that was
requeued reads as ``PENDING`` with an end. A job that was resized has the same submit time in all its documents, and
its last size begins at ``@start``, although ``elapsed`` counts from the first.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path

import msgspec
from msgspec.structs import replace

from gpuledger.kernel.errors import BadRecord
from gpuledger.sources.ndjson import object_lines
from gpuledger.sources.pieces import PieceSource
from gpuledger.sources.protocol import Fault, ImportOptions, Translated
from gpuledger.sources.slurm.hosts import hosts_of
from gpuledger.sources.slurm.job import SlurmJob
from gpuledger.sources.slurm.reading import REPEATED, JobReader, number_of, read_jobs
from gpuledger.sources.slurm.shapes import UNREADABLE, Value, bad_shape, limit_of, plain
from gpuledger.sources.slurm.states import PENDING, REQUEUED, RESIZED, RUNNING, State, state_of
from gpuledger.sources.values import LocalTimes, Odd, name


class Document(msgspec.Struct, frozen=True, gc=False):
    """A document; what is not named here is not read, scripts and environments least of all."""

    jobid: int
    submit: str | None = msgspec.field(default=None, name="@submit")
    eligible: str | None = msgspec.field(default=None, name="@eligible")
    start: str | None = msgspec.field(default=None, name="@start")
    end: str | None = msgspec.field(default=None, name="@end")
    elapsed: Value = None
    state: str | None = None
    cluster: str | None = None
    account: str | None = None
    username: str | None = None
    partition: str | None = None
    qos: str | None = None
    nodes: str | None = None
    tres_alloc: str | None = None
    tres_req: str | None = None
    array_job_id: Value = None
    array_task_id: Value = None
    het_job_id: Value = None
    het_job_offset: Value = None
    pack_job_id: Value = None
    pack_job_offset: Value = None
    time_limit: Value = None
    exit_code: str | None = None
    sluid: str | None = None
    original_sluid: str | None = None


_Word = str | None
_Shared = tuple[_Word, _Word, _Word, _Word, _Word, _Word, _Word, Value, _Word, bool]
"""Cluster, account, user, partition, QOS, TRES held and asked for, limit, state, and whether there is an end."""

_NOTHING_ODD: tuple[Odd, ...] = ()

_decoder = msgspec.json.Decoder(Document)


class _Documents(JobReader):
    """Understands a document; its times are UTC, whatever the zone of the import."""

    def __init__(self, options: ImportOptions, context: Mapping[str, object] | None = None) -> None:
        super().__init__(options, context)
        self.times = LocalTimes(None)
        self._like = lru_cache(maxsize=REPEATED)(self._as_told)

    def parse(self, raw: bytes) -> Sequence[SlurmJob]:
        """Return the run that a document tells of."""
        try:
            document = _decoder.decode(raw)
        except UNREADABLE as error:
            raise bad_shape(raw, error) from error
        submit, eligible, known = document.submit, document.eligible, self.times.known
        submitted_s = known(submit) if submit else None
        if submitted_s is None:
            submitted_s = self.moment("@submit", submit)
        if submitted_s is None:
            raise BadRecord(
                "@submit: is missing", code="missing-value", hint="the run cannot be told from others"
            )
        start, end = document.start, document.end
        start_s, end_s = known(start) if start else None, known(end) if end else None
        if start_s is None:
            start_s = self.moment("@start", start)
        if end_s is None:
            end_s = self.moment("@end", end)
        like = self._like(
            (
                document.cluster,
                document.account,
                document.username,
                document.partition,
                document.qos,
                document.tres_alloc,
                document.tres_req,
                document.time_limit,
                document.state,
                end_s is not None,
            )
        )
        number, oddities = str(document.jobid), _NOTHING_ODD
        if like.state.kind is RESIZED and start_s == end_s:
            start_s, oddities = None, (_LOST_SIZE,)
        return (
            replace(
                like,
                job=_number(document, number),
                submitted_s=submitted_s,
                eligible_s=submitted_s if eligible == submit else self.moment("@eligible", eligible),
                started_s=start_s,
                resized_s=_resized_s(document, like.state, start_s, end_s),
                ended_s=end_s,
                hosts=hosts_of("nodes", document.nodes),
                exit=document.exit_code or None,
                lineage=document.original_sluid or document.sluid or None,
                raw=number,
                oddities=oddities,
            ),
        )

    def _as_told(self, shared: _Shared) -> SlurmJob:
        """Return a job with all that it shares with others, and nothing of its own."""
        cluster, account, user, partition, qos, held, asked, limit, word, has_end = shared
        return SlurmJob(
            cluster=self.cluster_of(cluster),
            job="",
            state=_state(word, has_end=has_end),
            submitted_s=0,
            user=name("username", user) if user else None,
            account=account,
            asked=self.tres.text("tres_req", asked or ""),
            held=self.tres.text("tres_alloc", held or ""),
            time_limit_s=limit_of(limit, 1),
            labels=self.labels(account, partition, qos),
        )


def _number(document: Document, own: str) -> str:
    array, task, leader, part = (
        document.array_job_id,
        document.array_task_id,
        document.het_job_id,
        document.het_job_offset,
    )
    if leader is None:  # as they were called up to 20.02
        leader, part = document.pack_job_id, document.pack_job_offset
    if not (array or task or leader or part) and document.jobid >= 0:
        return own  # as of most jobs
    return number_of(document.jobid, plain(array), plain(task), plain(leader), plain(part))


_STARTED = State(RUNNING, "RUNNING")
_REQUEUED = State(REQUEUED, "REQUEUED")
_LOST_SIZE = (
    "size-not-told",
    "state: RESIZING without a span: from when on the job had this size is not told here; import sacct's too",
)


def _state(word: str | None, *, has_end: bool) -> State:
    if word is None:
        return _STARTED
    state = state_of("state", word)
    return _REQUEUED if state.kind is PENDING and has_end else state


def _resized_s(document: Document, state: State, start_s: int | None, end_s: int | None) -> int | None:
    """Return when the last size began, when it is not the first: ``elapsed`` counts from the first start."""
    if start_s is None or end_s is None or document.elapsed == end_s - start_s:
        return None  # as of almost every job
    elapsed_s = plain(document.elapsed)
    if elapsed_s is None or not 0 <= end_s - elapsed_s < start_s <= end_s:
        return None
    return start_s if state.is_over and state.kind is not RESIZED else None


class Jobcomp(PieceSource):
    """Source ``slurm-jobcomp``: documents of job completion, of starts and of ends."""

    name = "slurm-jobcomp"
    interpreter = _Documents

    def read(self, path: Path, options: ImportOptions) -> Iterator[Translated | Fault]:
        """Yield every document of the file; see ``Source.read``."""
        return read_jobs(path, object_lines(path), _Documents(options))
