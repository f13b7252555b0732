"""What was measured of a simulation, put in the words and units of its report."""

from array import array
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

from gpuledger.kernel.amounts import GPU_MILLI, gpu_hours
from gpuledger.kernel.survival import Lengths
from gpuledger.simulator.capacity import Partition
from gpuledger.simulator.document import (
    AccountRow,
    Delivered,
    Emptied,
    Gang,
    OverTime,
    Readings,
    Shortfall,
    Simulation,
    Wait,
)
from gpuledger.simulator.measures import Measures, Use
from gpuledger.simulator.owing import HOUR_S, Hours, add_up, worst_trailing
from gpuledger.simulator.scenario import Scenario
from gpuledger.warehouse.readings import ratio

STEP_HOURS = 6
"""What is shown over time has a value for so many hours."""
ENOUGH_PERCENT = 95


def summarise(measures: Measures, scenario: Scenario, *, world: str, seed: int, wall_s: float) -> Simulation:
    """Return the report of a simulation.

    Args:
        measures: What came of it.
        scenario: What was simulated.
        world: Which world decided.
        seed: What chance was drawn from.
        wall_s: How long it took.
    """
    sums, series = measures.partition, measures.series
    occupied = (sums.occupied, sums.occupied + sums.overhead)
    lost = {why.value.replace(" ", "_"): _hours(amount) for why, amount in sorted(measures.lost.items())}
    return Simulation(
        scenario=scenario.name,
        world=world,
        seed=seed,
        days=measures.days,
        warm_up_days=scenario.warm_up_days,
        notes=list(scenario.notes),
        gpus=sum(host.gpus_milli for host in scenario.hosts) / GPU_MILLI,
        jobs=measures.jobs,
        cancelled=measures.cancelled,
        occupancy=_part(occupied[0], sums.usable),
        occupancy_with_overhead=_part(occupied[1], sums.usable),
        availability=_part(sums.usable, sums.installed),
        shortfall=Shortfall(
            overhead=_part(sums.overhead, sums.usable),
            reserved=_part(sums.reserved, sums.usable),
            free=_part(sums.free, sums.usable),
        ),
        unallocated_share=_part(sums.unallocated, sums.occupied),
        demand_over_supply=_part(sums.occupied + sum(series.waiting), sums.usable),
        delivered_over_owed=_delivered(measures.hours),
        wait_s={group: _wait(lengths) for group, lengths in measures.waits.by_group().items()},
        wait_s_by_size={size: _wait(lengths) for size, lengths in measures.waits.by_size().items()},
        wait_again_s={group: _wait(lengths) for group, lengths in measures.waits.again_by_group().items()},
        preemptions=measures.preemptions,
        host_failures=measures.failures,
        lost_gpu_hours=_hours(sum(measures.lost.values())),
        lost_gpu_hours_by=lost,
        human_repairs=measures.drains.asked,
        drains=Emptied(
            begun=measures.drains.begun,
            asked=measures.drains.asked,
            hands=measures.drains.hands,
            time_to_empty_s=_wait(measures.drains.lengths),
        ),
        gpu_hours={path: _hours(use.allocated + use.unallocated) for path, use in measures.accounts.items()},
        idle_gpu_hours=_hours(sum(use.idle for use in measures.accounts.values())),
        loading_gpu_hours=_hours(sum(use.loading for use in measures.accounts.values())),
        accounts=_accounts(measures),
        largest_startable_gang=_gang(measures),
        partition_gpu_ms=_states(sums),
        residual_gpu_ms=sums.residual,
        over_time=_over_time(measures),
        wall_s=wall_s,
    )


def _part(numerator: int, denominator: int) -> float | None:
    found = ratio(numerator, denominator)
    return None if found is None else float(found)


def _hours(gpu_ms: int) -> float:
    return float(gpu_hours(gpu_ms))


def _wait(lengths: Lengths) -> Wait:
    p50, p90, p99 = lengths.quantiles(500, 900, 990)
    return Wait(
        p50=p50,
        p90=p90,
        p99=p99,
        count=lengths.count,
        unended=lengths.unended.total(),
        from_before=lengths.late.total(),
        longest=lengths.longest,
    )


def _readings(hours: Mapping[str, Hours], *, placeable: bool) -> dict[str, Any]:
    sums = {path: add_up(each.rows(placeable=placeable)) for path, each in hours.items()}
    owed = {path: each for path, each in sums.items() if each.owed}
    whole, in_window = sum(each.owed for each in owed.values()), sum(each.in_window for each in owed.values())
    worst = min(owed, key=lambda path: Fraction(owed[path].in_window, owed[path].owed), default=None)
    trailing = worst_trailing(hours, placeable=placeable)
    accounts = {
        path: part for path, each in owed.items() if (part := _part(each.in_window, each.owed)) is not None
    }
    return {
        "window": _part(in_window, whole),
        "hourly": _part(sum(each.met for each in owed.values()), whole),
        "raw": _part(sum(each.delivered for each in sums.values()), whole),
        "accounts": accounts,
        "worst": None if worst is None else accounts[worst],
        "worst_account": worst,
        "at_least_95": sum(100 * each.in_window >= ENOUGH_PERCENT * each.owed for each in owed.values()),
        "of": len(owed),
        "worst_7_days": _part(*trailing.cluster) if trailing.cluster else None,
        "worst_7_days_accounts": {
            path: part for path, pair in trailing.accounts.items() if (part := _part(*pair)) is not None
        },
        "owed_gpu_hours": _hours(whole),
        "delivered_gpu_hours": _hours(sum(each.delivered for each in sums.values())),
    }


def _delivered(hours: Mapping[str, Hours]) -> Delivered:
    everything, placeable = (_readings(hours, placeable=without) for without in (False, True))
    left_out = sum(
        add_up(each.rows()).owed - add_up(each.rows(placeable=True)).owed for each in hours.values()
    )
    return Delivered(**everything, placeable=Readings(**placeable), not_placeable_gpu_hours=_hours(left_out))


def _accounts(measures: Measures) -> dict[str, AccountRow]:
    nothing = Use(allocated=0, unallocated=0, loading=0, idle=0, lost=0, preemptions=0)
    rows = {}
    for path in sorted({*measures.hours, *measures.accounts}):
        use, hours = measures.accounts.get(path, nothing), measures.hours.get(path, Hours())
        owed = add_up(hours.rows())
        rows[path] = AccountRow(
            allocated=_hours(use.allocated),
            unallocated=_hours(use.unallocated),
            loading=_hours(use.loading),
            idle=_hours(use.idle),
            lost=_hours(use.lost),
            entitled=_hours(owed.entitled),
            demand=_hours(owed.demand),
            owed=_hours(owed.owed),
            unmet=_hours(owed.unmet),
            window=_part(owed.in_window, owed.owed),
            preemptions=use.preemptions,
            wait_s=_wait(measures.waits.accounts.get(path, Lengths())),
        )
    return rows


def _gang(measures: Measures) -> Gang:
    series = measures.series
    seconds = len(series.gang) * HOUR_S
    return Gang(
        mean=round(sum(series.gang) / max(seconds, 1) / GPU_MILLI, 3),
        least=min(series.gang_least, default=0) / GPU_MILLI,
    )


def _states(sums: Partition) -> dict[str, int]:
    names = (
        "installed",
        "lost",
        "allocated",
        "unallocated",
        "overhead",
        "unhealthy",
        "maintenance",
        "reserved",
        "free",
    )
    return {name: getattr(sums, name) for name in names}


def _over_time(measures: Measures) -> OverTime:
    series = measures.series
    every = (series.occupied, series.usable, series.waiting, series.gang)
    steps = list(zip(*map(_steps, every), strict=True))
    step_s = STEP_HOURS * HOUR_S
    return OverTime(
        step_s=step_s,
        occupancy=[_part(occupied, usable) for occupied, usable, _, _ in steps],
        demand_over_supply=[_part(occupied + waiting, usable) for occupied, usable, waiting, _ in steps],
        largest_gang=[round(gang / step_s / GPU_MILLI, 1) for _, _, _, gang in steps],
    )


def _steps(hours: "array[int]") -> Iterator[int]:
    for first in range(0, len(hours), STEP_HOURS):
        yield sum(hours[first : first + STEP_HOURS])


__all__ = ["summarise"]
