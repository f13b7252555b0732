"""What must be charged and who waits, worked out slowly from the words of the design.

Shares no code with the product: facts are plain values, time is walked in steps of at most a quarter
of an hour, and every step asks anew which fact counts. The rules it knows:

- of several facts that contradict each other a measured one beats an estimate, a reconciliation beats a
  stream, and then the later one counts (facts that tie in all three are never given to the oracle);
- a change holds from its instant on, and from the start on when it is dated before the start;
- suspended GPUs stay held; an end before the start is 0; a run that nothing ended is charged up to the
  last moment at which its GPUs or its class changed, and beyond it up to the book's tick, but no longer than
  its declared limit after its start; nor does an estimated end count beyond that;
- what is asked for changes with each update from its instant on, key by key, but not by updates that are dated before
  the submission; a run is paid by who was named last, it or its workload, is of the class that was asked for when it
  started, and is capped by the newest limit that was told before it stopped;
- a workload waits from when it is eligible until its newest run starts, and again after a run that was
  preempted or requeued, until the next start or until it is over.
"""

import datetime as dt
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

STEP_S = 900
LATEST_S = 2**40
STOPS = ("preempted", "requeued", "ended")


class Fact(NamedTuple):
    """One fact about a workload, as a source would tell it."""

    kind: str
    at_s: int
    source: str
    workload: str
    run: str | None
    details: dict[str, Any]


class Net(NamedTuple):
    """What one net amount is kept for."""

    code: str
    account: str
    workload: str
    run: str
    day: str


def standing(fact: Fact) -> tuple[bool, bool, int]:
    """Return what decides between contradictory facts; the largest counts."""
    return (not fact.details.get("estimated", False), fact.source.startswith("reconcile/"), fact.at_s)


def net(facts: Sequence[Fact], zone: str, ticked_s: int = 0) -> dict[Net, int]:
    """Return the gpu_ms that must stand for each account, run and day of the zone when the book's clock is there."""
    sums: dict[Net, int] = {}
    for workload in {fact.workload for fact in facts}:
        own = [fact for fact in facts if fact.workload == workload]
        for run in {fact.run for fact in own if fact.run is not None}:
            for key, gpu_ms in _charged(own, run, ZoneInfo(zone), ticked_s):
                sums[key] = sums.get(key, 0) + gpu_ms
    return {key: gpu_ms for key, gpu_ms in sums.items() if gpu_ms}


def _charged(facts: Sequence[Fact], run: str, zone: ZoneInfo, ticked_s: int) -> Iterable[tuple[Net, int]]:
    submitted, started = _counts(facts, "submitted"), _counts(facts, "started", run=run)
    stopped = _counts(facts, *STOPS, run=run)
    if started is None:
        return
    updates = _updates(facts, submitted)
    asked = submitted.details if submitted else {}
    default = (
        "unallocated" if asked_for(asked, updates, "minimum_runtime_s", started.at_s) == 0 else "allocated"
    )
    changes = [fact for fact in facts if fact.run == run and fact.kind in ("resized", "class_changed")]
    limit = asked_for(asked, updates, "time_limit_s", stopped.at_s if stopped else LATEST_S)
    limit_s = started.at_s + limit if limit else LATEST_S
    edges = sorted({fact.at_s for fact in changes if fact.at_s > started.at_s})

    def held(at_s: int) -> tuple[str, int, str]:
        payers = [fact for fact in updates if "account" in fact.details and fact.at_s <= at_s]
        since_start = [fact for fact in payers if fact.at_s > started.at_s]
        own = None if since_start else started.details.get("account")
        return (
            own or asked_for(asked, payers, "account", at_s) or "unmapped/unknown",
            _latest(changes, "resized", "gpus_milli", at_s, started.details["gpus_milli"]),
            _latest(changes, "class_changed", "class", at_s, started.details.get("class") or default),
        )

    if stopped is None:
        turns = [edge for edge in edges if held(edge)[1:] != held(edge - 1)[1:]]
        # That somebody else pays says nothing of whether a run goes on: it counts up to where the run is capped only.
        reach_s = max([limit_s, *turns])
        named = [f.at_s for f in updates if "account" in f.details and started.at_s < f.at_s < reach_s]
        turns += [edge for edge in named if held(edge)[0] != held(edge - 1)[0]]
        end_s = max([min(ticked_s, limit_s), *turns])
    else:
        end_s = min(stopped.at_s, limit_s) if stopped.details.get("estimated") else stopped.at_s
    edges = sorted({*edges, *(fact.at_s for fact in updates)})
    at_s = started.at_s
    while at_s < end_s:
        upto_s = min([end_s, at_s - at_s % STEP_S + STEP_S, *(edge for edge in edges if edge > at_s)])
        account, gpus_milli, klass = held(at_s)
        code = "charge" if klass == "allocated" else "unallocated"
        day = dt.datetime.fromtimestamp(at_s, dt.UTC).astimezone(zone).date().isoformat()
        yield Net(code, account, started.workload, run, day), gpus_milli * (upto_s - at_s)
        at_s = upto_s


def _updates(facts: Iterable[Fact], submitted: Fact | None) -> list[Fact]:
    told = [fact for fact in facts if fact.kind == "updated"]
    return [fact for fact in told if submitted is not None and fact.at_s >= submitted.at_s]


def asked_for(asked: dict[str, Any], updates: Sequence[Fact], key: str, at_s: int) -> Any:  # noqa: ANN401 - any key
    """Return what is asked for under a key at an instant."""
    naming = [fact for fact in updates if key in fact.details and fact.at_s <= at_s]
    if not naming:
        return asked.get(key)
    newest = max(fact.at_s for fact in naming)
    return max((fact for fact in naming if fact.at_s == newest), key=standing).details[key]


def _counts(facts: Iterable[Fact], *kinds: str, run: str | None = None) -> Fact | None:
    own = [fact for fact in facts if fact.kind in kinds and (run is None or fact.run == run)]
    return max(own, key=standing, default=None)


def _latest(changes: Sequence[Fact], kind: str, key: str, at_s: int, default: Any) -> Any:  # noqa: ANN401 - GPUs or class
    past = [fact for fact in changes if fact.kind == kind and fact.at_s <= at_s]
    if not past:
        return default
    newest = max(fact.at_s for fact in past)
    return max((fact for fact in past if fact.at_s == newest), key=standing).details[key]


def waits(facts: Sequence[Fact], workload: str) -> list[tuple[int, int | None]]:
    """Return the intervals in which the workload waits, in order; None stands for "still"."""
    own = [fact for fact in facts if fact.workload == workload]
    submitted = _counts(own, "submitted")
    if submitted is None:
        return []
    updates = _updates(own, submitted)
    names = {fact.run for fact in own if fact.run is not None}
    runs = [
        (started.at_s, name, _counts(own, *STOPS, run=name))
        for name in names
        if (started := _counts(own, "started", run=name)) is not None
    ]
    over = _counts([fact for fact in own if fact.kind == "ended" and fact.run is None], "ended")
    told_s = [fact.details["eligible_s"] for fact in [submitted, *updates] if "eligible_s" in fact.details]
    moments = {*told_s, *(fact.at_s for fact in own)}
    found: list[tuple[int, int | None]] = []
    edges = sorted(moments)
    for at_s, upto_s in zip(edges, [*edges[1:], None], strict=True):
        if not _waits_at(at_s, (submitted, updates), runs, over):
            continue
        if found and found[-1][1] == at_s:
            found[-1] = (found[-1][0], upto_s)
        else:
            found.append((at_s, upto_s))
    return found


def _waits_at(
    at_s: int,
    told: tuple[Fact, Sequence[Fact]],
    runs: Sequence[tuple[int, str, Fact | None]],
    over: Fact | None,
) -> bool:
    submitted, updates = told
    if asked_for(submitted.details, updates, "gpus_milli", at_s) == 0:
        return False
    later_s = asked_for({}, updates, "eligible_s", at_s)
    if later_s is not None and at_s < later_s:
        return False
    begun = [run for run in runs if run[0] <= at_s]
    goes_on = any(start_s > at_s for start_s, _, _ in runs)
    if over is not None and over.at_s <= at_s and not goes_on:
        return False
    if not begun:
        return at_s >= (submitted.details.get("eligible_s") or submitted.at_s if later_s is None else 0)
    _, _, stopped = max(begun, key=lambda run: run[:2])
    return stopped is not None and stopped.kind != "ended" and stopped.at_s <= at_s
