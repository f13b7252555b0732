"""Jobs as ``sacct --parsable2`` prints them: a header, then one record a line, fields apart by ``|`` or ``|#``.

Columns may be any, in any order, as long as those that money depends on are among them. Fields are not quoted: a
comment or a command may hold a line end, and then its record goes on in the next line until all its separators are
there. Bytes that are no UTF-8 are kept as escapes. Steps (``8841.0``, ``8841.batch``) charge nothing.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from operator import itemgetter
from pathlib import Path

from msgspec.structs import replace

from gpuledger.kernel.errors import BadRecord, Refused
from gpuledger.sources.files import path_text
from gpuledger.sources.lines import BYTE_ORDER_MARK, LINE_LIMIT_BYTES, Broken, Line, read_lines
from gpuledger.sources.pieces import PieceSource
from gpuledger.sources.protocol import Fault, ImportOptions, Translated
from gpuledger.sources.slurm.hosts import hosts_of
from gpuledger.sources.slurm.job import SlurmJob
from gpuledger.sources.slurm.reading import (
    EMPTY,
    REPEATED,
    JobReader,
    asks_for_gpus,
    read_jobs,
    waiting_tasks,
)
from gpuledger.sources.slurm.states import PENDING, state_of
from gpuledger.sources.slurm.times import duration, limit_seconds, span
from gpuledger.sources.values import Odd, name, shown, whole_number

REQUIRED = ("JobID", "State", "Submit", "Start", "End", "AllocTRES")
"""What a charge depends on. Account, User and Cluster are read where they are."""

WANTED = (
    "JobID", "JobIDRaw", "Cluster", "Account", "User", "Partition", "QOS", "State", "Submit", "Eligible", "Start",
    "End", "ElapsedRaw", "Suspended", "TimelimitRaw", "AllocTRES", "ReqTRES", "NodeList", "ExitCode", "Flags",
    "SubmitLine",
)  # fmt: skip
"""The columns to ask sacct for."""

_SHARED = (
    "Cluster", "Account", "User", "Partition", "QOS", "State", "Suspended", "TimelimitRaw", "Timelimit", "AllocTRES",
    "ReqTRES", "Flags", "Restarts",
)  # fmt: skip
"""Columns that are read whose values repeat from job to job; those that are not there are empty."""

_OWN = (
    "Submit", "Eligible", "Start", "End", "ElapsedRaw", "NodeList", "ExitCode", "SubmitLine", "SLUID", "OriginalSluid",
    "JobIDRaw",
)  # fmt: skip
"""The other columns that are read beside JobID: what is each job's own."""

_NOTHING_ODD: tuple[Odd, ...] = ()

_DELIMITERS = (b"|#", b"|")
_NUMBER = re.compile(r"(\d+)(?:_(\d+)|_\[([^\]]+)\]?|\+(\d+))?(\..+)?")


class _Rows(JobReader):
    """Understands a row, given the columns of its header."""

    def __init__(self, options: ImportOptions, context: Mapping[str, object] | None = None) -> None:
        super().__init__(options, context)
        columns, delimiter = (context or {}).get("columns"), (context or {}).get("delimiter")
        self._columns = columns if isinstance(columns, list) else []
        self._delimiter = delimiter if isinstance(delimiter, str) and delimiter else "|"
        self._at = {column: index for index, column in enumerate(self._columns) if isinstance(column, str)}
        self._twice = [(n, self._at[c]) for n, c in enumerate(self._columns) if self._at.get(c, n) != n]
        self._width = len(self._columns)
        self._shared, self._own = (
            itemgetter(*(self._at.get(column, -1) for column in columns)) for columns in (_SHARED, _OWN)
        )
        self._like = lru_cache(maxsize=REPEATED)(self._as_told)

    def remember(self, raw: bytes) -> dict[str, object]:
        """Return the columns too: a retry has no header."""
        return {"columns": self._columns, "delimiter": self._delimiter, **super().remember(raw)}

    def parse(self, raw: bytes) -> Sequence[SlurmJob]:
        """Return the run that a row tells of; the tasks of an array that wait are one row."""
        cells = self._cells(raw)
        for first, last in self._twice:
            if cells[first] != cells[last]:
                raise BadRecord(
                    f"{self._columns[first]}: stands there twice, as {shown(cells[first])} and {shown(cells[last])}",
                    code="column-twice",
                    hint="ask sacct for each column once",
                )
        job_id = cells[self._at["JobID"]]
        if job_id.isdecimal():
            return (self._job(job_id, cells),)
        found = _NUMBER.fullmatch(job_id)
        if found is None:
            raise BadRecord(
                f"JobID: {shown(job_id)} is no number of a job", code="bad-job-id", hint="see sacct"
            )
        if found[5]:
            return ()
        job = self._job(job_id, cells)
        if found[3] is not None and job.state.kind is PENDING:
            return waiting_tasks(job, found[1], found[3])
        return (job,)

    def owner(self, raw: bytes) -> tuple[str | None, str | None]:
        """Return the cluster and the account that a row names."""
        cells = self._cells(raw)
        cluster, account = self._at.get("Cluster"), self._at.get("Account")
        return None if cluster is None else cells[cluster], None if account is None else cells[account]

    def _cells(self, raw: bytes) -> list[str]:
        if not self._width:
            raise BadRecord(
                "the dead letter does not say which columns the record had",
                code="no-context",
                hint="import the file again",
            )
        cells = raw.removesuffix(b"\r").decode("utf-8", "backslashreplace").split(self._delimiter)
        if len(cells) != self._width:
            raise BadRecord(
                f"{self._width} columns expected, {len(cells)} found",
                code="wrong-columns",
                hint="the row is cut short, or a field holds the separator: use sacct --json, or --delimiter='|#'",
            )
        return cells

    def _job(self, job_id: str, cells: list[str]) -> SlurmJob:
        cells.append("")  # what columns that are not there hold
        submit, eligible, start, end, elapsed, hosts, exit_, command, sluid, original, raw = self._own(cells)
        submitted_s = self.moment("Submit", submit)
        if submitted_s is None:
            raise BadRecord(
                "Submit: is missing", code="missing-value", hint="the run cannot be told from others"
            )
        elapsed_s = None if elapsed in EMPTY else whole_number("ElapsedRaw", elapsed)
        like = self._like(self._shared(cells))
        start_s, end_s, oddities = self.times.known(start), self.times.known(end), _NOTHING_ODD
        if start_s is None or end_s is None:
            length_s = None if elapsed_s is None else elapsed_s + like.suspended_s
            start_s, end_s, oddities = span(self.time, start, end, length_s)
        untracked = None
        if like.asked is None and like.held is None:
            untracked = asks_for_gpus(command) or self._old_request(cells)
        return replace(
            like,
            job=job_id,
            submitted_s=submitted_s,
            eligible_s=self.moment("Eligible", eligible),
            started_s=start_s,
            ended_s=end_s,
            elapsed_s=elapsed_s,
            untracked=untracked,
            hosts=hosts_of("NodeList", hosts),
            exit=exit_ or None,
            lineage=original or sluid or None,
            raw=raw,
            oddities=oddities,
        )

    def _as_told(self, shared: tuple[str, ...]) -> SlurmJob:
        """Return a job with all that it shares with others, and nothing of its own."""
        (
            cluster,
            account,
            user,
            partition,
            qos,
            word,
            suspended,
            minutes,
            limit,
            held,
            asked,
            flags,
            restarts,
        ) = shared
        return SlurmJob(
            cluster=self.cluster_of(cluster),
            job="",
            state=state_of("State", word),
            submitted_s=0,
            suspended_s=duration("Suspended", suspended),
            user=None if user in EMPTY else name("User", user),
            account=account,
            asked=self.tres.text("ReqTRES", asked),
            held=self.tres.text("AllocTRES", held),
            time_limit_s=limit_seconds(minutes, limit),
            labels=self.labels(account, partition, qos),
            restarts=None if restarts in EMPTY else whole_number("Restarts", restarts),
            is_altered="JobAltered" in flags,
        )

    def _old_request(self, cells: Sequence[str]) -> str | None:
        """Return what older versions (to 20.02) told of GPUs, for each node, where they are not tracked."""
        for column in ("AllocGRES", "ReqGRES"):
            told = cells[self._at.get(column, -1)]
            if "gpu" in told and not told.endswith("gpu:0"):
                return f"{column} names GPUs ({shown(told)})"
        return None


def _header(path: Path, first: Line | Broken | None) -> tuple[bytes, list[str]]:
    """Return the separator and the columns.

    Raises:
        Refused: When the first line is no header, or lacks a column that a charge depends on.
    """
    raw = first.raw.removeprefix(BYTE_ORDER_MARK).removesuffix(b"\r") if isinstance(first, Line) else b""
    delimiter = next((d for d in _DELIMITERS if d in raw), b"")
    columns = raw.decode("utf-8", "backslashreplace").split(delimiter.decode()) if delimiter else []
    missing = [column for column in REQUIRED if column not in columns]
    if missing:
        what = f"lacks {', '.join(missing)}" if len(missing) < len(REQUIRED) else "is none of sacct"
        raise Refused(
            f"{path_text(path)}:1: the header {what}",
            hint="ask for: sacct --parsable2 --duplicates --allocations --format=" + ",".join(WANTED),
        )
    return delimiter, columns


def _records(lines: Iterable[Line | Broken], delimiter: bytes, separators: int) -> Iterator[Line | Broken]:
    """Yield the records: lines, and lines that were broken by a line end within a field put together again."""
    begun: Line | None = None
    for item in lines:
        if isinstance(item, Broken):
            if begun is not None:
                yield begun
                begun = None
            yield item
            continue
        own = item.raw.count(delimiter)
        if begun is not None:
            together = begun.raw.count(delimiter) + own
            fits = together <= separators and len(begun.raw) + len(item.raw) < LINE_LIMIT_BYTES
            if own < separators and fits:
                begun = Line(begun.number, begun.raw + b"\n" + item.raw, item.position, item.ended)
                if together == separators:
                    yield begun
                    begun = None
                continue
            yield begun  # cut short: the next line is a record, or begins one
            begun = None
        if own >= separators or not item.raw.strip():
            yield item
        else:
            begun = item
    if begun is not None:
        yield begun


class SacctText(PieceSource):
    """Source ``slurm-sacct-text``: what ``sacct --parsable2 --duplicates`` prints."""

    name = "slurm-sacct-text"
    interpreter = _Rows

    def read(self, path: Path, options: ImportOptions) -> Iterator[Translated | Fault]:
        """Yield every job of the file; see ``Source.read``."""
        lines = read_lines(path)
        delimiter, columns = _header(path, next(lines, None))
        reader = _Rows(options, {"columns": columns, "delimiter": delimiter.decode()})
        return read_jobs(path, _records(lines, delimiter, len(columns) - 1), reader)
