"""One JSON document per file, whose records are the members of an array in it.

The document is held in memory once: what prints such a document holds it whole too. Each member is a piece of
its own, so that one that cannot be read does not take the others with it.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from gpuledger.kernel.errors import Refused
from gpuledger.sources.files import path_text
from gpuledger.sources.lines import BYTE_ORDER_MARK, Line, read_whole
from gpuledger.sources.values import Odd, shown

_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_Keyed = dict[str, msgspec.Raw]


class Document(NamedTuple):
    """A JSON document.

    Args:
        path: The file.
        data: Its text from the first brace or bracket on.
        first_line: The line on which that stands.
        size: Bytes on disk.
        oddities: What stood before it.
    """

    path: Path
    data: bytes
    first_line: int
    size: int
    oddities: Sequence[Odd]

    def value(self, *keys: str) -> Any:  # noqa: ANN401 - whatever stands there
        """Return what stands under the keys, one in another, or None when one of them is missing.

        Raises:
            Refused: When the document is no JSON object, or what stands there cannot be read.
        """
        raw = self._raw(*keys)
        try:
            return None if raw is None else msgspec.json.decode(raw)
        except _UNREADABLE as error:
            raise Refused(
                f"{path_text(self.path)}: {'.'.join(keys)} cannot be read: {error}",
                hint="the output may be damaged; fetch it again",
            ) from error

    def has(self, *keys: str) -> bool:
        """Say whether anything but null stands under the keys, whether or not it can be read.

        Raises:
            Refused: When the document is no JSON object.
        """
        raw = self._raw(*keys)
        return raw is not None and bytes(raw) != b"null"

    def pieces(self, *keys: str) -> Iterator[Line]:
        """Yield each member of the array under the keys; without keys the document itself is the array.

        Raises:
            Refused: When the document is not JSON, or there is no array in that place.
        """
        members = self._members(keys)

        def each() -> Iterator[Line]:
            begun = end = 0
            line = self.first_line
            for member in members:
                raw = bytes(member)
                found = self.data.find(raw, end)
                line += self.data.count(b"\n", begun, found)
                begun, end = found, found + len(raw)
                yield Line(line, raw, self.size, ended=True)

        return each()

    def _members(self, keys: Sequence[str]) -> list[msgspec.Raw]:
        raw = self._raw(*keys)
        where = ".".join(keys) or "the document"
        if raw is None:
            raise Refused(
                f"{path_text(self.path)}: {where} is missing", hint="check that the file is of this kind"
            )
        try:
            return msgspec.json.decode(raw, type=list[msgspec.Raw])
        except _UNREADABLE as error:
            raise Refused(
                f"{path_text(self.path)}: {where} is not an array", hint="check that the file is of this kind"
            ) from error

    def _raw(self, *keys: str) -> bytes | msgspec.Raw | None:
        raw: bytes | msgspec.Raw = self.data
        for key in keys:
            try:
                inner = msgspec.json.decode(raw, type=_Keyed).get(key)
            except _UNREADABLE as error:
                raise Refused(
                    f"{path_text(self.path)}: cannot be read as a JSON object: {error}",
                    hint="the output may be cut short; fetch it again",
                ) from error
            if inner is None:
                return None
            raw = inner
        return raw


def open_document(path: Path) -> Document:
    """Read a file that holds one JSON document; text before it, such as a greeting, is passed over and reported.

    Raises:
        Refused: When the file cannot be read, is damaged, or holds no JSON object or array.
    """
    text, size = read_whole(path)
    start = text.find(b"{")
    if start < 0 or text[:start].rstrip().endswith(b"["):
        start = text.rfind(b"[", 0, start) if start >= 0 else text.find(b"[")
    if start < 0:
        raise Refused(
            f"{path_text(path)}: holds no JSON document", hint="check that the file is of this kind"
        )
    before = text[:start].strip()
    oddities: list[Odd] = []
    if before and before != BYTE_ORDER_MARK:
        greeting = shown(before.decode("utf-8", "replace"))
        oddities.append(("banner", f"{len(before)} bytes before the JSON are passed over: {greeting}"))
    return Document(path, text[start:], 1 + text.count(b"\n", 0, start), size, oddities)
