"""A cycle as messages: whole where it is small, else in parts that every broker takes. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from gpuledger.events.budget import AllocationIssued
from gpuledger.events.envelope import encode

SOURCE = "gpuledger/policy"

PART_BYTES = 256 * 1024
"""A part ends when what it lists is as long; with one thing more it is below the 1 MB that brokers take by default."""

_LISTS = ("allocations", "decisions", "reservations")


def messages(issued: AllocationIssued, at_s: int) -> Iterator[bytes]:
    """Yield the CloudEvents that tell of a cycle, in order: together they list everything once.

    Args:
        issued: What was journalled.
        at_s: The instant that it decided for.
    """
    whole = encode(id=f"cycle/{issued.cycle}", source=SOURCE, at_s=at_s, data=issued)
    if len(whole) <= PART_BYTES:
        yield whole
        return
    rest = {name: value for name, value in issued.record.items() if name not in _LISTS}
    parts = list(_parts(issued.record))
    for number, lists in enumerate(parts, 1):
        part = msgspec.structs.replace(
            issued, part=number, parts=len(parts), record={**rest, **dict.fromkeys(_LISTS, ()), **lists}
        )
        yield encode(id=f"cycle/{issued.cycle}/part/{number}", source=SOURCE, at_s=at_s, data=part)


def _parts(record: Mapping[str, Sequence[Any]]) -> Iterator[Mapping[str, list[Any]]]:
    part: dict[str, list[Any]] = {}
    size = 0
    for name in _LISTS:
        for item in record.get(name, ()):
            length = len(msgspec.json.encode(item))
            if part and size + length > PART_BYTES:
                yield part
                part, size = {}, 0
            part.setdefault(name, []).append(item)
            size += length
    if part:
        yield part
