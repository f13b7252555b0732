"""Signs of life of sources: what they have told, and what they know to be lost."""

from typing import Annotated

import msgspec

from gpuledger.events.fields import Count, Instant, Name, Reason


class Gap(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Messages that were made and will never come.

    Args:
        start: When the first of them began to measure.
        end: When the last of them ended.
        messages: How many there were.
        reason: Why, as a short code such as ``spool-full``.
    """

    start: Instant
    end: Instant
    messages: Count
    reason: Annotated[Reason, msgspec.Meta(min_length=1, max_length=1024)]


class Heartbeat(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The source is alive and has told all it knows up to the event's time, but for the gaps.

    Args:
        cluster: The cluster, which is also the book.
        host: The host that it watches, when it watches one.
        gaps: What was lost since its heartbeat before.
    """

    cluster: Name
    host: Name | None = None
    gaps: list[Gap] | None = None
