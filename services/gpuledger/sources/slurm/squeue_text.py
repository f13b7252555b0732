"""Source ``slurm-squeue-text``: jobs as ``squeue`` prints them with a format of one's own.

Three shapes are read: columns with a header, apart by ``|`` or ``|#``; the columns of a well-known monitor, which
asks for no header; and one JSON object per line, put together by the format string. The numbers of the tasks of an
array must be among what is told: the raw number of a task is not the one that accounting knows it by.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from operator import itemgetter
from pathlib import Path
from typing import Any

import msgspec

from gpuledger.kernel.errors import BadRecord, Refused
from gpuledger.sources.files import file_size, path_text
from gpuledger.sources.lines import BYTE_ORDER_MARK, Broken, Line, read_lines
from gpuledger.sources.pieces import interpret_again
from gpuledger.sources.protocol import Fault, ImportOptions, Translated
from gpuledger.sources.slurm.job import SlurmJob
from gpuledger.sources.slurm.listing import BAR_AND_HASH, columns, open_listing, wrong_width
from gpuledger.sources.slurm.reading import read_jobs
from gpuledger.sources.slurm.scontrol import text_of
from gpuledger.sources.slurm.squeue_rows import NAMES, NUMBERS, OWN, SHARED, SqueueReader, found_in
from gpuledger.sources.values import shown

WANTED = (
    "JobArrayID", "ArrayJobID", "ArrayTaskID", "State", "SubmitTime", "EligibleTime", "StartTime", "EndTime",
    "ResizeTime", "TimeLimit", "UserName", "Account", "Partition", "QOS", "NodeList", "Reason", "tres-alloc",
    "tres-per-job", "tres-per-node", "NumNodes", "RestartCnt",
)  # fmt: skip
"""What to ask squeue for."""

_BARE = (
    "TRES-PER-NODE", "MINCPUS", "JOBARRAYID", "JOBID", "NAME", "TIMELIMIT", "MINMEMORY", "COMMAND", "PRIORITY", "STATE",
    "USERNAME", "NUMCPUS", "NUMNODES", "TIMELEFT", "TIMEUSED", "NODELIST", "DEPENDENCY", "EXCNODES", "STARTTIME",
    "SUBMITTIME", "ELIGIBLETIME", "ACCRUETIME", "PENDINGTIME", "COMMENT", "PARTITION", "ACCOUNT", "QOS", "REASON",
    "TRES-ALLOC", "RESERVATION", "REQUEUE", "FEATURE", "RESTARTCNT", "SCHEDNODES", "LASTSCHEDEVAL",
)  # fmt: skip
"""The columns of a well-known monitor that asks for no header."""

_OBJECT_KEYS = {"A": "ACCOUNT", "ID": "JOBID", "ARRAY_ID": "ARRAY_TASK_ID", "P": "PARTITION", "R": "NODELIST(REASON)",
                "U": "USER"}  # fmt: skip
"""Short keys of a well-known exporter that asks for an object per line."""

_LOOKED_AT = 100
"""A first line that is broken takes no other with it: so many tell the shape of a file."""

_REQUIRED = ("state", "submit", "start")


class SqueueText:
    """Source ``slurm-squeue-text``."""

    name = "slurm-squeue-text"

    def read(self, path: Path, options: ImportOptions) -> Iterator[Translated | Fault]:
        """Yield every job of the listing; see ``Source.read``. It is held in memory: the controller holds it too."""
        pieces, reader = _open(path, options)
        reader.count_tasks(pieces)
        return read_jobs(path, pieces, reader)

    def retry(self, raw: bytes, context: Mapping[str, object]) -> Translated:
        """Translate one job again; see ``Source.retry``."""
        return interpret_again(Rows if "columns" in context else Objects, raw, context)

    def size(self, path: Path) -> int:
        """Return the size of the file on disk."""
        return file_size(path)


class Rows(SqueueReader):
    """Understands a row, given the columns."""

    throttled = re.compile(rb"_\[[^\]|]*%|\|\d[\d,:-]*%\d+\|")

    def __init__(self, options: ImportOptions, context: Mapping[str, object] | None = None) -> None:
        """Keep the columns and what stands between them."""
        super().__init__(options, context)
        named, delimiter = (context or {}).get("columns"), (context or {}).get("delimiter")
        self._columns: Sequence[str] = named if isinstance(named, list) else ()
        self._delimiter = delimiter if isinstance(delimiter, str) and delimiter else "|"
        at = {column: index for index, column in enumerate(self._columns) if isinstance(column, str)}
        self._ids = [at[column] for column in NUMBERS if column in at]
        named_as = found_in(at)
        self._own, self._shared = (
            itemgetter(*(at[named_as[what]] if what in named_as else -1 for what in names))
            for names in (OWN, SHARED)
        )

    def remember(self, raw: bytes) -> dict[str, object]:
        """Return the columns too: a retry has no header."""
        return {"columns": list(self._columns), "delimiter": self._delimiter, **super().remember(raw)}

    def parse(self, raw: bytes) -> Sequence[SlurmJob]:
        """Return the run that a row tells of."""
        if not self._columns:
            raise BadRecord(
                "the dead letter does not say which columns the record had",
                code="no-context",
                hint="import the file again",
            )
        text = text_of(raw)
        found = text.split(self._delimiter)
        if len(found) != len(self._columns):
            raise wrong_width(self._columns, found)
        told = [*found, None]  # what columns that are not there hold
        own, shared = self._own(told), self._shared(told)
        if " " in text or not text.isprintable():  # there are blanks, so that some may stand around a field
            own, shared = ([cell and cell.strip() for cell in cells] for cells in (own, shared))
        return self.job([found[index].strip() for index in self._ids], own, shared)


class Objects(SqueueReader):
    """Understands an object on a line of its own; a line that begins with ``#`` holds none."""

    throttled = re.compile(rb"_\[[^\]]*%|\"\d[\d,:-]*%\d+\"")

    def parse(self, raw: bytes) -> Sequence[SlurmJob]:
        """Return the run that an object tells of."""
        if raw.lstrip().startswith(b"#"):
            return ()
        try:
            said = msgspec.json.decode(raw, type=dict[str, str | int | float | None])
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise BadRecord(
                f"not a JSON object: {error}: {shown(raw[:60].decode('utf-8', 'replace'))}",
                code="bad-json",
                hint="a field held a quote or no value; import squeue --json, which cannot be mistaken",
            ) from error
        fields = {_OBJECT_KEYS.get(key.upper(), key.upper()): _text(value) for key, value in said.items()}
        named_as = found_in(fields)
        return self.job(
            [fields[column] for column in NUMBERS if column in fields],
            *(
                [fields[named_as[what]] if what in named_as else None for what in names]
                for names in (OWN, SHARED)
            ),
        )


def _bare(raw: bytes) -> bytes:
    return raw.removeprefix(BYTE_ORDER_MARK).strip()


def _text(value: Any) -> str:  # noqa: ANN401 - what JSON holds
    return "" if value is None else str(value)


def _open(path: Path, options: ImportOptions) -> tuple[list[Line | Broken], SqueueReader]:
    """Return the records of a file, and who understands them.

    Raises:
        Refused: When it is none of the shapes, or tells too little of each job.
    """
    heads = [text for line in islice(read_lines(path), _LOOKED_AT) if (text := _bare(line.raw))]
    first = heads[0] if heads else b""
    is_document = first == b"{" or first.startswith((b'{"meta"', b'{"jobs"'))
    if not is_document and any(text.startswith(b"{") and text.endswith(b"}") for text in heads):
        return list(read_lines(path)), Objects(options)
    if first.startswith(b"{"):
        raise Refused(
            f"{path_text(path)} is one JSON document, not an object per line",
            hint="import it as slurm-squeue-json",
        )
    listing = open_listing(path)
    header = columns([column.upper() for column in listing.cells()])
    if listing.delimiter == BAR_AND_HASH and len(header) == len(_BARE) and "STATE" not in header:
        return list(listing.all()), Rows(options, {"columns": list(_BARE), "delimiter": listing.delimiter})
    _check(path, header)
    return list(listing.rest), Rows(options, {"columns": header, "delimiter": listing.delimiter})


def _check(path: Path, header: Sequence[str]) -> None:
    """Make sure that the columns tell the runs apart.

    Raises:
        Refused: When they do not.
    """
    found = found_in(header)
    missing = [NAMES[what][0] for what in _REQUIRED if what not in found]
    shows_tasks = "JOBARRAYID" in header or {"array", "task"} <= found.keys()
    if not set(NUMBERS) & set(header) or not shows_tasks:
        missing.append("ARRAY_JOB_ID and ARRAY_TASK_ID")
    if missing:
        raise Refused(
            f"{path_text(path)}: the columns do not fit: missing {', '.join(missing)}",
            hint="import squeue --json, or ask for: squeue -a -O "
            + ",".join(f"{field}:|" for field in WANTED),
        )
