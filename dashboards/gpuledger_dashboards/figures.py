"""How figures are written for people: GPU-hours, percent, instants, footnotes, CSV. Pure."""

import csv
import datetime as dt
import io
from collections.abc import Mapping, Sequence
from decimal import ROUND_HALF_EVEN, Decimal

from gpuledger.kernel.amounts import gpu_hours, people_gpu_hours
from gpuledger.kernel.spreadsheets import harmless

UNKNOWN = "unknown"
_TENTH = Decimal("0.1")
_MARKDOWN = str.maketrans({mark: "\\" + mark for mark in "\\`*_{}[]<>()#+!|~$:"})

RUNGS = {
    "gpu_util": "GPU_UTIL (liveness: the part of the time in which any kernel ran)",
    "gr_engine_active": "GR_ENGINE_ACTIVE (the part of the time in which the graphics engine was active)",
    "sm_active": "SM_ACTIVE (the part of the multiprocessors that had work)",
    "tensor_active": "tensor active (the part of the time in which the tensor pipe was busy)",
}
"""Rung of the utilisation ladder -> what it says, from the weakest up."""


def hours(gpu_ms: int | None) -> str:
    """Return an amount as GPU-hours with one decimal and thousands separated, or ``unknown``."""
    return UNKNOWN if gpu_ms is None else people_gpu_hours(gpu_ms)


def percent(ratio: Decimal | None) -> str:
    """Return a ratio as percent with one decimal, or ``unknown``."""
    if ratio is None:
        return UNKNOWN
    return f"{(ratio * 100).quantize(_TENTH, rounding=ROUND_HALF_EVEN)} %"


def share(part: int | None, whole: int | None) -> str:
    """Return a part as percent of a whole, or ``unknown`` where a side is missing or the whole is zero."""
    if part is None or not whole:
        return UNKNOWN
    return percent(Decimal(part) / Decimal(whole))


def instant(text: str | None) -> str:
    """Return an ISO instant as people write it, to the minute, with its zone."""
    if text is None:
        return UNKNOWN
    return f"{dt.datetime.fromisoformat(text).astimezone(dt.UTC):%Y-%m-%d %H:%M} UTC"


def days(first: dt.date, last: dt.date) -> str:
    """Return a window of whole days, both ends included."""
    return f"{first}" if first == last else f"{first} to {last}"


def plain(text: str) -> str:
    """Return text that Markdown leaves as it is."""
    return text.translate(_MARKDOWN)


def footnote(*, window: str, timezone: str, as_of: str, coverage: str, rung: str | None = None) -> str:
    """Return the line below a figure: what it covers, as of when, how much was measured, in which unit."""
    parts = [
        f"Window {window} (days of {timezone})",
        f"as of {instant(as_of)}",
        f"coverage {coverage}",
        "amounts in GPU-h",
    ]
    if rung is not None:
        parts.insert(3, f"rung {RUNGS.get(rung, rung)}")
    return plain(" · ".join(parts))


def csv_of(rows: Sequence[Mapping[str, object]], context: Mapping[str, object]) -> bytes:
    """Return rows as CSV; amounts stand in gpu_ms and in GPU-hours, the context beside every row.

    A text that a spreadsheet would take for a formula gets a leading apostrophe.
    """
    wide = [in_both_units(row) | dict(context) for row in rows]
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, list(dict.fromkeys(name for row in wide for name in row)))
    writer.writeheader()
    writer.writerows({name: _cell(value) for name, value in row.items()} for row in wide)
    return buffer.getvalue().encode()


def in_both_units(row: Mapping[str, object]) -> dict[str, object]:
    """Return a row of a download with GPU-hours beside each amount in gpu_ms."""
    found: dict[str, object] = {}
    for name, value in row.items():
        found[name] = value
        if name.endswith("_gpu_ms"):
            amount = gpu_hours(value) if isinstance(value, int) else None
            found[name.removesuffix("_gpu_ms") + "_gpu_hours"] = amount
    return found


def _cell(value: object) -> object:
    if value is None:
        return ""
    return harmless(value) if isinstance(value, str) else value
