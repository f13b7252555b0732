"""The decisions of a cycle as they are kept: what many share is said once, what is a workload's own is in a row.

A piece holds what its decisions rest on, so that it is read alone. Sentences and figures of those who share an outlook
are made by whoever reads them, by the same functions and of the same values as the walk's own; all others are kept
whole. ``FORM`` names the layout *and* the sentences: whoever changes either takes the next number, and goes on reading
the earlier ones (docs/decisions/0042).
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from gpuledger.kernel.collecting import without_cycles
from gpuledger.kernel.errors import Refused
from gpuledger.policy.explain import Ahead, Kept, Side
from gpuledger.policy.outcomes import Action
from gpuledger.policy.outlook import Outlook, Own

WITH_SENTENCES: Final = 1
"""The form of earlier releases: a list of decisions with their places, each whole."""

FORM: Final = 2
"""The form in which decisions are written down."""

Placed = tuple[int, dict[str, Any]]
"""A decision's place in its cycle, from 0, and the decision under its published keys."""


class View(NamedTuple):
    """What an outlook says.

    Args:
        gpus_milli: What is asked for.
        free_milli: What was free.
        blocking: The reservation in the way, a place in the list of the piece.
        head: The head of the size class, likewise.
    """

    gpus_milli: int
    free_milli: int
    blocking: int | None
    head: int | None


class Row(NamedTuple):
    """A workload that waits as others do; see ``Own`` for the last three."""

    place: int
    workload: str
    account: str
    view: View
    ratio_ppm: int | None
    parting_ppm: int | None
    is_below: bool


class _Head(NamedTuple):
    workload: str
    account: str
    missing_milli: int
    sides: tuple[Side, ...]


class _Piece(msgspec.Struct, frozen=True):
    form: int
    blocking: Sequence[Kept]
    heads: Sequence[_Head]
    rows: Sequence[Row]
    whole: Sequence[Placed]


_encoder = msgspec.json.Encoder()
_decode = msgspec.json.Decoder(_Piece).decode
_decode_whole = msgspec.json.Decoder(list[Placed]).decode


def encode_rows(rows: Iterable[tuple[object, ...]]) -> list[bytes]:
    """Return each ``Row`` as it lies in a piece."""
    return _encoder.encode_lines(rows).splitlines()


def encode(
    rows: Sequence[bytes], whole: Sequence[Placed], blocking: Sequence[Kept], heads: Sequence[Ahead]
) -> bytes:
    """Return a piece.

    Args:
        rows: Those who share an outlook.
        whole: Decisions that are kept as they are.
        blocking: The reservations that views name.
        heads: The heads of size classes that they name.
    """
    told = _Piece(
        form=FORM,
        blocking=blocking,
        heads=[_Head(one.workload, one.account, one.missing_milli, one.sides) for one in heads],
        rows=(),
        whole=whole,
    )
    return _encoder.encode(told).replace(b'"rows":[]', b'"rows":[%b]' % b",".join(rows), 1)


def read(piece: bytes, workload: str | None = None) -> Iterator[Placed]:
    """Yield the decisions of a piece of any form.

    Args:
        piece: It.
        workload: Yield those of this workload and its runs only.

    Raises:
        Refused: When a later release wrote it.
    """
    if piece.startswith(b"["):  # with sentences
        yield from _of(_decode_whole(piece), workload)
        return
    found = _decode(piece)
    if found.form != FORM:
        raise Refused(
            f"decisions are kept in form {found.form}, and this release reads forms up to {FORM}",
            hint="ask the release that recorded the cycle",
        )
    yield from _of(found.whole, workload)
    heads = [Ahead(*head) for head in found.heads]
    for row in found.rows:
        if workload is None or row.workload == workload:
            yield row.place, _said(row, found.blocking, heads)


def read_all(pieces: Iterable[bytes]) -> list[dict[str, Any]]:
    """Return all decisions of a cycle in their order."""
    with without_cycles():  # nothing that is published refers to itself
        placed = [one for piece in pieces for one in read(piece)]
        placed.sort(key=lambda one: one[0])
        return [decision for _, decision in placed]


def _said(row: Row, blocking: Sequence[Kept], heads: Sequence[Ahead]) -> dict[str, Any]:
    view = row.view
    outlook = Outlook(
        view.gpus_milli,
        view.free_milli,
        None if view.blocking is None else blocking[view.blocking],
        None if view.head is None else heads[view.head],
    )
    own = Own(row.place + 1, row.account, row.ratio_ppm, row.parting_ppm, row.is_below)
    reason, numbers = outlook.told(own)
    return {"workload": row.workload, "action": Action.WAIT.value, "reason": reason, "numbers": numbers}


def _of(whole: Iterable[Placed], workload: str | None) -> Iterator[Placed]:
    return (placed for placed in whole if workload is None or placed[1]["workload"] == workload)
