"""The file of a close: what it says, and the one way in which that is written down. Pure.

Canonical form: JSON in UTF-8, keys sorted, no white space, whole numbers and texts only, one newline at the end. Two
files that say the same have the same bytes, and so the same digest.
"""

import hashlib
from typing import Annotated

import msgspec

from gpuledger.events.closing import Reconciled, StreamPosition
from gpuledger.events.fields import Instant
from gpuledger.kernel.errors import Refused

FORMAT = "gpuledger.close/1"


class _Part(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A part of the file; what it does not know it does not take for one of its own."""


class Weighted(_Part, frozen=True):
    """What moved, in gpu_ms x per mille: the units that budgets are kept in, never divided.

    Args:
        granted: Given to the account for the period.
        rolled_in: What the period before left it; below zero for a debt.
        transferred: From other accounts, less what went to them.
        credited: Given back for failures of hardware.
        charged: Allocated time.
        held: Set aside by admissions and neither charged nor released.
        expired: What nobody used; below zero by an overrun.
        rolled_out: That part of it that went on into the next period; below zero for a debt.
        unallocated: Free time, charged to nobody.
        left: What the movements left in the budget: nothing, once it is settled.
    """

    granted: int = 0
    rolled_in: int = 0
    transferred: int = 0
    credited: int = 0
    charged: int = 0
    held: int = 0
    expired: int = 0
    rolled_out: int = 0
    unallocated: int = 0
    left: int = 0


class Physical(_Part, frozen=True):
    """Time of GPUs, in gpu_ms: milli-GPU x seconds, whatever their model weighs."""

    allocated: int = 0
    unallocated: int = 0


class Line(_Part, frozen=True):
    """What was booked into the period for one account."""

    account: str
    weighted: Weighted
    physical: Physical

    def amounts(self) -> dict[str, int]:
        """Return every amount under its name with its unit: ``charged_gpu_ms_weighted``, ``allocated_gpu_ms``."""
        weighted = {
            f"{n}_gpu_ms_weighted": getattr(self.weighted, n) for n in self.weighted.__struct_fields__
        }
        return {
            **weighted,
            **{f"{n}_gpu_ms": getattr(self.physical, n) for n in self.physical.__struct_fields__},
        }


class Late(_Part, frozen=True):
    """What was booked into the period and belongs to an earlier one: its corrections."""

    account: str
    period: str
    weighted: Weighted
    physical: Physical


class Totals(_Part, frozen=True):
    """All accounts together."""

    accounts: int
    weighted: Weighted
    physical: Physical


class Book(_Part, frozen=True):
    """The rows of a book that this close is the first to hold, and the head of its chain after the last of them."""

    book: str
    first_seq: int
    last_seq: int
    rows: int
    postings: int
    head: str
    journal_digest: str
    postings_digest: str


class Policy(_Part, frozen=True):
    """A version of policy data that was in force within the period."""

    book: str
    policy: str
    seq: int
    effective_at: Instant
    digest: str


class SourceState(_Part, frozen=True):
    """Up to when a source had told all it knew as the close was begun; silent when that is before the period's end."""

    source: str
    told_until_at: Instant
    silent: bool


class Time(_Part, frozen=True):
    """Where the period begins and ends, and what said so."""

    timezone: str
    tzdata: str
    starts_at: Instant
    ends_at: Instant


class Superseded(_Part, frozen=True):
    """The version that this one took the place of.

    Args:
        digest: Of its file; None when it was never sealed.
        reopened_seq: The row that undid it.
    """

    version: int
    digest: str | None
    reopened_seq: int


class Document(_Part, frozen=True):
    """Everything that one close says.

    Args:
        supersedes: The version before, which was reopened; None for the first.
        books: The cluster's book and ``~org``.
        offsets: How far each consumer had read each stream when the close was begun.
        sources: Up to when each source had told all it knew.
        reconciled: What came of the comparison with the scheduler's own record; None where there was none.
    """

    format: str
    cluster: str
    period: str
    version: int
    supersedes: Superseded | None
    time: Time
    books: list[Book]
    offsets: list[StreamPosition]
    sources: list[SourceState]
    policies: list[Policy]
    reconciled: Reconciled | None
    accounts: list[Line]
    late: list[Late]
    totals: Totals


Digest = Annotated[str, "SHA-256 in hexadecimal"]

_decoder = msgspec.json.Decoder(Document)


def encode(document: Document) -> bytes:
    """Return the canonical form."""
    return msgspec.json.encode(document, order="sorted") + b"\n"


def decode(content: bytes, place: str) -> Document:
    """Read a file of a close.

    Args:
        content: Its bytes.
        place: Where it was found, for people.

    Raises:
        Refused: When it is none.
    """
    try:
        return _decoder.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Refused(
            f"{place} is no file of a close: {error}", hint="gpuledger close run writes it anew"
        ) from error


def digest(content: bytes) -> Digest:
    """Return the digest that seals the canonical form."""
    return hashlib.sha256(content).hexdigest()
