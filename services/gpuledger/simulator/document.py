"""The report of one simulation as one JSON document: ratios with four decimals, GPU-hours with three.

``docs/simulator.md`` explains each key; ``document_schema`` writes the schema.
"""

from collections.abc import Sequence
from typing import Any

import msgspec


class Wait(msgspec.Struct, frozen=True, kw_only=True):
    """Quantiles of lengths in whole seconds; what was not over counts as longer than it was seen.

    Args:
        p50: The median; null when fewer were seen to end.
        p90: Nine in ten took no longer; likewise.
        p99: 99 in 100 took no longer; likewise.
        count: How many there are.
        unended: How many of them were not over: given up, or the simulation ended.
        from_before: How many of them went on already when the days measured began.
        longest: The longest that was seen, over or not.
    """

    p50: int | None
    p90: int | None
    p99: int | None
    count: int
    unended: int
    from_before: int
    longest: int | None


class Readings(msgspec.Struct, frozen=True, kw_only=True):
    """Delivered / owed in three readings.

    Args:
        window: The headline: sum over accounts of min(delivered, owed), divided by all that was owed.
        hourly: The same with the minimum taken in each hour.
        raw: All that was delivered, divided by all that was owed.
        accounts: Account -> its window reading; those that were owed something.
        worst: The lowest of them.
        worst_account: Whose it is.
        at_least_95: How many of them are 95 % or more.
        of: How many there are.
        worst_7_days: The window reading of the worst trailing seven days.
        worst_7_days_accounts: Account -> that of its own worst.
        owed_gpu_hours: All that was owed.
        delivered_gpu_hours: All that was delivered.
    """

    window: float | None
    hourly: float | None
    raw: float | None
    accounts: dict[str, float]
    worst: float | None
    worst_account: str | None
    at_least_95: int
    of: int
    worst_7_days: float | None
    worst_7_days_accounts: dict[str, float]
    owed_gpu_hours: float
    delivered_gpu_hours: float


class Delivered(Readings, frozen=True, kw_only=True):
    """Delivered / owed, with and without work that can never be placed.

    Args:
        placeable: The same without work whose GPUs x minimum runtime exceed what its account is entitled to over
            the whole report.
        not_placeable_gpu_hours: What of the owed is left out there.
    """

    placeable: Readings
    not_placeable_gpu_hours: float


class Shortfall(msgspec.Struct, frozen=True, kw_only=True):
    """What of the healthy capacity nobody occupied, as parts of it; with the occupancy they sum to 1.

    Args:
        overhead: Prolog, epilog, completing.
        reserved: Kept for a job that waits.
        free: Anybody's.
    """

    overhead: float | None
    reserved: float | None
    free: float | None


class Emptied(msgspec.Struct, frozen=True, kw_only=True):
    """Hosts that somebody wanted to repair.

    Args:
        begun: How many drains began.
        asked: In how many of them somebody had to ask a user.
        hands: In how many of them the repair needs hands at the machine, as the scenario has it: an input, not a
            result; null where nobody knows.
        time_to_empty_s: How long it took until the host was empty.
    """

    begun: int
    asked: int
    hands: int | None
    time_to_empty_s: Wait


class AccountRow(msgspec.Struct, frozen=True, kw_only=True):
    """One account; all in GPU-hours but the last three.

    Args:
        allocated: Held as allocated.
        unallocated: Held as unallocated.
        loading: What of both went into loading, of runs that left.
        idle: What of both nobody used after the work was done, of runs that left: squatting.
        lost: Work that has to be done again, of runs that left.
        entitled: Its part of the healthy capacity.
        demand: What its funded work asked for, running or eligible.
        owed: The smaller of both, hour by hour.
        unmet: What it asked for beyond its entitlement.
        window: Delivered / owed; null when nothing was owed.
        preemptions: How often its GPUs were taken.
        wait_s: How long its jobs waited.
    """

    allocated: float
    unallocated: float
    loading: float
    idle: float
    lost: float
    entitled: float
    demand: float
    owed: float
    unmet: float
    window: float | None
    preemptions: int
    wait_s: Wait


class Gang(msgspec.Struct, frozen=True, kw_only=True):
    """The largest gang that could start at once, in GPUs: whole hosts of one kind, and its rest on one more.

    Args:
        mean: On average over time.
        least: At the least.
    """

    mean: float
    least: float


class OverTime(msgspec.Struct, frozen=True, kw_only=True):
    """Means over steps of time, the first from the beginning of the window.

    Args:
        step_s: Length of a step.
        occupancy: (A + N) / H.
        demand_over_supply: (Running and waiting GPUs) / H.
        largest_gang: GPUs of the largest gang that could start.
    """

    step_s: int
    occupancy: list[float | None]
    demand_over_supply: list[float | None]
    largest_gang: list[float]


class Simulation(msgspec.Struct, frozen=True, kw_only=True):
    """The report of one simulation.

    Args:
        scenario: Which scenario.
        world: Which world decided.
        seed: What chance was drawn from.
        days: How many days were measured.
        warm_up_days: How many came before.
        notes: What ought to be known of where the scenario came from, such as records that were left out.
        gpus: GPUs installed.
        jobs: Jobs submitted in the days measured.
        cancelled: How many of them were given up before they ever started.
        occupancy: (A + N) / H.
        occupancy_with_overhead: (A + N + O) / H.
        availability: H / I.
        shortfall: Where the rest of H is.
        unallocated_share: N / (A + N).
        demand_over_supply: (Running and waiting GPUs) / H, on average over time.
        delivered_over_owed: What accounts were owed and given.
        wait_s: Group -> how long jobs waited for their first start.
        wait_s_by_size: The same by GPUs asked for.
        wait_again_s: Group -> how long jobs waited for the next start after their GPUs were taken.
        preemptions: How often a run's GPUs were taken for somebody else.
        host_failures: How often a host failed under a run.
        lost_gpu_hours: Work that has to be done again.
        lost_gpu_hours_by: The same by why the run left.
        human_repairs: Drains in which somebody had to ask a user.
        drains: All drains.
        gpu_hours: Account -> GPU-hours held, of both classes.
        idle_gpu_hours: What of them nobody used after the work was done.
        loading_gpu_hours: What of them went into loading.
        accounts: More of each account.
        largest_startable_gang: How large a gang could start.
        partition_gpu_ms: State of law 9 -> gpu_ms; ``installed`` is their sum.
        residual_gpu_ms: What is in no state or in two: 0.
        over_time: Means over time.
        wall_s: How long the simulation took, in seconds of this machine.
    """

    scenario: str
    world: str
    seed: int
    days: int
    warm_up_days: int
    notes: list[str]
    gpus: float
    jobs: int
    cancelled: int
    occupancy: float | None
    occupancy_with_overhead: float | None
    availability: float | None
    shortfall: Shortfall
    unallocated_share: float | None
    demand_over_supply: float | None
    delivered_over_owed: Delivered
    wait_s: dict[str, Wait]
    wait_s_by_size: dict[str, Wait]
    wait_again_s: dict[str, Wait]
    preemptions: int
    host_failures: int
    lost_gpu_hours: float
    lost_gpu_hours_by: dict[str, float]
    human_repairs: int
    drains: Emptied
    gpu_hours: dict[str, float]
    idle_gpu_hours: float
    loading_gpu_hours: float
    accounts: dict[str, AccountRow]
    largest_startable_gang: Gang
    partition_gpu_ms: dict[str, int]
    residual_gpu_ms: int
    over_time: OverTime
    wall_s: float


def as_json(simulations: Sequence[Simulation]) -> Any:  # noqa: ANN401 - any JSON document
    """Return what ``--json`` prints: the report itself, or those of several under ``simulations``."""
    found = msgspec.to_builtins(list(simulations))
    return found[0] if len(found) == 1 else {"simulations": found}


__all__ = [
    "AccountRow",
    "Delivered",
    "Emptied",
    "Gang",
    "OverTime",
    "Readings",
    "Shortfall",
    "Simulation",
    "Wait",
    "as_json",
]
