"""Tables of comma-separated values, one record on one physical line.

The header decides whether the file is what the source reads; after it, a record that cannot be read is
a ``Fault`` and the next one is looked at.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import ClassVar

import msgspec

from gpuledger.kernel.errors import BadRecord, Refused
from gpuledger.sources.cells import cells_of, row_values, text_of, without_return
from gpuledger.sources.columns import Columns, columns_of
from gpuledger.sources.files import file_size, path_text
from gpuledger.sources.jobs import UnderstoodJob
from gpuledger.sources.lines import BYTE_ORDER_MARK, Broken, Line, Lines, read_parts
from gpuledger.sources.pieces import NO_NEWLINE, Facts, anomalies, check_context, context_of, options_of
from gpuledger.sources.protocol import Fault, ImportOptions, Translated
from gpuledger.sources.values import shown

_COLUMNS_SHOWN = 20
_PART_BYTES = 1 << 11


class Record(msgspec.Struct, frozen=True, gc=False):
    """One row of a table.

    Args:
        values: Its fields by column.
        raw: Its bytes.
        ordinal: How many identical rows stand before it in the file.
    """

    values: Mapping[str, str]
    raw: bytes
    ordinal: int


class Translator(ABC):
    """Understands the rows of one kind of table; one object for one pass through one file.

    Args:
        options: What the person who imports says.
        context: What a fault of an earlier pass remembered, on a retry.
    """

    required: ClassVar[tuple[str, ...]]
    optional: ClassVar[tuple[str, ...]] = ()

    def __init__(self, options: ImportOptions, context: Mapping[str, object] | None = None) -> None:
        """Keep the options; what a retry knows is for tables whose rows depend on earlier ones."""
        del context
        self.options = options

    @classmethod
    def knows(cls, column: str) -> bool:
        """Say whether a table of this kind may have the column."""
        return column in cls.required or column in cls.optional

    def survey(self, path: Path) -> None:
        """Go through the file beforehand; for tables whose rows depend on later ones."""
        del path

    def ordinal(self, raw: bytes) -> int:
        """Count identical rows; a table whose rows have keys need not."""
        del raw
        return 0

    def remember(self, values: Mapping[str, str]) -> dict[str, object]:
        """Return what else a retry of the row needs; JSON types only."""
        del values
        return {}

    def lose(self) -> None:
        """Take note that a row could not be understood; for tables whose rows follow from the ones before."""
        return

    @abstractmethod
    def translate(self, record: Record) -> Facts:
        """Return the facts of a row.

        Raises:
            BadRecord: When a field is wrong; the message names field and value, not the place.
        """


class JobTable(Translator):
    """Understands the rows of a table of jobs, each of which had one run at most."""

    @abstractmethod
    def job(self, record: Record) -> UnderstoodJob:
        """Return the job of a row, and what is odd about it.

        Raises:
            BadRecord: When a field is wrong.
        """

    def jobs(self, rows: Columns) -> Iterator[UnderstoodJob | None] | None:
        """Yield the jobs of rows that were read at once, in order, for tables that are worth it.

        None stands for a row that ``job`` must be asked of before the next is looked at; the others are as it says.
        """
        del rows
        return None

    def translate(self, record: Record) -> Facts:
        """Return the facts of a row's job."""
        job, oddities = self.job(record)
        return tuple(job.facts()), oddities


@dataclass(frozen=True, slots=True)
class Table:
    """A file whose header has been read.

    Args:
        path: The file.
        header: Its columns, in the file's order.
        lines: The lines after the header, those that were read at once together.
    """

    path: Path
    header: tuple[str, ...]
    lines: Iterator[Lines | Line | Broken]


def open_table(path: Path) -> Table:
    """Open a file and read its header.

    Raises:
        Refused: When the file cannot be opened or its first line is no header.
    """
    lines = read_parts(path)
    first = next(lines, None)
    if isinstance(first, Broken):
        raise Refused(f"{first.message}; there is no header", hint=first.hint)
    raw = first.raw.removeprefix(BYTE_ORDER_MARK) if isinstance(first, Line) else b""
    try:
        header = tuple(cells_of(text_of(without_return(raw))))
    except BadRecord as error:
        raise Refused(
            f"{path_text(path)}:1: the header cannot be read: {error.message}",
            hint="the file must be comma-separated text in UTF-8, plain or gzip-compressed",
        ) from error
    return Table(path, header, lines)


class TableSource:
    """A source that reads one table; which of its kinds a file holds is seen from the header."""

    name: str
    kinds: ClassVar[tuple[type[Translator], ...]]

    def read(self, path: Path, options: ImportOptions) -> Iterator[Translated | Fault]:
        """Yield every row of the file; see ``Source.read``."""
        table = open_table(path)
        kind = self.kind(table.header)
        translator = kind(options)
        check_header(table, kind)
        translator.survey(path)
        return translate_table(table, translator)

    def retry(self, raw: bytes, context: Mapping[str, object]) -> Translated:
        """Translate one row again; see ``Source.retry``."""
        header = context.get("header")
        return retry_row(self.kind(header if isinstance(header, list) else ()), raw, context)

    def size(self, path: Path) -> int:
        """Return the size of the file on disk."""
        return file_size(path)

    def kind(self, header: Sequence[object]) -> type[Translator]:
        """Return who understands the rows below a header; the first kind when none of them does."""
        fitting = (kind for kind in self.kinds if set(kind.required) <= set(header))
        return next(fitting, self.kinds[0])


def check_header(table: Table, translator: type[Translator]) -> None:
    """Make sure that a table has the columns that a translator reads, and no others.

    Raises:
        Refused: When a required column is missing, or one is unknown or named twice.
    """
    header = table.header
    if "job_num" in header and any(column.startswith(("avg_", "med_")) for column in header):
        raise Refused(
            f"{path_text(table.path)}: holds totals of whole clusters, no jobs; totals cannot be booked",
            hint="import the job table that the totals were computed from; nothing was imported",
        )
    problems = []
    if missing := [column for column in translator.required if column not in header]:
        problems.append("missing " + ", ".join(missing))
    if unknown := [shown(column) for column in header if not translator.knows(column)]:
        problems.append("unknown " + ", ".join(unknown[:_COLUMNS_SHOWN]))
    if twice := sorted(
        {column for column in header if translator.knows(column) and header.count(column) > 1}
    ):
        problems.append("twice " + ", ".join(twice[:_COLUMNS_SHOWN]))
    if problems:
        raise Refused(
            f"{path_text(table.path)}:1: the columns do not fit: {'; '.join(problems)}",
            hint=f"expected: {', '.join(translator.required + translator.optional)}; nothing was imported",
        )


def translate_table(table: Table, translator: Translator, offset: int = 0) -> Iterator[Translated | Fault]:
    """Yield every row after the header as facts or as a fault; empty lines hold no record.

    Args:
        table: The file.
        translator: Who understands its rows.
        offset: Bytes of other files that were read before this one.
    """
    place = path_text(table.path)
    for item in table.lines:
        if isinstance(item, Lines):
            yield from _translate_lines(table, translator, item, offset)
            continue
        position = offset + item.position
        if isinstance(item, Broken):
            translator.lose()
            context = {**_context(table, translator.options, item.number, 0), "partial": item.partial}
            yield Fault(item.number, item.code, item.message, item.hint, item.raw, context, place, position)
        elif found := _translate_line(table, translator, item, position):
            yield found


def parts(header: Sequence[str], lines: Lines) -> Iterator[tuple[Lines, Columns | None]]:
    """Yield lines by column, cut so that few rows are read one by one for the sake of one that is not plain."""
    columns = columns_of(header, lines.text)
    middle = -1 if columns is not None else lines.text.find(b"\n", len(lines.text) // 2)
    if middle < 0 or len(lines.text) < _PART_BYTES:
        yield lines, columns
        return
    first = Lines(lines.number, lines.text[:middle], lines.position)
    yield from parts(header, first)
    number = lines.number + first.text.count(b"\n") + 1
    yield from parts(header, Lines(number, lines.text[middle + 1 :], lines.position))


def _translate_lines(
    table: Table, translator: Translator, lines: Lines, offset: int
) -> Iterator[Translated | Fault]:
    """Return rows that were read at once: jobs that are as usual by column, all else one by one."""
    position = offset + lines.position
    if not isinstance(translator, JobTable):
        return _one_by_one(table, translator, lines, position)
    return chain.from_iterable(
        _one_by_one(table, translator, part, position)
        if columns is None or (jobs := translator.jobs(columns)) is None
        else _at_once(table, translator, part, jobs, position)
        for part, columns in parts(table.header, lines)
    )


def _one_by_one(
    table: Table, translator: Translator, part: Lines, position: int
) -> Iterator[Translated | Fault]:
    for line in part.each():
        if found := _translate_line(table, translator, line, position):
            yield found


def _at_once(
    table: Table, translator: JobTable, part: Lines, jobs: Iterable[UnderstoodJob | None], position: int
) -> Iterator[Translated | Fault]:
    place, raws = path_text(table.path), list[bytes]()

    def line(number: int) -> Line:
        if not raws:
            raws.extend(part.text.split(b"\n"))
        return Line(number, raws[number - part.number], part.position, ended=True)

    def as_fault(number: int, error: BadRecord) -> Fault:
        return _fault(table, translator, line(number), 0, position, error)

    for number, understood in enumerate(jobs, part.number):
        if understood is not None:
            job, oddities = understood
            try:
                events = tuple(job.facts())
            except BadRecord:
                pass  # read by itself it says the same, and where
            else:
                odd = anomalies(place, number, oddities) if oddities else ()
                yield Translated(number, events, odd, position, as_fault)
                continue
        if found := _translate_line(table, translator, line(number), position):
            yield found


def _translate_line(
    table: Table, translator: Translator, item: Line, position: int
) -> Translated | Fault | None:
    """Return the facts of a row or its fault; None where it holds no record."""
    raw = item.raw
    if raw.endswith(b"\r"):
        raw = raw[:-1]
    if not raw:
        return None
    ordinal = translator.ordinal(raw)
    try:
        events, oddities = translator.translate(Record(row_values(table.header, raw), raw, ordinal))
    except BadRecord as error:
        translator.lose()
        return _fault(table, translator, item, ordinal, position, error)
    if not events:
        return None  # such as a host without GPUs
    if not item.ended:
        oddities = [*oddities, NO_NEWLINE]
    as_fault = partial(_refused, table, translator, item, ordinal, position)
    odd = anomalies(path_text(table.path), item.number, oddities) if oddities else ()
    return Translated(item.number, events, odd, position, as_fault)


def retry_row(translator: type[Translator], raw: bytes, context: Mapping[str, object]) -> Translated:
    """Translate a row again from what its fault kept.

    Raises:
        BadRecord: When it still cannot be understood, or the context is not that of a fault.
    """
    header, ordinal = _header_and_ordinal(context)
    place, line = check_context(raw, context)
    options = options_of(context)
    raw = without_return(raw)
    try:
        record = Record(row_values(header, raw), raw, ordinal)
        events, oddities = translator(options, context).translate(record)
    except BadRecord as error:
        raise BadRecord(f"{place}:{line}: {error.message}", code=error.code, hint=error.hint) from error
    except Refused as error:
        raise BadRecord(f"{place}:{line}: {error.message}", code="bad-options", hint=error.hint) from error
    return Translated(line, events, anomalies(place, line, oddities))


def _refused(
    table: Table,
    translator: Translator,
    item: Line,
    ordinal: int,
    position: int,
    number: int,
    error: BadRecord,
) -> Fault:
    """Make a fault of a row that was understood."""
    del number
    return _fault(table, translator, item, ordinal, position, error)


def _fault(
    table: Table, translator: Translator, item: Line, ordinal: int, position: int, error: BadRecord
) -> Fault:
    context = _context(table, translator.options, item.number, ordinal)
    with suppress(BadRecord):  # a row that cannot be split has nothing to remember
        context |= translator.remember(row_values(table.header, without_return(item.raw)))
    message = f"{path_text(table.path)}:{item.number}: {error.message}"
    return Fault(
        item.number, error.code, message, error.hint, item.raw, context, path_text(table.path), position
    )


def _context(table: Table, options: ImportOptions, line: int, ordinal: int) -> dict[str, object]:
    return context_of(table.path, line, options) | {"header": list(table.header), "ordinal": ordinal}


def _header_and_ordinal(context: Mapping[str, object]) -> tuple[list[str], int]:
    header, ordinal = context.get("header"), context.get("ordinal")
    if (
        isinstance(ordinal, int)
        and isinstance(header, list)
        and all(isinstance(column, str) for column in header)
    ):
        return header, ordinal
    raise BadRecord(
        "the dead letter does not say which columns the record had",
        code="no-context",
        hint="import the file again",
    )
