"""What ``nvidia-smi`` prints, whichever the form: cells that may hold a value, a unit, or a reason for neither."""

import re
from decimal import Decimal, InvalidOperation

from gpuledger.kernel.errors import BadRecord, Refused
from gpuledger.sources.protocol import ImportOptions
from gpuledger.sources.readings import measured
from gpuledger.sources.values import LocalTimes, Odd, shown

KIND = "nvidia-smi"
"""The default cluster, and the first part of the events' source: XML and CSV of one reading say the same."""

_NOT_MEASURED = frozenset(
    (
        "",
        "n/a",
        "not supported",
        "not available",
        "not active",
        "insufficient permissions",
        "requested functionality has been deprecated",
    )
)
_FAILED = ("err!", "unknown error", "gpu requires reset", "gpu is lost", "error")
_NUMBER = re.compile(r"(-?[0-9]+(?:\.[0-9]+)?)(?: ?(%|MiB|W))?")


def number(field: str, cell: str | None, unit: str, oddities: list[Odd]) -> Decimal | None:
    """Return a measured value, or None; what is odd about a cell without one is reported.

    Args:
        field: What messages call it.
        cell: What stands there, in any of the tool's forms: ``38 %``, ``38``, ``[N/A]``.
        unit: ``%``, ``MiB`` or ``W``; a cell in another unit is not guessed at.
        oddities: Where remarks go.
    """
    text = (cell or "").strip()
    if _is_absent(text):
        return None
    found = _NUMBER.fullmatch(text)
    if found is None or found[2] not in (None, unit):
        word = text.strip("[]").lower()
        code = "device-error" if word.startswith(_FAILED) else "unknown-value"
        oddities.append((code, f"{field}: {shown(text)} is no number of {unit}; not measured"))
        return None
    try:
        value, odd = measured(field, Decimal(found[1]), 100 if unit == "%" else None)
    except InvalidOperation:  # too many digits for any device
        value, odd = None, ("impossible-value", f"{field}: {shown(text)} cannot be; left out as not measured")
    if odd is not None:
        oddities.append(odd)
    return value


def flag(cell: str | None) -> bool | None:
    """Return what a cell of Yes or No says; None for anything else."""
    return {"yes": True, "no": False}.get((cell or "").strip().lower())


def text(cell: str | None) -> str:
    """Return a cell's text, empty when the tool says that it has none."""
    value = (cell or "").strip()
    return "" if _is_absent(value) else value


def local_times(options: ImportOptions) -> LocalTimes:
    """Return a reader of the tool's own times, which are of the host's zone and do not say so.

    Raises:
        Refused: When nobody says which zone that is.
    """
    if options.timezone is None and options.at_s is None:
        raise Refused(
            "nvidia-smi writes local times and does not say in which zone",
            hint="give the zone of the host: --tz UTC, or --tz Europe/Berlin",
        )
    return LocalTimes(options.timezone)


def _is_absent(value: str) -> bool:
    return value.strip("[]").lower() in _NOT_MEASURED


def require_zone(options: ImportOptions, stamp: str) -> None:
    """Refuse a time of a host whose zone nobody told: the tool writes local times.

    Raises:
        BadRecord: When ``--tz`` was not given.
    """
    if options.timezone is None:
        raise BadRecord(
            f"timestamp: {shown(stamp)} has no zone",
            code="no-zone",
            hint="give the zone of the host: --tz UTC",
        )
