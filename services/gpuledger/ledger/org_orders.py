"""Orders about the organisation that its book refuses as it stands, whoever gives them.

An event alone does not show whether facts are booked whose days it would move, nor whether settings go together with
those that are in force. What was in force stays so.
"""

from collections.abc import Sequence

from gpuledger.database.engine import Writer
from gpuledger.events.budget import PolicyChanged
from gpuledger.events.registry import Fact
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.errors import BadRecord
from gpuledger.ledger import knobs, queries
from gpuledger.ledger.copying import driver
from gpuledger.ledger.knobs import SETTINGS, Version

ORGANISATION = "organisation"
"""The policy that says in which zone days and periods are cut."""

ZONE_HINT = (
    "the zone can be set before the first fact only: set up a new database, apply the budget file with the zone there,"
    " and read streams and files again"
)

_TOGETHER_HINT = "set knobs that depend on each other in one order"


def check(writer: Writer, orders: Sequence[tuple[int, Fact]], calendar: Calendar) -> None:
    """Refuse orders that would move days which are booked, or set knobs of the policy that contradict each other.

    Args:
        writer: A transaction that holds the lock of ``~org``.
        orders: What is new to the book: (from when on, in seconds since the epoch; what is ordered).
        calendar: The calendar before the organisation has set one.

    Raises:
        BadRecord: ``zone-in-use`` or ``settings-contradict``.
    """
    changed = [(at_s, fact) for at_s, fact in orders if isinstance(fact, PolicyChanged)]
    zones = [fact.timezone for _, fact in changed if fact.policy == ORGANISATION and fact.timezone]
    if zones:
        _check_zones(writer, zones, calendar)
    settings = [(at_s, fact) for at_s, fact in changed if fact.policy == SETTINGS]
    if settings:
        _check_settings(writer, settings)


def _check_zones(writer: Writer, zones: Sequence[str], calendar: Calendar) -> None:
    present = queries.calendar(writer, calendar).timezone
    moved = next((zone for zone in zones if zone != present), None)
    if moved is None:
        return
    wait_for_beginners(writer)
    if booked := queries.clusters(writer):
        raise BadRecord(
            f"organisation.timezone: {moved} differs from {present}, and facts of {', '.join(booked)} are booked by"
            " its days",
            code="zone-in-use",
            hint=ZONE_HINT,
        )


def wait_for_beginners(writer: Writer) -> None:
    """Let batches that are under way end first; no cluster begins until this transaction is committed."""
    driver(writer).execute("LOCK TABLE ledger.books IN EXCLUSIVE MODE")


def _check_settings(writer: Writer, settings: Sequence[tuple[int, PolicyChanged]]) -> None:
    found = knobs.versions(writer)
    for at_s, fact in settings:
        newest = max((version.org_seq for version in found), default=0)
        wanted = [*found, Version(at_s, newest + 1, fact.on_cluster, fact.settings or {})]
        if (refused := knobs.contradiction(found, wanted, at_s)) is not None:
            raise BadRecord(
                refused.message, code="settings-contradict", hint=f"{refused.hint}; {_TOGETHER_HINT}"
            )
        found = wanted
