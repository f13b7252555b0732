"""Records that stand one after another in a file: each becomes facts, or a fault, and the next is looked at.

A piece is the bytes of one record: a line of newline-delimited JSON, a member of an array in a JSON document,
one job of a listing. Who understands the pieces of one kind of file is an ``Interpreter``.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import ClassVar

from gpuledger.events.envelope import Event
from gpuledger.events.fields import END_OF_TIME_S
from gpuledger.kernel.errors import BadRecord, Refused
from gpuledger.sources.files import file_size, path_text
from gpuledger.sources.lines import LINE_LIMIT_BYTES, Broken, Line
from gpuledger.sources.protocol import Anomaly, Fault, ImportOptions, KnownRuns, Translated
from gpuledger.sources.values import Odd

Facts = tuple[tuple[tuple[Event, bytes], ...], Sequence[Odd]]
"""The facts of a record, and what is odd about it."""

NO_NEWLINE = ("no-final-newline", "the last line has no newline: the file may be cut short")


class Interpreter(ABC):
    """Understands the pieces of one kind of file; one object for one pass through one file.

    Args:
        options: What the person who imports says.
        context: What a fault of an earlier pass remembered, on a retry.
    """

    told_before: ClassVar[frozenset[str]] = frozenset()
    """Keys of what is remembered because earlier pieces told it. A piece that was understood tells it itself."""

    def __init__(self, options: ImportOptions, context: Mapping[str, object] | None = None) -> None:
        """Keep the options; what a retry knows is for pieces that depend on earlier ones."""
        del context
        self.options = options

    def remember(self, raw: bytes) -> dict[str, object]:
        """Return what else a retry of the piece needs; JSON types only. It never raises."""
        del raw
        return {}

    @abstractmethod
    def translate(self, raw: bytes) -> Facts:
        """Return the facts of a piece; none when it holds no record, or one that says nothing about GPUs.

        Raises:
            BadRecord: When it cannot be understood; the message names field and value, not the place.
        """


def interpret(
    path: Path, pieces: Iterable[Line | Broken], interpreter: Interpreter, offset: int = 0
) -> Iterator[Translated | Fault]:
    """Yield every piece as facts or as a fault; blank ones hold no record.

    Args:
        path: The file that they come from.
        pieces: The pieces in order.
        interpreter: Who understands them.
        offset: Bytes of other files that were read before this one.
    """
    place = path_text(path)
    for piece in pieces:
        position = offset + piece.position
        if isinstance(piece, Broken):
            context = context_of(path, piece.number, interpreter.options, partial=piece.partial)
            yield Fault(
                piece.number, piece.code, piece.message, piece.hint, piece.raw, context, place, position
            )
            continue
        if not piece.raw or piece.raw.isspace():
            continue
        try:
            events, oddities = interpreter.translate(piece.raw)
        except BadRecord as error:
            yield _fault(path, interpreter, piece, position, error)
            continue
        if not events:
            continue
        if not piece.ended:
            oddities = [*oddities, NO_NEWLINE]
        as_fault = partial(_refused, path, interpreter, piece, position)
        odd = anomalies(place, piece.number, oddities) if oddities else ()
        yield Translated(piece.number, events, odd, position, as_fault)


def _refused(
    path: Path, interpreter: Interpreter, piece: Line, position: int, line: int, error: BadRecord
) -> Fault:
    """Make a fault of a piece that was understood."""
    del line
    return _fault(path, interpreter, piece, position, error, is_understood=True)


def _fault(
    path: Path,
    interpreter: Interpreter,
    piece: Line,
    position: int,
    error: BadRecord,
    *,
    is_understood: bool = False,
) -> Fault:
    place = path_text(path)
    context = context_of(path, piece.number, interpreter.options)
    context |= remembered(interpreter, piece.raw, is_understood=is_understood)
    message = f"{place}:{piece.number}: {error.message}"
    return Fault(piece.number, error.code, message, error.hint, piece.raw, context, place, position)


def remembered(interpreter: Interpreter, raw: bytes, *, is_understood: bool) -> dict[str, object]:
    """Return what a retry of a piece needs.

    Args:
        interpreter: Who could not understand it, or did.
        raw: The piece.
        is_understood: Whether it was understood, and its facts refused: then nothing of it was told before.
    """
    found = interpreter.remember(raw)
    return {
        key: value for key, value in found.items() if not (is_understood and key in interpreter.told_before)
    }


def interpret_again(kind: type[Interpreter], raw: bytes, context: Mapping[str, object]) -> Translated:
    """Translate a piece again from what its fault kept.

    Raises:
        BadRecord: When it still cannot be understood, or the context is not that of a fault.
    """
    place, line = check_context(raw, context)
    try:
        events, oddities = kind(options_of(context), context).translate(raw)
    except BadRecord as error:
        raise BadRecord(f"{place}:{line}: {error.message}", code=error.code, hint=error.hint) from error
    except Refused as error:
        raise BadRecord(f"{place}:{line}: {error.message}", code="bad-options", hint=error.hint) from error
    return Translated(line, events, anomalies(place, line, oddities))


def anomalies(place: str, line: int, oddities: Sequence[Odd]) -> tuple[Anomaly, ...]:
    """Return what is odd about a record, with its place."""
    return tuple(Anomaly(code, line, f"{place}:{line}: {message}") for code, message in oddities)


def context_of(path: Path, line: int, options: ImportOptions, *, partial: bool = False) -> dict[str, object]:
    """Return what every retry needs besides the bytes."""
    context: dict[str, object] = {
        "path": path_text(path),
        "line": line,
        "cluster": options.cluster,
        "timezone": options.timezone,
    }
    if options.fractions:
        context["fractions"] = dict(options.fractions)
    if options.host is not None:
        context["host"] = options.host
    if options.at_s is not None:
        context["at_s"] = options.at_s
    return context | {"partial": True} if partial else context


def options_of(context: Mapping[str, object]) -> ImportOptions:
    """Return what the person who imported had said, and what the ledger knows by now under ``known``."""
    cluster, timezone = context.get("cluster"), context.get("timezone")
    fractions, known = context.get("fractions"), context.get("known")
    host, at_s = context.get("host"), context.get("at_s")
    return ImportOptions(
        cluster=cluster if isinstance(cluster, str) else None,
        timezone=timezone if isinstance(timezone, str) else None,
        fractions=_fractions(fractions) if isinstance(fractions, dict) else {},
        known=known if isinstance(known, KnownRuns) else None,
        host=host if isinstance(host, str) else None,
        at_s=at_s if isinstance(at_s, int) and 0 <= at_s < END_OF_TIME_S else None,
    )


def _fractions(kept: dict[object, object]) -> dict[str, int]:
    return {name: milli for name, milli in kept.items() if isinstance(name, str) and isinstance(milli, int)}


def check_context(raw: bytes, context: Mapping[str, object]) -> tuple[str, int]:
    """Return the place of a record that is to be read again.

    Raises:
        BadRecord: When a retry cannot help, or the context does not say where the record came from.
    """
    place, line = context.get("path"), context.get("line")
    if not isinstance(place, str) or not isinstance(line, int):
        raise BadRecord(
            "the dead letter does not say which file and line the record came from",
            code="no-context",
            hint="import the file again",
        )
    if context.get("partial"):
        raise BadRecord(
            f"{place}:{line}: only the beginning of this record could be read",
            code="partial-line",
            hint="fetch the file again and import it whole: what is already booked is not booked twice",
        )
    if len(raw) > LINE_LIMIT_BYTES:
        raise BadRecord(
            f"{place}:{line}: the record has more than {LINE_LIMIT_BYTES} bytes",
            code="line-too-long",
            hint="mend the record in the file and import it again",
        )
    return place, line


class PieceSource:
    """A source of pieces that one interpreter understands, in one file; how the file is cut is its own affair."""

    name: str
    interpreter: ClassVar[type[Interpreter]]

    def retry(self, raw: bytes, context: Mapping[str, object]) -> Translated:
        """Translate one piece again; see ``Source.retry``."""
        return interpret_again(self.interpreter, raw, context)

    def size(self, path: Path) -> int:
        """Return the size of the file on disk."""
        return file_size(path)
