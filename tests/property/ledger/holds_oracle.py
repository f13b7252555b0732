"""What must be held and charged, walked minute by minute from the words of the design. Shares no code with the product.

- an admission counts for a start that comes before it expires, and not five minutes before it; of several the newest;
  its class is the run's;
- it sets aside the run's GPUs for its time from the start on, a later slice from where it begins; nothing twice;
- what is allocated within such a time is paid out of the hold, what is allocated beyond it out of the budget;
- a run that goes on is charged up to the tick, and holds what is left of the time that was set aside;
- what has not started holds its GPUs from the decision on, until a tick passes the expiry, or it is over.
"""

from collections.abc import Iterable
from typing import NamedTuple

MINUTES = 600


class Run(NamedTuple):
    """One start of the workload; minutes."""

    attempt: int
    start: int
    stop: int | None
    gpus: int
    klass: str | None
    changes: tuple[tuple[int, str, int | str], ...]
    """(minute, ``gpus`` or ``class``, value)."""


class Decision(NamedTuple):
    """An admission, or the next slice of a run when it extends; minutes."""

    attempt: int
    at: int
    klass: str
    gpus: int
    minutes: int
    expires: int | None
    extends: int | None


class World(NamedTuple):
    """Everything that is said of one workload."""

    runs: tuple[Run, ...]
    decisions: tuple[Decision, ...]
    over: int | None
    tick: int | None


def amounts(world: World) -> dict[str, int]:
    """Return GPU-minutes: charged out of the hold and out of the budget, unallocated, and put into the hold, net."""
    found = {"held": 0, "budget": 0, "free": 0, "hold": 0}
    for run in world.runs:
        admission = _admission(world, run.attempt, run.start)
        for minute in range(run.start, MINUTES if run.stop is None else run.stop):
            gpus, klass = _state(run, minute, admission)
            set_aside = _is_set_aside(world, run, minute, admission)
            charged = run.stop is not None or _is_closed(run, minute, admission) or minute < (world.tick or 0)
            if klass == "allocated" and set_aside:
                found["hold"] += gpus
            if charged:
                pot = "free" if klass == "unallocated" else "held" if set_aside else "budget"
                found[pot] += gpus
    for attempt in {d.attempt for d in world.decisions} - {run.attempt for run in world.runs}:
        waiting = _admission(world, attempt, None)
        lapsed = waiting is not None and waiting.expires is not None and (world.tick or 0) >= waiting.expires
        if waiting is not None and world.over is None and not lapsed:
            found["hold"] += waiting.gpus * waiting.minutes
    return {name: amount for name, amount in found.items() if amount}


def _admission(world: World, attempt: int, start: int | None) -> Decision | None:
    valid: Iterable[Decision] = (
        d
        for d in world.decisions
        if d.attempt == attempt
        and d.extends is None
        and (start is None or ((d.expires is None or start < d.expires) and d.at <= start + 5))
    )
    return max(valid, key=lambda d: d.at, default=None)


def _state(run: Run, minute: int, admission: Decision | None) -> tuple[int, str]:
    gpus = run.gpus
    klass = admission.klass if admission else run.klass or "allocated"
    for at, what, value in sorted(run.changes, key=lambda change: change[0]):
        if at <= minute and what == "gpus":
            gpus = int(value)
        elif at <= minute:
            klass = str(value)
    return gpus, klass


def _is_closed(run: Run, minute: int, admission: Decision | None) -> bool:
    """Tell whether the run has changed since: the part before a change is charged although the run goes on."""
    return any(
        at > minute and _state(run, at, admission) != _state(run, at - 1, admission)
        for at, _, _ in run.changes
    )


def _is_set_aside(world: World, run: Run, minute: int, admission: Decision | None) -> bool:
    spans = [(run.start, run.start + admission.minutes)] if admission else []
    spans += [
        (max(d.extends, run.start), max(d.extends, run.start) + d.minutes)
        for d in world.decisions
        if d.attempt == run.attempt and d.extends is not None
    ]
    return any(begin <= minute < end for begin, end in spans)
