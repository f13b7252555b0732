"""The book's own clock and the life of its periods: ticks, settlements, closing, closed, reopened."""

import msgspec

from gpuledger.events.fields import Composed, Count, Name, Person, Positive, Typed


class LedgerTicked(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The book's clock stands at the event's time: open runs are charged up to there, and what lapsed expires.

    Args:
        cluster: The cluster, which is also the book.
        after_seq: The newest row in which lost ends and superseded credits were looked for; absent where nobody looked.
    """

    cluster: Name
    after_seq: Count | None = None


class LedgerSettled(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Carries the expiry and rollover that follow anew from what the book learned up to a row.

    Args:
        cluster: The cluster, which is also the book.
        after_seq: The newest row before it.
    """

    cluster: Name
    after_seq: Positive


class LedgerRestated(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Carries what further workloads cost under policy data that the book took over, in rows of bounded length.

    Args:
        cluster: The cluster, which is also the book.
        policy_seq: The row that took it over; it carries the first workloads itself.
        part: 1 for the first row after that one.
    """

    cluster: Name
    policy_seq: Positive
    part: Positive


class PeriodClosing(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """From here on nothing is booked into the period: the rows before this one are what its close is made of.

    Args:
        cluster: The cluster, which is also the book.
        period: The budget period.
        version: 1 for the first close of the period, one more after each reopening.
        by: Who closes it.
        reason: Why, when somebody says so.
    """

    cluster: Name
    period: Composed
    version: Positive
    by: Person
    reason: Typed | None = None


class PeriodClosed(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The period is settled: what was left expired or went on into the next one.

    Args:
        cluster: The cluster, which is also the book.
        period: The budget period.
        version: That of its closing.
        closing_seq: The row that fixed what the close is made of.
    """

    cluster: Name
    period: Composed
    version: Positive
    closing_seq: Count


class PeriodReopened(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A closed period takes bookings again.

    Args:
        cluster: The cluster, which is also the book.
        period: The budget period.
        version: That of the close that no longer holds.
        by: Who reopened it.
        reason: Why.
    """

    cluster: Name
    period: Composed
    version: Positive
    by: Person
    reason: Typed
