"""From two weeks of layers, the budget, hosts and books to the overview: what changed, what needs somebody. Pure."""

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Decimal

from gpuledger.client.answers import Books, BudgetRow, ClusterStatus, LayersRow
from gpuledger.client.records import HostRow, Incident
from gpuledger_dashboards import budgets, empty, views
from gpuledger_dashboards.figures import hours, instant, percent

WEEK_DAYS = 7
TREND_DAYS = 28
"""Four weeks, the newest of which is the one that the page tells of."""

UNCHANGED = "no change"
NAMES_SHOWN = 3
STALE_AFTER = dt.timedelta(hours=36)
"""A roll-up runs every day; half a day of grace for one that is late."""

_TENTH = Decimal("0.1")


@dataclass(frozen=True, slots=True)
class Change:
    """One layer of the week, beside the week before and its target.

    Args:
        layer: The layer of the week.
        before: Its value in the week before; None when unknown.
        target: What is hoped for; None without a target.
        sentence: What changed since the week before, and of what.
    """

    layer: views.Layer
    before: Decimal | None
    target: Decimal | None
    sentence: str

    @property
    def points(self) -> str | None:
        """The difference in percentage points, signed, or that there is none; None where a week is unknown."""
        if self.layer.value is None or self.before is None:
            return None
        moved = _points(self.layer.value - self.before)
        return f"{moved:+} points" if moved else UNCHANGED

    @property
    def short_of_target(self) -> bool:
        """Whether it is below its target."""
        return self.target is not None and self.layer.value is not None and self.layer.value < self.target

    @property
    def aim(self) -> str:
        """The target in words."""
        if self.target is None:
            return "no target is set"
        if self.layer.value is None:
            return f"target {percent(self.target)}"
        if self.short_of_target:
            return f"target {percent(self.target)}, {_points(self.target - self.layer.value)} points short"
        return f"target {percent(self.target)}, met"


@dataclass(frozen=True, slots=True)
class Alert:
    """Something that needs somebody.

    Args:
        sentence: What it is.
        page: The page that tells more, by the name of its script.
    """

    sentence: str
    page: str

    @property
    def title(self) -> str:
        """The page's title."""
        return self.page.replace("_", " ").capitalize()


def days_of(
    last: dt.date,
) -> tuple[tuple[dt.date, dt.date], tuple[dt.date, dt.date], tuple[dt.date, dt.date]]:
    """Return the week that ends on a day, the week before it and the days of the trend; both ends included."""
    week = (last - dt.timedelta(days=WEEK_DAYS - 1), last)
    before = (week[0] - dt.timedelta(days=WEEK_DAYS), week[0] - dt.timedelta(days=1))
    return week, before, (last - dt.timedelta(days=TREND_DAYS - 1), last)


def last_whole_day(status: ClusterStatus) -> dt.date | None:
    """Return the newest day (UTC) that is rolled up to its end; the only one there is where none is."""
    known = views.known_days(status)
    if known is None or status.rolled_up_to is None:
        return None
    end = dt.datetime.fromisoformat(status.rolled_up_to).astimezone(dt.UTC)
    return max(known[0], end.date() - dt.timedelta(days=1))


def changes(now: LayersRow, before: LayersRow | None, targets: Mapping[str, Decimal | None]) -> list[Change]:
    """Return the four layers, from the base up, each with what changed."""
    earlier = {} if before is None else {one.name: one for one in views.pyramid(before)}
    return [
        Change(
            layer,
            None if (old := earlier.get(layer.name)) is None else old.value,
            targets.get(layer.name),
            _sentence(layer, old),
        )
        for layer in views.pyramid(now)
    ]


def _sentence(now: views.Layer, before: views.Layer | None) -> str:
    if now.value is None:
        reason = now.why.sentence if now.why is not None else ""
        return f"{now.title} is unknown. {reason}".strip()
    if before is None or before.value is None:
        return f"{now.title} is {now.text}: {now.sentence}. Of the week before it is unknown."
    moved = _points(now.value - before.value)
    if moved:
        how = f"{'rose' if moved > 0 else 'fell'} by {abs(moved)} points to {now.text}"
    else:
        how = f"stayed at {now.text}"
    return (
        f"{now.title} {how}: {now.sentence}; in the week before "
        f"{hours(before.part_gpu_ms)} of {hours(before.whole_gpu_ms)}."
    )


def _points(difference: Decimal) -> Decimal:
    """Return a difference of ratios in percentage points, one decimal; never a nothing below zero."""
    return (difference * 100).quantize(_TENTH, rounding=ROUND_HALF_EVEN) + 0


def headline(found: Sequence[Change], raised: Sequence[Alert]) -> str:
    """Return the week in one sentence."""
    known = [change for change in found if change.layer.value is not None]
    said = "; ".join(
        f"{change.layer.title} {change.layer.text}" + (f" ({change.points})" if change.points else "")
        for change in known
    )
    count = len(raised)
    needs = "Nothing needs anybody." if not count else "One thing needs somebody." if count == 1 else (
        f"{count} things need somebody."
    )  # fmt: skip
    return f"{said or 'No layer is known'}. {needs}"


def of_layers(found: Iterable[Change]) -> list[Alert]:
    """Return the layers that are short of their targets."""
    return [
        Alert(f"{change.layer.title} is {change.layer.text}: {change.aim}.", "pyramid")
        for change in found
        if change.short_of_target
    ]


def of_budgets(rows: Sequence[BudgetRow], period: str) -> list[Alert]:
    """Return who is over budget, and who is foreseen to be, of a period."""
    over = [node for node in budgets.leaves(budgets.tree(rows)) if node.is_over_budget]
    over.sort(key=lambda node: (node.amounts["available_gpu_ms"] or 0, node.account))
    found = [
        Alert(
            f"{node.account} is over its budget of {period}: {hours(node.amounts['charged_gpu_ms'])} GPU-h charged,"
            f" {hours(-(node.amounts['available_gpu_ms'] or 0))} more than it had.",
            "budget_versus_actual",
        )
        for node in over[:NAMES_SHOWN]
    ]
    if (more := len(over) - NAMES_SHOWN) > 0:
        found.append(
            Alert(f"{more} more accounts are over their budgets of {period}.", "budget_versus_actual")
        )
    already = {node.account for node in over}
    expected = sorted(
        row.account
        for row in rows
        if row.forecast is not None and row.forecast.overrun == "expected" and row.account not in already
    )
    if expected:
        verb = "is" if len(expected) == 1 else "are"
        found.append(
            Alert(
                f"{_names(expected)} {verb} foreseen to spend more than budgeted in {period}.",
                "budget_versus_actual",
            )
        )
    return found


def of_hosts(found: Iterable[HostRow]) -> list[Alert]:
    """Return the hosts that cannot be used."""
    sick = [one for one in found if one.state not in ("healthy", "reserved")]
    if not sick:
        return []
    missing = sum(one.gpus - one.usable_gpus for one in sick)
    names = _names([f"{one.host} ({one.reason or one.state})" for one in sick])
    verb = "takes" if len(sick) == 1 else "take"
    return [Alert(f"{names} {verb} no work or only part of it: {missing:,} GPUs are missing.", "hosts")]


def of_incidents(found: Sequence[Incident]) -> list[Alert]:
    """Return what failures of the week ended, and gave back."""
    if not found:
        return []
    runs, credited = sum(len(one.runs) for one in found), sum(one.credited_gpu_ms for one in found)
    what = "One failure" if len(found) == 1 else f"{len(found):,} failures"
    return [
        Alert(
            f"{what} of hardware in this week ended {runs:,} {'run' if runs == 1 else 'runs'};"
            f" {hours(credited)} GPU-h were given back.",
            "hosts",
        )
    ]


def of_roll_up(status: ClusterStatus, as_of: str) -> list[Alert]:
    """Return whether the book has gone on without the warehouse: the figures are then of a part of it."""
    seen, written = dt.datetime.fromisoformat(as_of), dt.datetime.fromisoformat(status.last_recorded_at)
    if written - seen <= STALE_AFTER:
        return []
    return [
        Alert(
            f"These figures know the book up to {instant(as_of)}, and it was written until"
            f" {instant(status.last_recorded_at)}: {empty.ROLL_UP} brings them up to date.",
            "pyramid",
        )
    ]


def of_books(books: Books) -> list[Alert]:
    """Return how many records nobody could read."""
    if not books.dead_letters:
        return []
    count = books.dead_letters
    what = (
        "One record could not be read and waits"
        if count == 1
        else f"{count:,} records could not be read and wait"
    )
    return [Alert(f"{what} for a person.", "audit")]


def _names(names: Sequence[str]) -> str:
    shown = ", ".join(names[:NAMES_SHOWN])
    more = len(names) - NAMES_SHOWN
    return f"{shown} and {more} more" if more > 0 else shown


def csv_rows(found: Iterable[Change]) -> list[Mapping[str, object]]:
    """Return the layers of both weeks for a download."""
    return [
        {
            "layer": change.layer.name,
            "value": change.layer.value,
            "week_before": change.before,
            "target": change.target,
            "part_gpu_ms": change.layer.part_gpu_ms,
            "whole_gpu_ms": change.layer.whole_gpu_ms,
        }
        for change in found
    ]
