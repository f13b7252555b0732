"""Jobs as Slurm's job completion plugins tell them, one JSON document a line: ``jobcomp/kafka``, ``elasticsearch``.

Times are UTC without saying so. A document of a start has no state; one of an end has no sign of its own: both may
stand in one file, in any order. What a document says of its state is the base state alone, so that a run that was
requeued reads as ``PENDING`` with an end. A job that was resized has the same submit time in all its documents, and
its last size begins at ``@start``, although ``elapsed`` counts from the first.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from gpuledger.kernel.errors import BadRecord
from gpuledger.sources.ndjson import object_lines
from gpuledger.sources.pieces import PieceSource
from gpuledger.sources.protocol import Fault, ImportOptions, Translated
from gpuledger.sources.slurm.hosts import hosts_of
from gpuledger.sources.slurm.job import SlurmJob
from gpuledger.sources.slurm.reading import JobReader, number_of, read_jobs
from gpuledger.sources.slurm.shapes import UNREADABLE, Value, bad_shape, limit_of, plain
from gpuledger.sources.slurm.states import Kind, State, state_of
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


_decoder = msgspec.json.Decoder(Document)


class _Documents(JobReader):
    """Understands a document; its times are UTC, whatever the zone of the import."""

    def __init__(self, options: ImportOptions, context: Mapping[str, object] | None = None) -> None:
        super().__init__(options, context)
        self.times = LocalTimes(None)

    def parse(self, raw: bytes) -> Sequence[SlurmJob]:
        """Return the run that a document tells of."""
        try:
            document = _decoder.decode(raw)
        except UNREADABLE as error:
            raise bad_shape(raw, error) from error
        submitted_s = self.time("@submit", document.submit)[0]
        if submitted_s is None:
            raise BadRecord(
                "@submit: is missing", code="missing-value", hint="the run cannot be told from others"
            )
        start_s, end_s = self.time("@start", document.start)[0], self.time("@end", document.end)[0]
        state = _state(document, end_s)
        oddities: tuple[Odd, ...] = ()
        if state.kind is Kind.RESIZED and start_s == end_s:
            start_s, oddities = None, (_LOST_SIZE,)
        return (
            SlurmJob(
                **self._words(document),
                state=state,
                submitted_s=submitted_s,
                eligible_s=self.time("@eligible", document.eligible)[0],
                started_s=start_s,
                resized_s=_resized_s(document, state, start_s, end_s),
                ended_s=end_s,
                oddities=oddities,
            ),
        )

    def _words(self, document: Document) -> dict[str, Any]:
        account = document.account
        het_id, offset = document.het_job_id, document.het_job_offset
        if het_id is None:  # as they were called up to 20.02
            het_id, offset = document.pack_job_id, document.pack_job_offset
        return {
            "cluster": self.cluster_of(document.cluster),
            "job": number_of(
                document.jobid,
                plain(document.array_job_id),
                plain(document.array_task_id),
                plain(het_id),
                plain(offset),
            ),
            "user": name("username", document.username) if document.username else None,
            "account": account,
            "asked": self.tres.text("tres_req", document.tres_req or ""),
            "held": self.tres.text("tres_alloc", document.tres_alloc or ""),
            "time_limit_s": limit_of(document.time_limit, 1),
            "hosts": hosts_of("nodes", document.nodes),
            "labels": self.labels(account, document.partition, document.qos),
            "exit": document.exit_code or None,
            "lineage": document.original_sluid or document.sluid or None,
            "raw": str(document.jobid),
        }


_STARTED = State(Kind.RUNNING, "RUNNING")
_REQUEUED = State(Kind.REQUEUED, "REQUEUED")
_LOST_SIZE = (
    "size-not-told",
    "state: RESIZING without a span: from when on the job had this size is not told here; import sacct's too",
)


def _state(document: Document, end_s: int | None) -> State:
    if document.state is None:
        return _STARTED
    state = state_of("state", document.state)
    return _REQUEUED if state.kind is Kind.PENDING and end_s is not None else state


def _resized_s(document: Document, state: State, start_s: int | None, end_s: int | None) -> int | None:
    """Return when the last size began, when it is not the first: ``elapsed`` counts from the first start."""
    elapsed_s = plain(document.elapsed)
    if state.kind is Kind.RESIZED or not state.is_over or None in (elapsed_s, start_s, end_s):
        return None
    assert elapsed_s is not None and start_s is not None and end_s is not None  # noqa: S101, PT018 - narrows
    return start_s if 0 <= end_s - elapsed_s < start_s <= end_s else None


class Jobcomp(PieceSource):
    """Source ``slurm-jobcomp``: documents of job completion, of starts and of ends."""

    name = "slurm-jobcomp"
    interpreter = _Documents

    def read(self, path: Path, options: ImportOptions) -> Iterator[Translated | Fault]:
        """Yield every document of the file; see ``Source.read``."""
        return read_jobs(path, object_lines(path), _Documents(options))
