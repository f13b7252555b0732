"""The Microsoft Philly trace as its authors published it: ``cluster_job_log``, every attempt of every job.

A run is an attempt. What its times do not say stays unknown: an attempt without a start, or one before the last
without an end, is reported and not charged. A last attempt without an end was running when the trace was cut: it is
counted up to the last time in the file, as an estimate.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

import msgspec

from gpuledger.kernel.amounts import GPU_MILLI
from gpuledger.kernel.errors import BadRecord
from gpuledger.sources.attempts import Attempt, PlacedJob
from gpuledger.sources.documents import open_document
from gpuledger.sources.files import file_size
from gpuledger.sources.jobs import NO_USER, Job, Teams
from gpuledger.sources.lines import Line, open_lines
from gpuledger.sources.pacific import with_offset
from gpuledger.sources.philly_hosts import NAME, PhillyHosts
from gpuledger.sources.pieces import Facts, Interpreter, interpret, interpret_again
from gpuledger.sources.protocol import Fault, ImportOptions, Translated
from gpuledger.sources.spans import NEVER_STARTED, TRACE_END
from gpuledger.sources.values import (
    PART_LIMIT_BYTES,
    LocalTimes,
    Odd,
    cluster_name,
    name,
    present,
    unknown_state,
    word,
)

_TIME = rb'"([0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9:]{8}%s)"'
_PLACES = 16_384
"""Sets of devices that are understood once: most jobs hold one GPU, or all of a server."""

_STATES = frozenset(("Pass", "Killed", "Failed"))


class _Server(msgspec.Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    ip: str
    gpus: tuple[str, ...]


class _Attempt(msgspec.Struct, forbid_unknown_fields=True):
    start_time: str | None = None
    end_time: str | None = None
    detail: tuple[_Server, ...] = ()


class _Job(msgspec.Struct, forbid_unknown_fields=True):
    status: str
    vc: str
    jobid: str
    attempts: list[_Attempt]
    user: str | None = None
    submitted_time: str | None = None


_decoder = msgspec.json.Decoder(_Job)
_hosts = PhillyHosts()


class PhillyJson:
    """Source ``philly-json``: ``cluster_job_log``, ``cluster_gpu_util`` or ``cluster_machine_list``."""

    name = NAME

    def read(self, path: Path, options: ImportOptions) -> Iterator[Translated | Fault]:
        """Yield every job of the log, or every row of a table beside it; see ``Source.read``."""
        if not _holds_json(path):
            return _hosts.read(path, options)
        interpreter = _Jobs(options)
        document = open_document(path)
        interpreter.look_through(document.data)
        return interpret(path, document.pieces(), interpreter)

    def retry(self, raw: bytes, context: Mapping[str, object]) -> Translated:
        """Translate one job or row again; see ``Source.retry``."""
        if "header" in context:
            return _hosts.retry(raw, context)
        return interpret_again(_Jobs, raw, context)

    def size(self, path: Path) -> int:
        """Return the size of the file on disk."""
        return file_size(path)


class _Jobs(Interpreter):
    def __init__(self, options: ImportOptions, context: Mapping[str, object] | None = None) -> None:
        super().__init__(options, context)
        self._cluster = cluster_name(options.cluster or PhillyJson.name)
        self._source = f"trace/philly-json/{self._cluster}"
        self._times = LocalTimes(options.timezone)
        self._teams = Teams(context)
        kept = (context or {}).get("trace_end_s")
        self._trace_end_s = kept if isinstance(kept, int) else 0

    def look_through(self, data: bytes) -> None:
        """Find the last time in the file: there the trace was cut."""
        for suffix in (b"", b" PST", b" PDT"):
            if suffix in data and (times := re.findall(_TIME % suffix, data)):
                with suppress(BadRecord):  # a letter when its job is read
                    self._trace_end_s = max(self._trace_end_s, self._read("time", max(times).decode())[0])

    def remember(self, raw: bytes) -> dict[str, object]:
        kept: dict[str, object] = {"trace_end_s": self._trace_end_s}
        try:
            return kept | self._teams.remember(self._cluster, _decoder.decode(raw).vc)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            return kept

    def translate(self, raw: bytes) -> Facts:
        return self.job(raw).facts()

    def job(self, raw: bytes) -> PlacedJob:
        """Return a job and its attempts.

        Raises:
            BadRecord: When it cannot be understood.
        """
        job = _decoded(raw)
        job_id = name("jobid", job.jobid, limit_bytes=PART_LIMIT_BYTES)
        status = word("status", job.status)
        oddities: list[Odd] = []
        submitted_s = self._optional("submitted_time", job.submitted_time, oddities)
        attempts = list(self._attempts(job, oddities))
        if submitted_s is None and not attempts:
            raise BadRecord(
                "submitted_time: is missing, and no attempt has a start: nothing says when the job was",
                code="missing-value",
                hint="leave the job out",
            )
        account, clashes = self._teams.account("vc", self._cluster, job.vc)
        if status not in _STATES:
            oddities.append(unknown_state("status", status))
        is_cut = bool(attempts) and attempts[-1].estimated
        asked = max((attempt.gpus_milli for attempt in attempts), default=0)
        booked = Job(
            source=self._source,
            cluster=self._cluster,
            workload=job_id,
            account=account,
            user=word("user", job.user) if job.user else NO_USER,
            gpus_milli=asked,
            submitted_s=submitted_s,
            started_s=None,
            ended_s=None if attempts else submitted_s,
            reason=TRACE_END if is_cut else status.lower() if attempts else NEVER_STARTED,
            estimated=not attempts,
            labels={"vc": job.vc},
        )
        return PlacedJob(booked, attempts, [*oddities, *clashes])

    def _attempts(self, job: _Job, oddities: list[Odd]) -> Iterator[Attempt]:
        """Yield the attempts that are known; what is odd goes to the list."""
        for number, attempt in enumerate(job.attempts, start=1):
            place = f"attempts[{number}]"
            started_s = self._optional(f"{place}.start_time", attempt.start_time, oddities)
            ended_s = self._optional(f"{place}.end_time", attempt.end_time, oddities)
            if started_s is None:
                oddities.append(
                    ("attempt-without-start", f"{place}: has no start; nothing is charged for it")
                )
                continue
            is_cut = ended_s is None and number == len(job.attempts)
            if ended_s is None:
                if not is_cut:
                    message = f"{place}: has no end and is not the last; nothing is charged for it"
                    oddities.append(("attempt-without-end", message))
                    continue
                ended_s = max(self._trace_end_s, started_s)
            if ended_s < started_s:
                message = f"{place}: ends {started_s - ended_s} s before its start; 0 is charged for it"
                oddities.append(("end-before-start", message))
            hosts, devices = _placed(attempt.detail)
            if not devices:
                oddities.append(("no-gpus", f"{place}: names no GPU; 0 is charged for it"))
            yield Attempt(
                number=number,
                started_s=started_s,
                ended_s=ended_s,
                gpus_milli=len(devices or ()) * GPU_MILLI,
                hosts=hosts,
                gpu_uuids=devices,
                estimated=is_cut,
            )

    def _optional(self, field: str, value: str | None, oddities: list[Odd]) -> int | None:
        if value is None:
            return None
        known_s = self._times.known(value)  # of an hour that was read before
        if known_s is not None:
            return known_s
        if not present(value):
            return None
        at_s, doubt = self._read(field, value)
        if doubt:
            oddities.append(doubt)
        return at_s

    def _read(self, field: str, value: str) -> tuple[int, Odd | None]:
        return self._times.read(field, with_offset(value))


def _holds_json(path: Path) -> bool:
    """Say whether the file begins as a JSON document does, rather than with the header of a table."""
    first = next(open_lines(path))
    return isinstance(first, Line) and not first.raw.startswith((b"time,", b"machineId,"))


@lru_cache(maxsize=_PLACES)
def _placed(detail: tuple[_Server, ...]) -> tuple[list[str], list[str] | None]:
    """Return the hosts of an attempt and its devices, each once: a name such as gpu0 repeats on every server."""
    devices = list(dict.fromkeys(f"{s.ip}/{name('gpus', gpu)}" for s in detail for gpu in s.gpus))
    return [name("ip", ip) for ip in dict.fromkeys(server.ip for server in detail)], devices or None


def _decoded(raw: bytes) -> _Job:
    try:
        return _decoder.decode(raw)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise BadRecord(
            f"is no job of cluster_job_log: {error}",
            code="bad-field",
            hint="the keys are status, vc, jobid, attempts, submitted_time and user",
        ) from error
