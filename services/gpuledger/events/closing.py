"""The book's own clock and the life of its periods: ticks, settlements, closing, closed, sealed, reopened."""

import msgspec

from gpuledger.events.fields import Composed, Count, Instant, Name, Person, Positive, Typed


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


class StreamPosition(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How far a consumer had read a partition of a stream.

    Args:
        consumer: Who reads it.
        stream: The stream.
        partition: Its partition.
        position: The next record to read.
    """

    consumer: Composed
    stream: Composed
    partition: Count
    position: Count


class Frozen(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a close is made of besides the rows before it: it would be another at another moment.

    Args:
        org_seq: The newest row of ``~org``: accounts, shares and policy data are read up to it.
        timezone: The organisation's zone, which cuts the period.
        tzdata: The version of the time-zone data that said where.
        starts_at: The period's first instant.
        ends_at: Its end, exclusive.
        positions: How far each consumer had read each stream.
    """

    org_seq: Count
    timezone: Composed
    tzdata: Composed
    starts_at: Instant
    ends_at: Instant
    positions: list[StreamPosition] = []


class Reconciled(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What came of comparing the book with the scheduler's own record.

    Args:
        digest: SHA-256 of what was compared, in hexadecimal.
        runs: How many runs.
        ledger_gpu_ms: GPU-time that they held as the ledger has it.
        record_gpu_ms: GPU-time that they held as the record has it.
        differences: How a difference came about -> how many runs differ so.
        unexplained: How many differ without a cause.
    """

    digest: Composed
    runs: Count
    ledger_gpu_ms: Count
    record_gpu_ms: Count
    differences: dict[Composed, Count] = {}
    unexplained: Count = 0


class PeriodClosing(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """From here on nothing is booked into the period: the rows before this one are what its close is made of.

    Args:
        cluster: The cluster, which is also the book.
        period: The budget period.
        version: 1 for the first close of the period, one more after each reopening.
        by: Who closes it.
        reason: Why, when somebody says so.
        frozen: What else the close is made of; absent in rows that were written before there were files of closes.
    """

    cluster: Name
    period: Composed
    version: Positive
    by: Person
    reason: Typed | None = None
    frozen: Frozen | None = None


class PeriodClosed(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The period is settled: what was left expired or went on into the next one.

    Args:
        cluster: The cluster, which is also the book.
        period: The budget period.
        version: That of its closing.
        closing_seq: The row that fixed what the close is made of.
        reconciled: What came of the comparison with the scheduler's record, where there was one.
    """

    cluster: Name
    period: Composed
    version: Positive
    closing_seq: Count
    reconciled: Reconciled | None = None


class PeriodSealed(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The file of a close was made and validated; whatever it is compared with later must have this digest.

    Args:
        cluster: The cluster, which is also the book.
        period: The budget period.
        version: That of the close.
        closing_seq: The row that fixed what the close is made of.
        digest: SHA-256 of the file in canonical form, in hexadecimal.
    """

    cluster: Name
    period: Composed
    version: Positive
    closing_seq: Positive
    digest: Composed


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
