"""Sources ``kueue``, ``kai`` and ``pods``: watch streams, or lists as the API answers them.

The three names read the same kinds of objects in the same way, so that one recording of several kinds can be
imported under any of them; the name says what a person expects.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path

from msgspec.structs import replace

from gpuledger.kernel.errors import BadRecord, Refused
from gpuledger.sources.documents import Document, open_document
from gpuledger.sources.files import path_text
from gpuledger.sources.kubernetes.reading import unwrap
from gpuledger.sources.kubernetes.watching import Watched
from gpuledger.sources.lines import BYTE_ORDER_MARK, Broken, Line, read_lines
from gpuledger.sources.pieces import PieceSource, anomalies, interpret
from gpuledger.sources.protocol import Fault, ImportOptions, Translated
from gpuledger.sources.values import Odd

_LOOKED_AT = 20
"""Lines within which a stream must show that it is one; its first may be cut."""

_LIST = "List"


_Pieces = tuple[Iterable[Line | Broken], str, Sequence[Odd]]
"""The objects of a file, the kind of those that do not say theirs, and what is odd about the file."""


def _pieces(path: Path) -> _Pieces:
    """Return the objects of a file.

    Raises:
        Refused: When the file holds neither a stream of objects nor a list.
    """
    lines = read_lines(path)
    first = list(islice(lines, _LOOKED_AT))
    kinds = [kind for line in first if isinstance(line, Line) and (kind := _kind(line.raw))]
    if not kinds:  # a list that is printed for people, or on a line longer than any object
        return _members(open_document(path))
    if len(kinds) == 1 and kinds[0].endswith(_LIST):
        return _members(open_document(path))
    return chain(_without_mark(first), lines), "", ()


def _members(document: Document) -> _Pieces:
    kind = document.value("kind")
    if not isinstance(kind, str) or not kind.endswith(_LIST):
        raise Refused(
            f"{path_text(document.path)}: holds no stream of Kubernetes objects",
            hint="write one object a line (pipe kubectl through jq -c), or one list (kubectl get -o json)",
        )
    return document.pieces("items"), kind.removesuffix(_LIST), document.oddities


def _reported(
    path: Path, oddities: Sequence[Odd], items: Iterator[Translated | Fault]
) -> Iterator[Translated | Fault]:
    """Yield the items, what is odd about the file with the first that was understood."""
    for item in items:
        if oddities and isinstance(item, Translated):
            found = anomalies(path_text(path), 1, oddities)
            yield replace(item, anomalies=found + item.anomalies)
            oddities = ()
        else:
            yield item


def _kind(raw: bytes) -> str:
    try:
        return unwrap(raw.removeprefix(BYTE_ORDER_MARK)).kind
    except BadRecord:
        return ""


def _without_mark(lines: list[Line | Broken]) -> list[Line | Broken]:
    head, *rest = lines
    return [
        replace(head, raw=head.raw.removeprefix(BYTE_ORDER_MARK)) if isinstance(head, Line) else head,
        *rest,
    ]


class Watch(PieceSource):
    """A stream of states of objects, one a line, or one document with a list of them.

    Args:
        name: The word on the command line.
    """

    interpreter = Watched

    def __init__(self, name: str) -> None:
        self.name = name

    def read(self, path: Path, options: ImportOptions) -> Iterator[Translated | Fault]:
        """Yield every state; see ``Source.read``."""
        interpreter = Watched(options)
        pieces, interpreter.default_kind, oddities = _pieces(path)
        return _reported(path, oddities, interpret(path, pieces, interpreter))
