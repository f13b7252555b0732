"""From waits and the newest cycle to the page of the queue: who waits now, how long it takes, by what order. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from gpuledger.client.answers import Cycle
from gpuledger.client.waiting import WaitsRow
from gpuledger_dashboards import empty

CLASSES = {"allocated": "paid for", "unallocated": "free"}
"""Class -> how a reader who knows no other word for it calls it."""

HALF, MOST = "Half started", "Nine in ten started"
UNKNOWN_YET = "not known yet"

_MINUTE_S, _HOUR_S, _DAY_S = 60, 3_600, 86_400

ORDER = (
    (
        "**Who was served least comes first.** From the root down, among siblings, the account whose use is the "
        "smallest part of what it was entitled to over the window; the page Fair share shows these figures."
    ),
    (
        "**Nobody is left below the floor.** An account that waits and runs far less than it is entitled to at present "
        "comes before that order, with work that stays within its part."
    ),
    "**Inside one account the account decides:** its own order counts there and nowhere else, then who asked first.",
    (
        "**Large work gets a date.** The first of each size that finds no room is given hosts and the moment from "
        "which they are kept for it, so that small work cannot pass it for ever."
    ),
    (
        "**Work that is paid for starts protected** for its minimum runtime; free work starts on what is left, and may "
        "have to leave at any moment."
    ),
)
"""The order of the queue in plain words, as the policy applies it."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """How long requests of one size and class waited, for a chart.

    Args:
        size: GPUs asked for.
        klass: The class in words.
        p50_min: Minutes within which half had started; None where it is not known yet.
        p90_min: Minutes within which nine in ten had.
        text: Both in words.
    """

    size: str
    klass: str
    p50_min: float | None
    p90_min: float | None
    text: str


@dataclass(frozen=True, slots=True)
class DayOfWaits:
    """One quantile of the requests of one day; a value of None is a gap in the line."""

    day: str
    part: str
    minutes: float | None
    text: str


def duration(length_s: int | None) -> str:
    """Return a length of time for people: the two largest units there are, or that it is not known yet."""
    if length_s is None:
        return UNKNOWN_YET
    if length_s < _MINUTE_S:
        return f"{length_s} s"
    if length_s < _HOUR_S:
        return f"{length_s // _MINUTE_S} min"
    if length_s < _DAY_S:
        minutes = length_s % _HOUR_S // _MINUTE_S
        return f"{length_s // _HOUR_S} h" + (f" {minutes} min" if minutes else "")
    hours = length_s % _DAY_S // _HOUR_S
    return f"{length_s // _DAY_S} d" + (f" {hours} h" if hours else "")


def headline(total: WaitsRow) -> str:
    """Return the window in one sentence."""
    at_once = f", {total.at_once_count:,} of them at once" if total.at_once_count else ""
    said = f"{total.request_count:,} requests: {total.started_count:,} started{at_once}; {_both(total)}"
    if total.waiting_count:
        said += f"; {total.waiting_count:,} waited still at the last roll-up"
    return f"{said}. The longest wait is {duration(total.longest_s)}."


def stretches(by_class: Mapping[str, Sequence[WaitsRow]]) -> list[Stretch]:
    """Return p50 and p90 of each size and class, sizes from the smallest up."""
    return [
        Stretch(
            row.key,
            CLASSES.get(klass, klass),
            _minutes(row.p50_s),
            _minutes(row.p90_s),
            f"{_both(row)}; {row.request_count:,} requests",
        )
        for klass, rows in by_class.items()
        for row in rows
    ]


def table(by_class: Mapping[str, Sequence[WaitsRow]]) -> list[dict[str, str]]:
    """Return the rows of a table, a class after the other."""
    return [
        {
            "GPUs asked for": f"{row.key}, {CLASSES.get(klass, klass)}",
            "Requests": f"{row.request_count:,}",
            "Started at once": f"{row.at_once_count:,}",
            "Wait still": f"{row.waiting_count:,}",
            "Gave up": f"{row.withdrawn_count:,}",
            HALF: duration(row.p50_s),
            MOST: duration(row.p90_s),
            "Longest": duration(row.longest_s),
        }
        for klass, rows in by_class.items()
        for row in rows
    ]


def by_day(rows: Iterable[WaitsRow]) -> list[DayOfWaits]:
    """Return p50 and p90 of each day."""
    return [
        DayOfWaits(row.key, part, _minutes(value), f"{duration(value)} of {row.request_count:,} requests")
        for row in rows
        for part, value in ((HALF, row.p50_s), (MOST, row.p90_s))
    ]


def day_table(rows: Iterable[WaitsRow]) -> list[dict[str, str]]:
    """Return the days as rows of a table."""
    return [
        {
            "Day": row.key,
            "Requests": f"{row.request_count:,}",
            HALF: duration(row.p50_s),
            MOST: duration(row.p90_s),
            "Longest": duration(row.longest_s),
        }
        for row in rows
    ]


def csv_rows(by_class: Mapping[str, Sequence[WaitsRow]]) -> list[Mapping[str, object]]:
    """Return sizes and classes for a download."""
    return [
        {
            "class": klass, "size": row.key, "request_count": row.request_count, "started_count": row.started_count,
            "at_once_count": row.at_once_count, "waiting_count": row.waiting_count,
            "withdrawn_count": row.withdrawn_count, "p50_s": row.p50_s, "p90_s": row.p90_s, "p99_s": row.p99_s,
            "longest_s": row.longest_s,
        }
        for klass, rows in by_class.items()
        for row in rows
    ]  # fmt: skip


def now(cycle: Cycle) -> str:
    """Return what the newest cycle decided, in one sentence."""
    counts = {
        action: sum(one.action == action for one in cycle.decisions)
        for action in ("start", "wait", "preempt")
    }
    if not any(counts.values()):
        return "Nothing waits that the newest cycle tells of."
    return (
        f"The newest cycle starts {counts['start']:,}, lets {counts['wait']:,} wait and"
        f" has {counts['preempt']:,} leave."
    )


def no_waits(cluster: str, first: str, last: str) -> empty.Why:
    """Return why a window has no waits."""
    return empty.Why(
        f"No request of {cluster} that could first run from {first} to {last} is rolled up.",
        "Sources that know no submit times have none; for others, roll the days up or choose other days.",
        empty.ROLL_UP,
    )


def _both(row: WaitsRow) -> str:
    return f"half {_within(row.p50_s)}, nine in ten {_within(row.p90_s)}"


def _within(length_s: int | None) -> str:
    return "at a time that is not known yet" if length_s is None else f"within {duration(length_s)}"


def _minutes(length_s: int | None) -> float | None:
    # A chart takes floats; no figure is computed from them. An axis of powers has no place for nothing.
    return None if length_s is None else max(length_s, 1) / _MINUTE_S
