"""Movements that were booked into a period, added up. Pure."""

import datetime as dt
from typing import NamedTuple


class Sum(NamedTuple):
    """Movements of one kind.

    Args:
        account: Whose pot it is; ``~`` for pots of the book itself.
        belongs_to: The period in which they were effective, whenever they were booked.
        commodity: ``gpu_ms`` or ``gpu_ms_weighted``.
        pot: The pot.
        code: The movement's code; what is released was held.
        amount: Credits less debits.
    """

    account: str
    belongs_to: str
    commodity: str
    pot: str
    code: str
    amount: int


class Crossing(NamedTuple):
    """What moved between the period and another.

    Args:
        code: The movement's code.
        amount: Into the period less out of it, in gpu_ms x per mille.
    """

    code: str
    amount: int


class Moved(NamedTuple):
    """A journal row, and what it moved in a period.

    Args:
        event_id: The event's id, as its source gave it.
        sums: What it moved.
    """

    seq: int
    recorded_at: dt.datetime
    effective_at: dt.datetime
    type: str
    source: str
    event_id: str
    workload: str | None
    sums: tuple[Sum, ...]
