"""Field types that facts share: what a value may be, checked while it is decoded."""

import datetime as dt
from decimal import Decimal
from enum import StrEnum
from typing import Annotated

import msgspec

Count = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
"""A whole number that cannot be negative."""

Instant = Annotated[dt.datetime, msgspec.Meta(tz=True)]
"""A time with its offset; one without is refused, because nobody can say when it was."""

KEPT = "kept"
"""Under this key the type of a string says what the journal keeps of it: one of ``Kept``. Every string says so."""


class Kept(StrEnum):
    """What the journal, which is never changed, keeps of a string."""

    NAME = "name"
    """The name of a thing, a label or a path of an account, as it is: never a person's."""
    FORM = "form"
    """It has a form, or is one of a closed set: events with another are refused at the door."""
    WORDS = "words"
    """The words that programs give; all else is put aside (``events.words``)."""
    EXIT = "exit"
    """An exit code; all else is put aside."""
    PERSON = "person"
    """A token in place of the person."""
    TYPED = "typed"
    """The reason of an order: put aside, unless it is a word of a program."""
    COMPOSED = "composed"
    """What gpuledger wrote itself, of names of things and numbers; no stream may tell it."""


Name = Annotated[str, msgspec.Meta(min_length=1, max_length=1024, extra={KEPT: Kept.NAME})]
"""An identifier: present and of a sane length."""

Label = Annotated[str, msgspec.Meta(extra={KEPT: Kept.NAME})]
"""An identifier as its source gives it, which may be anything."""

Form = Annotated[str, msgspec.Meta(extra={KEPT: Kept.FORM})]
"""One of a closed set, or of a form, which ``events.acceptance`` checks."""

Reason = Annotated[str, msgspec.Meta(extra={KEPT: Kept.WORDS})]
"""Why, in words of a program."""

Reference = Annotated[str, msgspec.Meta(min_length=1, max_length=4096, extra={KEPT: Kept.WORDS})]
"""Where something is to be found again, such as a path: it may name a person."""

Category = Annotated[str, msgspec.Meta(extra={KEPT: Kept.WORDS})]
"""What kind of work it is."""

Exit = Annotated[str, msgspec.Meta(extra={KEPT: Kept.EXIT})]
"""The code that a program ended with, such as ``1`` or ``0:15``."""

Person = Annotated[str, msgspec.Meta(extra={KEPT: Kept.PERSON})]
"""Who ordered it."""

User = Annotated[str, msgspec.Meta(min_length=1, max_length=1024, extra={KEPT: Kept.PERSON})]
"""Whose work it is."""

Typed = Annotated[str, msgspec.Meta(extra={KEPT: Kept.TYPED})]
"""Why somebody ordered it."""

Composed = Annotated[str, msgspec.Meta(extra={KEPT: Kept.COMPOSED})]
"""A sentence or a digest of the ledger's own."""

Positive = Annotated[int, msgspec.Meta(ge=1, le=2**53)]
"""A whole number above zero."""

Percent = Decimal
"""0 to 100; values outside physical bounds are refused where they are used, with their place."""

END_OF_TIME_S = 4_133_980_800
"""2101-01-01T00:00:00Z: facts happen from 1970 up to here; all else is a broken clock or a wrong unit."""

PRIORITY_MAX = 10**9
"""Priorities of grants lie within this, on both sides of zero."""

WORKLOAD_PRIORITY_MAX = 2**53
"""Those of workloads: the largest whole number that every reader of JSON takes as it is."""

GPUS_MAX = 10**6
"""GPUs of one host or one run: more than any cluster has. Their time fits every column until the end of time."""

_MAGNITUDE = 30


def is_storable(number: Decimal) -> bool:
    """Say whether a measured number is finite and of a size that every store takes."""
    text = str(number)
    if len(text) <= _MAGNITUDE and "E" not in text and number.is_finite():
        return True  # as almost every number is written; taking it apart costs twice as much
    exponent = number.as_tuple().exponent
    return isinstance(exponent, int) and exponent >= -_MAGNITUDE and number.adjusted() <= _MAGNITUDE
