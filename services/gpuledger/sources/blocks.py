"""Records that stand on several lines: from one line that begins a record to the next, or up to one that ends it."""

from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from typing import TypeVar

from gpuledger.kernel.errors import Refused
from gpuledger.sources.lines import LINE_LIMIT_BYTES, Broken, Line
from gpuledger.sources.protocol import Fault, Translated

Item = TypeVar("Item")

NEEDS_OPTIONS = frozenset(("no-time", "no-boot-time", "no-host", "no-zone"))
"""Faults of records that lack what only a person can say."""


def blocks(
    lines: Iterable[Line | Broken],
    *,
    begins: Callable[[bytes], bool] = lambda _: False,
    ends: Callable[[bytes], bool] = lambda _: False,
) -> Iterator[Line | Broken]:
    """Yield lines joined to records.

    Args:
        lines: The lines of a file.
        begins: Whether a line is the first of a record.
        ends: Whether a line is the last of one.
    """
    held: list[Line] = []
    size = 0
    for item in lines:
        if isinstance(item, Broken):
            yield from _joined(held)
            held, size = [], 0
            yield item
            continue
        if begins(item.raw):
            yield from _joined(held)
            held, size = [], 0
        held.append(item)
        size += len(item.raw) + 1
        if ends(item.raw) or size > LINE_LIMIT_BYTES:
            yield from _joined(held)
            held, size = [], 0
    yield from _joined(held)


def _joined(held: list[Line]) -> Iterator[Line | Broken]:
    if not held:
        return
    number, position = held[0].number, held[-1].position
    raw = b"\n".join(line.raw for line in held)
    if len(raw) <= LINE_LIMIT_BYTES:
        yield Line(number, raw, position, held[-1].ended)
        return
    yield Broken(
        number=number,
        code="record-too-long",
        message=f"the record that begins on line {number} has more than {LINE_LIMIT_BYTES} bytes",
        hint="look for the end of a record that is missing, mend it and import the file again",
        raw=raw,
        position=position,
        partial=True,
    )


def begun(items: Iterator[Item]) -> Iterator[Item]:
    """Take the first of an iterator now, so that what refuses the whole is raised here and not later."""
    return chain(list(islice(items, 1)), items)


def opened(
    items: Iterator[Translated | Fault], none: Callable[[], Refused | None] = lambda: None
) -> Iterator[Translated | Fault]:
    """Return the records; the first is read at once, so that what refuses the file is raised here and not later.

    Args:
        items: The records of a file.
        none: Says, when all were read, why a file that proved to hold nothing of its kind is refused, if it is.

    Raises:
        Refused: When the file is, or when already the first record lacks what only a person can say.
    """
    return begun(_checked(items, none))


def _checked(
    items: Iterator[Translated | Fault], none: Callable[[], Refused | None]
) -> Iterator[Translated | Fault]:
    first = next(items, None)
    if isinstance(first, Fault) and first.code in NEEDS_OPTIONS:
        raise Refused(first.message, hint=first.hint)
    if first is not None:
        yield first
        yield from items
    refused = none()
    if refused is not None:
        raise refused
