"""From a line of a watch stream to the object on it; the times in an object."""

from typing import NamedTuple, TypeVar

import msgspec

from gpuledger.events.fields import END_OF_TIME_S, Instant
from gpuledger.kernel.clock import seconds
from gpuledger.kernel.errors import BadRecord
from gpuledger.sources.kubernetes.objects import Condition, Meta, Part
from gpuledger.sources.values import instant_in_bounds

ADDED, DELETED, BOOKMARK, ERROR = "ADDED", "DELETED", "BOOKMARK", "ERROR"
VANISHED = "VANISHED"
"""Not a word of the API: the object was there when it was last looked for, and is not any more."""


class Seen(NamedTuple):
    """An object as somebody saw it.

    Args:
        kind: Its kind.
        change: ``ADDED``, ``MODIFIED``, ``DELETED`` or ``VANISHED``; ``ADDED`` where nothing is said.
        raw: The object.
        observed_s: When it was seen, where whoever wrote the stream says so; of what vanished, for the last time.
    """

    kind: str
    change: str
    raw: bytes | msgspec.Raw
    observed_s: int | None = None

    @property
    def is_gone(self) -> bool:
        """Whether the object is no more."""
        return self.change in {DELETED, VANISHED}

    @property
    def is_guess(self) -> bool | None:
        """True when nobody saw it go: the time is that of the last evidence of life."""
        return True if self.change == VANISHED else None


_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_Object = TypeVar("_Object", bound=Part)
_decoders: dict[type, "msgspec.json.Decoder[object]"] = {}


class _Line(Part, frozen=True):
    kind: str = ""
    type: str = ""
    object: msgspec.Raw = msgspec.Raw(b"")
    observed_at: Instant | None = None


class _Kinded(Part, frozen=True):
    kind: str = ""


_line_decoder = msgspec.json.Decoder(_Line)
_kind_decoder = msgspec.json.Decoder(_Kinded)


def unwrap(raw: bytes, default_kind: str = "") -> Seen:
    """Return the object on a line of a watch stream, or the bare object that the line is.

    Args:
        raw: The line.
        default_kind: The kind of objects that do not say so: members of a list as the API answers it.

    Raises:
        BadRecord: When it is neither.
    """
    try:
        line = _line_decoder.decode(raw)
        inner = bytes(line.object)
        kind = (_kind_decoder.decode(inner).kind if inner else line.kind) or default_kind
    except _UNREADABLE as error:
        raise BadRecord(
            f"not a Kubernetes object: {error}",
            code="not-an-object",
            hint='write one object a line, bare or as {"type": ..., "object": {...}}',
        ) from error
    if not kind:
        raise BadRecord(
            "kind: is missing: a fragment of an object, or none",
            code="fragment",
            hint="write whole objects, as kubectl get -o json prints them",
        )
    if not inner:
        return Seen(kind, ADDED, raw)
    return Seen(kind, line.type, inner, at_s(line.observed_at))


def decode(kind: type[_Object], raw: bytes | msgspec.Raw) -> _Object:
    """Read an object.

    Raises:
        BadRecord: When a field does not have the form that the API gives it.
    """
    decoder = _decoders.get(kind)
    if decoder is None:
        decoder = _decoders[kind] = msgspec.json.Decoder(kind)
    try:
        found = decoder.decode(raw)
    except _UNREADABLE as error:
        raise BadRecord(
            f"{kind.__name__}: {error}",
            code="bad-field",
            hint="compare with kubectl get -o json; times need an offset, such as Z",
        ) from error
    assert isinstance(found, kind)  # noqa: S101 - narrows the type; the decoder made it
    return found


def condition(conditions: list[Condition] | None, kind: str) -> Condition | None:
    """Return the condition of a type, if there is one."""
    return next((found for found in conditions or () if found.type == kind), None)


def at_s(moment: Instant | None) -> int | None:
    """Return an instant in seconds since the epoch; None for none, and for the zero times that stand for none.

    Raises:
        BadRecord: When it is after the year 2100.
    """
    if moment is None:
        return None
    found = seconds(moment)
    if found >= END_OF_TIME_S:
        instant_in_bounds("time", found, moment.isoformat())
    return found if found > 0 else None


def since_s(found: Condition, field: str) -> int:
    """Return when a condition became what it is.

    Raises:
        BadRecord: When it does not say so.
    """
    since = at_s(found.last_transition_time)
    if since is None:
        raise missing(f"status.conditions[{field}].lastTransitionTime")
    return since


def created_s(meta: Meta) -> int:
    """Return when an object was made.

    Raises:
        BadRecord: When it does not say so.
    """
    made_s = at_s(meta.creation_timestamp)
    if made_s is None:
        raise missing("metadata.creationTimestamp")
    return made_s


def written_s(meta: Meta) -> int | None:
    """Return when anybody last wrote to the object, as far as it says."""
    times = [at for entry in meta.managed_fields or () if (at := at_s(entry.time)) is not None]
    return max(times, default=None)


def missing(field: str) -> BadRecord:
    """Return the error for a field that is not there."""
    return BadRecord(
        f"{field}: is missing",
        code="missing-value",
        hint="write whole objects, as kubectl get -o json prints them",
    )
