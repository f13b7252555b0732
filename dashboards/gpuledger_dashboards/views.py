"""From the API's answers to what a page shows. Pure: no Streamlit, no clock, no network."""

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from gpuledger.client.answers import ClusterStatus, Layers, LayersRow
from gpuledger_dashboards import empty
from gpuledger_dashboards.figures import RUNGS, hours, percent

DEFAULT_DAYS = 30
"""The window a page opens with: the newest days there are."""


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer of the pyramid.

    Args:
        name: Its key.
        title: Its name for people.
        question: What it answers.
        value: The ratio, or None when unknown.
        part_gpu_ms: The ratio's upper side.
        whole_gpu_ms: The ratio's lower side.
        sentence: Both sides in words, with their unit.
        detail: What stands beside the headline.
        formula: How it is worked out.
        why: Why it is unknown, if it is.
    """

    name: str
    title: str
    question: str
    value: Decimal | None
    part_gpu_ms: int | None
    whole_gpu_ms: int | None
    sentence: str
    detail: str
    formula: str
    why: empty.Why | None

    @property
    def text(self) -> str:
        """The value for people."""
        return percent(self.value)

    @property
    def answer(self) -> str:
        """Both sides of the ratio in words, and what stands beside it."""
        said = "Unknown." if self.value is None else f"{self.sentence}."
        return f"{said} {self.detail[:1].upper()}{self.detail[1:]}." if self.detail else said


def pyramid(row: LayersRow) -> list[Layer]:
    """Return the four layers, from the base up."""
    return [_availability(row), _occupancy(row), _impact(row), _utilisation(row)]


def _why(row: LayersRow, layer: str) -> empty.Why | None:
    reason = row.reasons.get(layer)
    return empty.of_layer(layer, reason) if reason else None


def _availability(row: LayersRow) -> Layer:
    healthy, installed = hours(row.healthy_gpu_ms), hours(row.installed_gpu_ms)
    return Layer(
        name="availability",
        title="Availability",
        question="Of the GPUs installed, how many could be used?",
        value=row.availability,
        part_gpu_ms=row.healthy_gpu_ms,
        whole_gpu_ms=row.installed_gpu_ms,
        sentence=f"{healthy} of {installed} installed GPU-h were healthy",
        detail="",
        formula="healthy / installed; healthy = installed - unhealthy - planned maintenance",
        why=_why(row, "availability"),
    )


def _occupancy(row: LayersRow) -> Layer:
    held, usable = hours(row.occupied_with_inventory_gpu_ms), hours(row.usable_gpu_ms)
    return Layer(
        name="occupancy",
        title="Occupancy",
        question="Of the GPUs that could be used, how many did a run hold?",
        value=row.occupancy,
        part_gpu_ms=row.occupied_with_inventory_gpu_ms,
        whole_gpu_ms=row.usable_gpu_ms,
        sentence=f"{held} of {usable} usable GPU-h were held by runs",
        detail=(
            f"allocated {hours(row.allocated_gpu_ms)}, unallocated {hours(row.unallocated_gpu_ms)} GPU-h; "
            f"with overhead {percent(row.occupancy_with_overhead)}"
        ),
        formula="(allocated + unallocated) / usable; usable = healthy + unhealthy while a run held it",
        why=_why(row, "occupancy"),
    )


def _impact(row: LayersRow) -> Layer:
    met, owed = hours(row.window_met_gpu_ms), hours(row.owed_gpu_ms)
    return Layer(
        name="impact",
        title="Impact",
        question="Of what accounts were owed, how much did they get?",
        value=row.impact.window,
        part_gpu_ms=row.window_met_gpu_ms,
        whole_gpu_ms=row.owed_gpu_ms,
        sentence=f"{met} of {owed} owed GPU-h were delivered",
        detail=f"hour by hour {percent(row.impact.hourly)}, raw {percent(row.impact.raw)}",
        formula=(
            "sum over accounts of min(delivered, owed) / sum of owed, both over the whole window; "
            "owed = min(entitlement, demand) hour by hour"
        ),
        why=_why(row, "impact"),
    )


def _utilisation(row: LayersRow) -> Layer:
    used, sampled = hours(row.used_gpu_ms or None), hours(row.sampled_gpu_ms or None)
    known = row.utilisation.value is not None
    rung = RUNGS.get(row.utilisation.rung, row.utilisation.rung).partition(" (")[0]
    return Layer(
        name="utilisation",
        title="Utilisation",
        question="Of the GPUs that runs held, how busy were they?",
        value=row.utilisation.value,
        part_gpu_ms=row.used_gpu_ms if known else None,
        whole_gpu_ms=row.sampled_gpu_ms if known else None,
        sentence=f"{used} of {sampled} sampled GPU-h were busy",
        detail=f"rung {rung}, coverage {percent(row.utilisation.coverage)} of {hours(row.occupied_gpu_ms)} held GPU-h",
        formula="used / sampled, of the GPU-time that runs held and that was measured",
        why=_why(row, "utilisation"),
    )


def coverage_of(row: LayersRow) -> str:
    """Return how much of the held GPU-time was measured."""
    return f"{percent(row.utilisation.coverage)} of held GPU-time sampled"


@dataclass(frozen=True, slots=True)
class DayValue:
    """One layer on one day; a value of None is a gap in the line."""

    day: str
    layer: str
    value: float | None
    text: str
    sentence: str


def trend(answer: Layers) -> list[DayValue]:
    """Return every layer of every day, layers from the base up."""
    found = []
    for row in answer.rows:
        for layer in pyramid(row):
            # A chart takes floats; no figure is computed from them.
            value = None if layer.value is None else float(layer.value)
            found.append(DayValue(row.key, layer.title, value, layer.text, layer.sentence))
    return found


def trend_table(answer: Layers) -> list[dict[str, str]]:
    """Return a row per day with the layers as people read them."""
    return [{"Day": row.key, **{layer.title: layer.text for layer in pyramid(row)}} for row in answer.rows]


def trend_csv(answer: Layers) -> list[dict[str, object]]:
    """Return a row per day with ratios and the sums they were made of."""
    return [layers_csv(row, "day") for row in answer.rows]


def layers_csv(row: LayersRow, key: str) -> dict[str, object]:
    """Return one row for a download."""
    return {
        key: row.key,
        "availability": row.availability,
        "occupancy": row.occupancy,
        "occupancy_with_overhead": row.occupancy_with_overhead,
        "impact_window": row.impact.window,
        "impact_hourly": row.impact.hourly,
        "impact_raw": row.impact.raw,
        "utilisation": row.utilisation.value,
        "rung": row.utilisation.rung,
        "coverage": row.utilisation.coverage,
        "installed_gpu_ms": row.installed_gpu_ms,
        "healthy_gpu_ms": row.healthy_gpu_ms,
        "usable_gpu_ms": row.usable_gpu_ms,
        "allocated_gpu_ms": row.allocated_gpu_ms,
        "unallocated_gpu_ms": row.unallocated_gpu_ms,
        "owed_gpu_ms": row.owed_gpu_ms,
        "delivered_gpu_ms": row.delivered_gpu_ms,
        "sampled_gpu_ms": row.sampled_gpu_ms,
        "used_gpu_ms": row.used_gpu_ms,
        "residual_gpu_ms": row.residual_gpu_ms,
        "reason": row.reason,
    }


def known_days(status: ClusterStatus) -> tuple[dt.date, dt.date] | None:
    """Return the first and last day (UTC) of which something is rolled up."""
    if status.rolled_up_from is None or status.rolled_up_to is None:
        return None
    end = dt.datetime.fromisoformat(status.rolled_up_to) - dt.timedelta(seconds=1)
    return dt.datetime.fromisoformat(status.rolled_up_from).date(), end.date()


def opening_days(status: ClusterStatus) -> tuple[dt.date, dt.date] | None:
    """Return the days a page opens with: the newest thirty there are."""
    known = known_days(status)
    if known is None:
        return None
    first, last = known
    return max(first, last - dt.timedelta(days=DEFAULT_DAYS - 1)), last


def opening_cluster(statuses: Sequence[ClusterStatus]) -> int:
    """Return the place of the cluster a page opens with: the first that has something to show."""
    return next((n for n, status in enumerate(statuses) if status.rolled_up_from is not None), 0)


def summary(layers: Sequence[Layer]) -> str:
    """Return the pyramid as one sentence, which is also its text alternative."""
    return "; ".join(f"{layer.title} {layer.text}" for layer in layers)


def unknown(layers: Sequence[Layer]) -> list[tuple[str, empty.Why]]:
    """Return the layers without a value, those with the same reason together."""
    found: dict[tuple[str, str], list[str]] = {}
    whys: dict[tuple[str, str], empty.Why] = {}
    for layer in layers:
        if layer.why is not None:
            key = (layer.why.sentence, layer.why.command)
            found.setdefault(key, []).append(layer.title)
            whys[key] = layer.why
    return [(", ".join(titles), whys[key]) for key, titles in found.items()]
