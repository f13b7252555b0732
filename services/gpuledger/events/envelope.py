"""The CloudEvents 1.0 envelope (structured JSON) around every fact.

Identity is (source, id). ``digest`` is taken over the bytes as they arrived, before any mapping.
"""

import datetime as dt
import hashlib
import re
from collections.abc import Iterable
from decimal import Decimal
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec

from gpuledger.events.fields import END_OF_TIME_S, Name, is_storable
from gpuledger.events.registry import Fact, fact_type, name_of
from gpuledger.events.upcasting import lift, lift_journalled, stamp, version_of
from gpuledger.kernel.clock import instant, seconds
from gpuledger.kernel.errors import BadRecord

PREFIX = "org.gpuledger."
SCHEMA_ROOT = "urn:gpuledger:schema:"

_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_TYPE = re.compile(re.escape(PREFIX) + r"(?P<name>[a-z_]+\.[a-z_]+)\.v(?P<version>[1-9][0-9]{0,3})")
_NULL = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")
"""The escape of U+0000, which PostgreSQL cannot store; an escaped backslash before ``u0000`` is none."""
_BACKSLASH = ord("\\")
"""Few events hold one, and to look for one byte takes a tenth of looking for six."""


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """A fact with its identity and its time.

    Args:
        id: Unique within the source.
        source: Who says so, a URI reference such as ``trace/philly``.
        at_s: When it happened: whole seconds since the epoch, floored.
        data: The fact.
        extra: Keys of ``data`` this version does not know; kept, never interpreted.
        digest: SHA-256 of the bytes as they arrived.
    """

    id: str
    source: str
    at_s: int
    data: Fact
    digest: bytes
    extra: dict[str, Any] = {}

    @property
    def name(self) -> str:
        """The type without prefix and version, such as ``workload.started``."""
        return name_of(type(self.data))


class _Wire(msgspec.Struct, frozen=True, kw_only=True):
    id: Name
    source: Name
    type: str
    time: dt.datetime
    specversion: str = "1.0"
    datacontenttype: str = "application/json"
    dataschema: str | None = None
    subject: str | None = None
    partitionkey: str | None = None
    data: msgspec.Raw = msgspec.Raw(b"{}")


class _Envelope(msgspec.Struct, gc=False):
    """What is written: the keys of ``_Wire`` in its order, with the fact itself, encoded in one pass."""

    id: str
    source: str
    type: str
    time: dt.datetime
    specversion: str
    datacontenttype: str
    dataschema: str
    subject: str | None
    partitionkey: str
    data: Fact | msgspec.Raw


def _number(text: str) -> Decimal:
    number = Decimal(text)
    if not is_storable(number):
        raise ValueError(f"the number {text[:40]} is out of bounds")
    return number


_encode = msgspec.json.Encoder(decimal_format="number").encode
_wire_decoder = msgspec.json.Decoder(_Wire)
_any_decoder = msgspec.json.Decoder(Any, float_hook=_number)
_keys_decoder = msgspec.json.Decoder(dict[str, msgspec.Raw])
_data_decoders: dict[type[Fact], "msgspec.json.Decoder[Fact]"] = {}
_named_decoders: dict[str, "msgspec.json.Decoder[Fact]"] = {}
_known_keys: dict[type[Fact], frozenset[str]] = {}
_forms: dict[type[Fact], "_Form"] = {}
_instant = lru_cache(maxsize=1 << 12)(
    instant
)  # facts of one record, and of records beside it, share their times


def make(
    *,
    id: str,  # noqa: A002 - CloudEvents' own word
    source: str,
    at_s: int,
    data: Fact,
    said: bytes | None = None,
) -> tuple[Event, bytes]:
    """Return a new event and its bytes as they go onto a stream.

    Args:
        id: Unique within the source.
        source: Who says so.
        at_s: When it happened.
        data: The fact.
        said: What ``data_json`` returned for the fact, from who has it already.

    Raises:
        BadRecord: When a string holds U+0000, which no row of the ledger could ever be read with, or it happened
            outside the years 1970 to 2100: what reads the stream would refuse it.
    """
    if not 0 <= at_s < END_OF_TIME_S:
        raise BadRecord(
            f"time: {at_s} s since 1970 are outside the years 1970 to 2100",
            code="time-out-of-range",
            hint="compare the times and durations of the record, from which it follows",
        )
    value = encode(id=id, source=source, at_s=at_s, data=data, said=said)
    if _BACKSLASH in value and _holds_null(value):
        raise BadRecord("a string holds the character U+0000", code="null-character", hint="take it out")
    return Event(id=id, source=source, at_s=at_s, data=data, digest=hashlib.sha256(value).digest()), value


def encode(*, id: str, source: str, at_s: int, data: Fact, said: bytes | None = None) -> bytes:  # noqa: A002
    """Return the structured-mode JSON of a CloudEvent; equal arguments give equal bytes. See ``make``."""
    form = _forms.get(data.__class__) or _form_of(type(data))
    return _encode(
        _Envelope(
            id,
            source,
            form.type,
            _instant(at_s),
            "1.0",
            "application/json",
            form.schema,
            form.subject_of(data),
            form.key_of(data),
            data if said is None else msgspec.Raw(said),
        )
    )


def decode(value: bytes) -> Event:
    """Read a CloudEvent from a stream.

    Raises:
        BadRecord: When it is no JSON, no CloudEvent, of an unknown type, or a field does not fit.
    """
    try:
        wire = _wire_decoder.decode(value)
    except _UNREADABLE as error:
        raise BadRecord(
            f"not a CloudEvent in structured JSON: {error}",
            code="not-an-event",
            hint="publish CloudEvents 1.0 in structured JSON mode",
        ) from error
    if _BACKSLASH in value and _holds_null(value):
        raise BadRecord("a string holds the character U+0000", code="null-character", hint="take it out")
    if wire.specversion != "1.0":
        raise BadRecord(
            f"CloudEvents version {wire.specversion!r} is not 1.0",
            code="unknown-version",
            hint="publish CloudEvents 1.0 in structured JSON mode",
        )
    if wire.time.tzinfo is None:
        raise BadRecord("time: has no zone", code="naive-time", hint="write RFC 3339 with Z or an offset")
    name, version, fact = _type(wire.type)
    try:
        said = lift(name, version, bytes(wire.data))
        data = _data_decoder(fact).decode(said)
        extra = _extra(said, _keys_of(fact))
    except _UNREADABLE as error:
        raise BadRecord(
            f"data of {wire.type}: {error}",
            code="bad-field",
            hint="see docs/events.md for the keys of each type",
        ) from error
    at_s = seconds(wire.time)
    if not 0 <= at_s < END_OF_TIME_S:
        raise BadRecord(
            f"time: {wire.time.isoformat()} is outside the years 1970 to 2100",
            code="time-out-of-range",
            hint="correct the clock or the unit of the sender",
        )
    return Event(
        id=wire.id,
        source=wire.source,
        at_s=at_s,
        data=data,
        extra=extra,
        digest=hashlib.sha256(value).digest(),
    )


def data_json(data: Fact) -> bytes:
    """Return the JSON of a fact's data, keys in the order of the schema, absent keys left out."""
    return _encode(data)


def journal_json(data: Fact) -> bytes:
    """Return a fact's data as it is journalled: ``decode_data`` reads it for ever, whatever becomes of the type."""
    return stamp(name_of(type(data)), data_json(data))


def decode_data(name: str, body: bytes | str) -> Fact:
    """Read the data of a journalled fact, of whatever version; extra keys are ignored.

    Raises:
        KeyError: When the name is not a known type.
    """
    decoder = _named_decoders.get(name)
    if decoder is None:
        fact = fact_type(name)
        if fact is None:
            raise KeyError(name)
        decoder = _named_decoders[name] = _data_decoder(fact)
    return decoder.decode(lift_journalled(name, body))


def book_of(data: Fact) -> str:
    """Return the book that the fact belongs to: its cluster, or ``~org``."""
    return getattr(data, "cluster", None) or ORG_BOOK


def facts_by_kind(events: Iterable[Event]) -> dict[type[Fact], list[Any]]:
    """Return the facts of events by their class: what is asked of a class is not asked of each of thousands."""
    found: dict[type[Fact], list[Any]] = {}
    for event in events:
        data = event.data
        kind = data.__class__
        if kind in found:
            found[kind].append(data)
        else:
            found[kind] = [data]
    return found


def key_of(data: Fact) -> str:
    """Return the partition key: the host for samples, otherwise the book."""
    return _form_of(type(data)).key_of(data)


def subject_of(data: Fact) -> str | None:
    """Return the CloudEvents subject, such as ``workload/8841``."""
    return _form_of(type(data)).subject_of(data)


ORG_BOOK = "~org"
"""The book of what belongs to no cluster: accounts, shares, policy data."""


class _Form(NamedTuple):
    """What the envelopes of one type share.

    Args:
        type: The CloudEvents type.
        schema: The URN of the schema of ``data``.
        subject: The field that the subject names.
        key: The field that the partition key is taken from.
    """

    type: str
    schema: str
    subject: str | None
    key: str | None

    def subject_of(self, data: Fact) -> str | None:
        return f"{self.subject}/{getattr(data, self.subject)}" if self.subject else None

    def key_of(self, data: Fact) -> str:
        return (getattr(data, self.key) if self.key else None) or ORG_BOOK


def _form_of(fact: type[Fact]) -> _Form:
    form = _forms.get(fact)
    if form is None:
        name = name_of(fact)
        fields = fact.__struct_fields__
        key = "host" if name == "telemetry.sampled" else "cluster"
        form = _forms[fact] = _Form(
            type=type_of(name),
            schema=schema_urn(name),
            subject=next((field for field in ("workload", "host", "account") if field in fields), None),
            key=key if key in fields else None,
        )
    return form


def type_of(name: str) -> str:
    """Return the CloudEvents type of a name, in today's version."""
    return f"{PREFIX}{name}.v{version_of(name)}"


def schema_urn(name: str) -> str:
    """Return the URN of the schema of a type's data, in today's version."""
    return f"{SCHEMA_ROOT}{name}:v{version_of(name)}"


def _type(written: str) -> tuple[str, int, type[Fact]]:
    """Return name, version and class of a CloudEvents type.

    Raises:
        BadRecord: When this code does not read it.
    """
    found = _named(written)
    if found[1] > version_of(found[0]):
        raise _unknown(written)
    return found


@lru_cache(maxsize=1 << 8)
def _named(written: str) -> tuple[str, int, type[Fact]]:
    """Return name, version and class of a type; what is no type raises, so that it is not remembered however long."""
    found = _TYPE.fullmatch(written)
    fact = fact_type(found["name"]) if found else None
    if found is None or fact is None:
        raise _unknown(written)
    return found["name"], int(found["version"]), fact


def _unknown(written: str) -> BadRecord:
    return BadRecord(
        f"type: {written!r} is not a known event type",
        code="unknown-type",
        hint="see docs/events.md for the types this version reads",
    )


def _holds_null(value: bytes) -> bool:
    return b"\\u0000" in value and _NULL.search(value) is not None


def _extra(data: bytes | str, known: frozenset[str]) -> dict[str, Any]:
    """Return what stands under keys that are not known; what is known is not read twice."""
    found = _keys_decoder.decode(data)
    if known.issuperset(found):
        return {}
    return {key: _any_decoder.decode(item) for key, item in found.items() if key not in known}


def _data_decoder(fact: type[Fact]) -> "msgspec.json.Decoder[Fact]":
    decoder = _data_decoders.get(fact)
    if decoder is None:
        decoder = _data_decoders[fact] = msgspec.json.Decoder(fact)
    return decoder


def _keys_of(fact: type[Fact]) -> frozenset[str]:
    keys = _known_keys.get(fact)
    if keys is None:
        keys = _known_keys[fact] = frozenset(f.encode_name for f in msgspec.structs.fields(fact))
    return keys
