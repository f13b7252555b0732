"""One run of an enforcer: look, plan, set what differs, remember. What fails is tried again by the next run."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol

from gpuledger.enforce.memory import Memory, Writing
from gpuledger.enforce.plan import Action, Applied, Draft, Plan, Target, diff
from gpuledger.kernel.errors import GpuledgerError


class Scheduler(Protocol):
    """A scheduler as an enforcer deals with it."""

    def draft(self, applied: Applied) -> tuple[str, Draft]:
        """Return the cycle that is followed, and what is wanted of the scheduler as it is now.

        Raises:
            Unavailable: When it cannot be asked.
            Refused: When its answer cannot be read, or it does not let us.
        """
        ...

    def act(self, action: Action) -> None:
        """Carry out one change.

        Raises:
            GpuledgerError: When it was not done.
        """
        ...


@dataclass(slots=True)
class Outcome:
    """What a run did.

    Args:
        plan: What it was about to do.
        done: The changes that were made.
        failed: Those that were not, each with why.
        dropped: Those that were to stop work and turned out not to be wanted any more.
        is_dry: Whether nothing was to be done.
    """

    plan: Plan
    done: list[Target] = field(default_factory=list)
    failed: list[tuple[Target, GpuledgerError]] = field(default_factory=list)
    dropped: list[Target] = field(default_factory=list)
    is_dry: bool = False

    def as_json(self) -> dict[str, Any]:
        """Return the outcome under its published keys."""
        why = {target.key: error.message for target, error in self.failed}
        dropped = {target.key for target in self.dropped}
        done = {target.key for target in self.done}
        return {
            "cycle": self.plan.cycle,
            "dry_run": self.is_dry,
            "changes": [
                {
                    "object": target.object,
                    "field": target.field,
                    "from": target.now,
                    "to": target.wanted,
                    "reason": target.sentence,
                    "command": target.action.shown,
                    "destructive": target.destructive,
                    "done": target.key in done,
                    "dropped": target.key in dropped,
                    "error": why.get(target.key),
                }
                for target in self.plan.changes
            ],
            "drift": [
                {"key": drift.key, "set_to": drift.set_to, "found": drift.found, "message": drift.sentence}
                for drift in self.plan.drifts
            ],
            "notes": list(self.plan.notes),
        }


def look(scheduler: Scheduler, memory: Memory) -> Outcome:
    """Say what a run would do, and do nothing.

    Raises:
        GpuledgerError: As ``Scheduler.draft``, and when the memory is damaged.
    """
    applied = memory.applied()
    cycle, draft = scheduler.draft(applied)
    return Outcome(diff(cycle, draft, applied), is_dry=True)


def enforce(scheduler: Scheduler, memory: Memory, now_s: int) -> Outcome:
    """Set what differs, one change after the other.

    Args:
        scheduler: The scheduler.
        memory: What was set before; each change is noted as soon as it is made.
        now_s: The present, for the notes.

    Raises:
        Conflict: When another enforcer is at work.
        GpuledgerError: As ``look``.
    """
    with memory.writing() as notes:
        applied = notes.applied
        cycle, draft = scheduler.draft(applied)
        outcome = Outcome(diff(cycle, draft, applied))
        notes.settle(outcome.plan.settled)
        gentle = [target for target in outcome.plan.changes if not target.destructive]
        _carry_out(gentle, scheduler, notes, outcome, now_s)
        _carry_out(_still_wanted(scheduler, outcome, applied), scheduler, notes, outcome, now_s)
    return outcome


def _carry_out(
    targets: Iterable[Target], scheduler: Scheduler, notes: Writing, outcome: Outcome, now_s: int
) -> None:
    for target in targets:
        try:
            with notes.setting(target, cycle=outcome.plan.cycle, at_s=now_s):
                scheduler.act(target.action)
        except GpuledgerError as error:
            outcome.failed.append((target, error))
        else:
            outcome.done.append(target)


def _still_wanted(scheduler: Scheduler, outcome: Outcome, applied: Applied) -> list[Target]:
    """Return the changes that stop work, looked at once more: setting the rest took its time."""
    wanted = [target for target in outcome.plan.changes if target.destructive]
    if not wanted or not (outcome.done or outcome.failed):
        return wanted
    cycle, draft = scheduler.draft(applied)
    again = {target.key for target in diff(cycle, draft, applied).changes if target.destructive}
    outcome.dropped += [target for target in wanted if target.key not in again]
    return [target for target in wanted if target.key in again]
