"""The Standard Workload Format, version 2.2: one job on each line, 18 fields, -1 for what is not known.

The format counts processors. Here each processor is a GPU: the first record of a file says so, unless the header
has the line ``; Note: processors are GPUs``. Nothing that is not known is guessed: a job that ran and does not
say how long, since when or on how many processors is a dead letter.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec.structs import replace

from gpuledger.kernel.amounts import GPU_MILLI
from gpuledger.kernel.errors import BadRecord, Refused
from gpuledger.sources.attempts import Attempt, PlacedJob
from gpuledger.sources.files import path_text
from gpuledger.sources.jobs import NO_USER, Job, Teams
from gpuledger.sources.lines import Broken, Line, open_lines
from gpuledger.sources.pieces import Facts, Interpreter, PieceSource, interpret
from gpuledger.sources.protocol import Fault, ImportOptions, Translated
from gpuledger.sources.swf_header import Header, read_header
from gpuledger.sources.values import (
    LocalTimes,
    Odd,
    cluster_name,
    gpu_count,
    instant_in_bounds,
    seconds_and_fraction,
    unknown_state,
    whole_number,
)

_FIELDS = 18
_STATUS = 10
_UNKNOWN = "-1"
_NO_GROUP = "unknown"
_PARTIAL = ("2", "3", "4")
_CANCELLED = "5"
_REASONS = {
    "0": "failed",
    "1": "completed",
    "3": "completed",
    "4": "failed",
    "5": "cancelled",
    "-1": "unknown",
}
_CONTINUED = "2"


def _split(path: Path, lines: Iterator[Line | Broken]) -> tuple[list[bytes], Iterator[Line | Broken]]:
    """Return the comments at the head of a file, and the lines after them.

    Raises:
        Refused: When there are none, and the first line has not 18 fields either.
    """
    comments: list[bytes] = []
    for line in lines:
        if isinstance(line, Line) and line.raw.lstrip().startswith(b";"):
            comments.append(line.raw)
        elif isinstance(line, Broken) or line.raw.strip():
            if not comments and (isinstance(line, Broken) or len(line.raw.split()) != _FIELDS):
                raise Refused(
                    f"{path_text(path)}:{line.number}: is no log in the Standard Workload Format",
                    hint=f"it begins with comments (;), and has {_FIELDS} fields on each line",
                )
            return comments, _after(line, lines)
    return comments, iter(())


def _after(first: Line | Broken, rest: Iterator[Line | Broken]) -> Iterator[Line | Broken]:
    """Yield the lines that are no comments."""
    yield first
    for line in rest:
        if isinstance(line, Broken) or not line.raw.lstrip().startswith(b";"):
            yield line


def _grouped(lines: Iterator[Line | Broken]) -> Iterator[Line | Broken]:
    """Put the lines of a job's partial executions to the line that they follow: together they are one job."""
    held: Line | None = None
    for line in lines:
        if isinstance(line, Line) and held is not None and _continues(held.raw, line.raw):
            held = replace(line, number=held.number, raw=held.raw + b"\n" + line.raw)
            continue
        if held is not None:
            yield held
        held = line if isinstance(line, Line) else None
        if isinstance(line, Broken):
            yield line
    if held is not None:
        yield held


def _continues(held: bytes, raw: bytes) -> bool:
    """Say whether a line is a partial execution of the job on the line that is held."""
    if raw.split(None, 1)[:1] != held.split(None, 1)[:1]:
        return False
    fields = raw.split()
    return len(fields) == _FIELDS and fields[_STATUS].decode("latin-1") in _PARTIAL


class _Row(msgspec.Struct, frozen=True, gc=False):
    """What is read of a line; None for what is not known.

    Args:
        number: The job's number.
        waited_s: Field 3.
        ran_s: Field 4.
        allocated: Field 5.
        requested: Field 8.
        status: Field 11.
        fields: All of them, as written.
    """

    number: int
    waited_s: int | None
    ran_s: int | None
    allocated: int | None
    requested: int | None
    status: str
    fields: Sequence[str]


class _Jobs(Interpreter):
    def __init__(self, options: ImportOptions, context: Mapping[str, object] | None = None) -> None:
        super().__init__(options, context)
        LocalTimes(options.timezone)  # a zone that does not exist is refused, whether it is needed or not
        self._cluster = cluster_name(options.cluster or Swf.name)
        self._source = f"trace/swf/{self._cluster}"
        self._teams = Teams()
        self.header = Header.remembered(context or {})

    def remember(self, raw: bytes) -> dict[str, object]:
        del raw
        return self.header.remember()

    def translate(self, raw: bytes) -> Facts:
        return self.job(raw).facts()

    def job(self, raw: bytes) -> PlacedJob:
        """Return the job of a line and of the partial executions that follow it.

        Raises:
            BadRecord: When it cannot be understood.
        """
        rows = [_row(line) for line in raw.split(b"\n")]
        first = rows[0]
        partial = [row for row in rows if row.status in _PARTIAL]
        submitted_s = instant_in_bounds(
            "submit time", self.header.origin_s + _known("submit time", first.fields[1]), first.fields[1]
        )
        runs = partial or [first]
        attempts, ended_s = _attempts(runs, submitted_s)
        account, oddities = self._teams.account("group", self._cluster, _group(first.fields[12]))
        asked = first.requested if first.allocated is None else first.allocated
        job = Job(
            source=self._source,
            cluster=self._cluster,
            workload=f"{first.number}-{submitted_s}",
            account=account,
            user=_or(first.fields[11], NO_USER),
            gpus_milli=(asked or 0) * GPU_MILLI,
            submitted_s=submitted_s,
            started_s=None,
            ended_s=None if attempts else ended_s,
            reason=_REASONS.get(runs[-1].status, "unknown"),
            time_limit_s=_optional("requested time", first.fields[8]) or None,
            labels=self.header.labels(queue=first.fields[14], partition=first.fields[15]),
        )
        oddities = [*self.header.first_doubts(), *oddities, *self._oddities(rows, partial)]
        return PlacedJob(job, attempts, oddities, is_over=runs[-1].status != _CONTINUED)

    def _oddities(self, rows: Sequence[_Row], partial: Sequence[_Row]) -> Iterator[Odd]:
        status = rows[-1].status
        if status not in _REASONS and status != _CONTINUED:
            yield unknown_state("status", status)
        most = max(row.allocated or 0 for row in rows)
        if self.header.processors is not None and most > self.header.processors:
            message = f"number of allocated processors: {most} of {self.header.processors}; {most} are booked"
            yield "over-capacity", message
        whole = rows[0]
        if partial and whole not in partial and whole.ran_s is not None:
            ran_s = sum(row.ran_s or 0 for row in partial)
            if ran_s != whole.ran_s:
                message = f"run time: {whole.ran_s} s, but its parts are {ran_s} s, which are booked"
                yield "duration-differs", message


def _attempts(rows: Sequence[_Row], submitted_s: int) -> tuple[list[Attempt], int]:
    """Return the times in which a job ran, and when it was over; it waited before each."""
    attempts: list[Attempt] = []
    now_s = submitted_s
    for row in rows:
        if row.status == _CANCELLED and not row.ran_s:  # before it started: its wait ended with that
            now_s = instant_in_bounds("wait time", now_s + (row.waited_s or 0), row.fields[2])
            break
        if row.waited_s is None or row.ran_s is None:
            raise _unknown("wait time" if row.waited_s is None else "run time")
        waited_s, ran_s = row.waited_s, row.ran_s
        if row.allocated is None and ran_s:
            raise _unknown("number of allocated processors")
        started_s = instant_in_bounds("wait time", now_s + waited_s, row.fields[2])
        now_s = instant_in_bounds("run time", started_s + ran_s, row.fields[3])
        attempts.append(
            Attempt(
                number=len(attempts) + 1,
                started_s=started_s,
                ended_s=now_s,
                gpus_milli=(row.allocated or 0) * GPU_MILLI,
                hosts=[],
            )
        )
    return attempts, now_s


def _row(raw: bytes) -> _Row:
    try:
        fields = raw.decode("ascii").split()
    except UnicodeDecodeError as error:
        raise BadRecord(
            f"byte {error.start} of the line (0x{raw[error.start]:02x}) is no ASCII",
            code="not-utf8",
            hint="the format is ASCII; fetch the file again",
        ) from error
    if len(fields) != _FIELDS:
        raise BadRecord(
            f"{_FIELDS} fields expected, {len(fields)} found",
            code="wrong-columns",
            hint="write -1 for what is not known, and a semicolon before a comment",
        )
    return _Row(
        number=whole_number("job number", fields[0]),
        waited_s=_optional("wait time", fields[2]),
        ran_s=_optional("run time", fields[3]),
        allocated=_processors("number of allocated processors", fields[4]),
        requested=_processors("requested number of processors", fields[7]),
        status=fields[_STATUS],
        fields=fields,
    )


def _optional(field: str, value: str) -> int | None:
    return None if value == _UNKNOWN else seconds_and_fraction(field, value)[0]


def _processors(field: str, value: str) -> int | None:
    return None if value == _UNKNOWN else gpu_count(field, value)


def _known(field: str, value: str) -> int:
    seconds = _optional(field, value)
    if seconds is None:
        raise _unknown(field)
    return seconds


def _unknown(field: str) -> BadRecord:
    return BadRecord(
        f"{field}: is not known (-1), and is not guessed",
        code="unknown-value",
        hint="fill it in, or leave the job out",
    )


def _or(value: str, otherwise: str) -> str:
    return otherwise if value == _UNKNOWN else value


def _group(value: str) -> str:
    return _or(value, _NO_GROUP)


class Swf(PieceSource):
    """Source ``swf``: a log in the Standard Workload Format."""

    name = "swf"
    interpreter = _Jobs

    def read(self, path: Path, options: ImportOptions) -> Iterator[Translated | Fault]:
        """Yield every job of the file; see ``Source.read``."""
        interpreter = _Jobs(options)
        comments, lines = _split(path, open_lines(path))
        interpreter.header = read_header(path, comments, options)
        return interpret(path, _grouped(lines), interpreter)
