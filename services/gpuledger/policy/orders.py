"""A cycle's decisions read as orders at the moment of acting: who leaves, who stays all the same, what starts. Pure.

A cycle may be a minute old, or an hour. What it issued stands until the next; whom it told to leave is looked at again
before anything is stopped. Enforcers and the API both read decisions here, so that no scheduler is told what another is
not.
"""

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from gpuledger.policy.outcomes import Action
from gpuledger.policy.state import RunId, RunningRun

STALE_AFTER_S = 600
"""A cycle older than this stops and starts nothing, unless somebody says otherwise."""


class Leaving(NamedTuple):
    """A run that the cycle told to leave.

    Args:
        id: Its workload and its name.
        reason: Why, as the cycle said it.
        spared: Why it stays all the same, as the ledger is now; empty when it has to go.
    """

    id: RunId
    reason: str
    spared: str


class Starting(NamedTuple):
    """A workload that the cycle told to start.

    Args:
        workload: Its name.
        hosts: Host -> milli-GPU; empty where the scheduler is to choose.
        reason: Why, as the cycle said it.
    """

    workload: str
    hosts: Mapping[str, int]
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Orders:
    """A cycle, and the runs that there are now.

    Args:
        record: The cycle under its published keys.
        cycle_at_s: The instant that it decided for.
        now_s: The present, in seconds since 1970.
        running: The runs that occupy GPUs now.
        stale_after_s: A cycle older than this stops nothing and orders nothing.
        waiting: The workloads that wait now, as far as the cycle starts them; None where nobody looked.
    """

    record: Mapping[str, Any]
    cycle_at_s: int
    now_s: int
    running: Mapping[RunId, RunningRun] = field(default_factory=dict)
    stale_after_s: int = STALE_AFTER_S
    waiting: Container[str] | None = None

    @property
    def cycle(self) -> str:
        """The name of the cycle."""
        return str(self.record["cycle"])

    @property
    def stale(self) -> str:
        """Why nothing is stopped or ordered by this cycle; empty when it is fresh."""
        age_s = self.now_s - self.cycle_at_s
        if age_s <= self.stale_after_s:
            return ""
        return f"cycle {self.cycle} is {age_s} s old: nothing is stopped or ordered by it"

    @property
    def _decisions(self) -> Sequence[Mapping[str, Any]]:
        found: Sequence[Mapping[str, Any]] = self.record.get("decisions", ())
        return found

    def order(self) -> Sequence[str]:
        """Return the workloads of the queue, next to be served first; those outside it have no place."""
        placed = [
            (decision["numbers"]["position"], decision["workload"])
            for decision in self._decisions
            if "position" in decision["numbers"] and decision["action"] in {Action.START, Action.WAIT}
        ]
        return [workload for _, workload in sorted(placed)]

    def leaving(self) -> list[Leaving]:
        """Return the runs that were told to leave, each with why it may not yet, if so."""
        found = []
        for decision in self._decisions:
            if decision["action"] == Action.PREEMPT:
                id_ = RunId(decision["workload"], decision["run"])
                found.append(Leaving(id_, decision["reason"], self._spared(id_)))
        return found

    def starting(self) -> list[Starting]:
        """Return the workloads that were told to start and still wait, next to be served first; none when stale."""
        if self.stale:
            return []
        running = {run.workload for run in self.running.values()}
        places = {workload: place for place, workload in enumerate(self.order())}
        found = [
            Starting(decision["workload"], decision.get("hosts", {}), decision["reason"])
            for decision in self._decisions
            if decision["action"] == Action.START
            and decision["workload"] not in running
            and (self.waiting is None or decision["workload"] in self.waiting)
        ]
        return sorted(found, key=lambda one: places.get(one.workload, len(places)))

    def protected(self, id_: RunId) -> bool:
        """Tell whether a run is there and may not be stopped at this moment, however old the cycle is."""
        run = self.running.get(id_)
        return run is not None and not run.is_preemptible(self.now_s)

    def _spared(self, id_: RunId) -> str:
        run = self.running.get(id_)
        if run is None:
            return "the ledger knows no such run any more"
        if not run.is_preemptible(self.now_s):
            return f"it is within its minimum runtime for {run.protected_until_s - self.now_s} s more"
        return self.stale
