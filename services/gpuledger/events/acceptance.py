"""What a stream or a file may say: facts and orders, nothing the ledger writes itself or that would stop a book."""

import datetime as dt
from collections.abc import Callable
from functools import cache
from typing import Any

from gpuledger.events import mapping, telemetry
from gpuledger.events.budget import PERIODS, AccountCreated, Granted, PolicyChanged, Transferred
from gpuledger.events.envelope import ORG_BOOK, Event, decode
from gpuledger.events.fields import END_OF_TIME_S, GPUS_MAX, PRIORITY_MAX, WORKLOAD_PRIORITY_MAX
from gpuledger.events.host import HostFact
from gpuledger.events.own import OWN
from gpuledger.events.registry import Fact
from gpuledger.events.telemetry import Sampled
from gpuledger.events.workload import Resized, Started, Submitted, Updated
from gpuledger.kernel import knobs
from gpuledger.kernel.accounts import BOOK_POT_ACCOUNT, SEPARATOR
from gpuledger.kernel.amounts import GPU_MILLI
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.clock import seconds
from gpuledger.kernel.errors import BadRecord, Refused
from gpuledger.kernel.rollover import written

EVENT_BYTES_MAX = 4 << 20
"""A start on five thousand hosts, each with a name of 253 bytes and eight GPUs, is no larger."""


def understood(value: bytes) -> Event:
    """Read one event and check what its type alone cannot.

    Raises:
        BadRecord: When it cannot be read, is too large, holds an impossible value, or is what the ledger writes itself.
    """
    if len(value) > EVENT_BYTES_MAX:
        raise BadRecord(
            f"the event has {len(value)} bytes, more than {EVENT_BYTES_MAX}",
            code="event-too-large",
            hint="publish facts, one event each; keep what is large elsewhere and say where",
        )
    event = decode(value)
    if (command := OWN.get(type(event.data))) is not None:
        raise BadRecord(
            f"type: {event.name} is written by the ledger itself, and is not taken from a stream or a file",
            code="own-type",
            hint=f"gpuledger {command} has it written",
        )
    if getattr(event.data, "cluster", None) == ORG_BOOK:
        raise BadRecord(
            f"cluster: {ORG_BOOK!r} is the organisation's book, no cluster",
            code="reserved-name",
            hint="name the cluster otherwise",
        )
    for check in _checks_of(type(event.data)):
        check(event.data)
    return event


@cache
def _checks_of(kind: type[Fact]) -> tuple[Callable[[Any], None], ...]:
    """Return what is checked of facts of a type."""
    return tuple(check for kinds, check in _CHECKS if issubclass(kind, kinds))


def _check_devices(fact: HostFact) -> None:
    _check_size("gpus", fact.gpus, GPUS_MAX)


def _check_milli(fact: Submitted | Updated | Started | Resized) -> None:
    _check_size("gpus_milli", fact.gpus_milli or 0, GPUS_MAX * GPU_MILLI)


def _check_size(field: str, said: int, most: int) -> None:
    """Refuse what no cluster has: its time would fit no column, at the latest when a tick charges it."""
    if said > most:
        raise BadRecord(
            f"{field}: {said} is more than {most}",
            code="out-of-bounds",
            hint="gpus counts devices, gpus_milli thousandths of one",
        )


def _check_account(fact: Submitted | Updated | AccountCreated) -> None:
    """Refuse what would be booked among the pots of the book itself, where nobody looks for somebody's use."""
    if fact.account is not None and fact.account.partition(SEPARATOR)[0] == BOOK_POT_ACCOUNT:
        raise BadRecord(
            f"account: {fact.account!r} lies where the book keeps its own pots",
            code="reserved-name",
            hint="name the account that pays",
        )


def _check_priority_of(fact: Submitted | Updated) -> None:
    _check_priority(fact.priority, WORKLOAD_PRIORITY_MAX)


def _check_order(fact: Granted | Transferred | PolicyChanged) -> None:
    """Refuse what no book could be settled with; commands and files check their orders before they are given."""
    try:
        match fact:
            case Granted():
                _check_priority(fact.priority, PRIORITY_MAX)
                Calendar().period_bounds_s(fact.period)
                written(fact.rollover)
                _check_expiry(fact.expires_at)
            case Transferred():
                Calendar().period_bounds_s(fact.period)
            case PolicyChanged():
                _check_policy(fact)
    except BadRecord:
        raise
    except Refused as error:
        raise BadRecord(error.message, code="bad-field", hint=error.hint) from error


def _check_policy(changed: PolicyChanged) -> None:
    if changed.timezone is not None:
        Calendar(changed.timezone)
    if changed.period not in (None, *PERIODS):
        raise BadRecord(
            f"period: {changed.period!r} is not known", code="bad-field", hint=f"write {', '.join(PERIODS)}"
        )
    for rule in changed.rules or ():
        mapping.check(rule)
    for name, value in (changed.settings or {}).items():
        knobs.check(name, value)


def _check_priority(priority: int | None, most: int) -> None:
    if abs(priority or 0) > most:
        raise BadRecord(
            f"priority: {priority} is beyond {most}", code="bad-field", hint=f"write -{most} to {most}"
        )


def _check_expiry(expires_at: dt.datetime | None) -> None:
    if expires_at is not None and not 0 <= seconds(expires_at) < END_OF_TIME_S:
        raise BadRecord(
            f"expires_at: {expires_at.isoformat()} is outside the years 1970 to 2100",
            code="bad-field",
            hint="correct the time, or the clock of the sender",
        )


_CHECKS: tuple[tuple[type | tuple[type, ...], Callable[[Any], None]], ...] = (
    (Sampled, telemetry.check),
    (HostFact, _check_devices),
    ((Submitted, Updated, Started, Resized), _check_milli),
    ((Submitted, Updated), _check_priority_of),
    ((Submitted, Updated, AccountCreated), _check_account),
    ((Granted, Transferred, PolicyChanged), _check_order),
)
"""Types of facts -> what is checked of them beyond their types; which of these apply is looked up once a type."""
