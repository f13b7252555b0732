"""How often cycles come, and by when a reservation has led to a start: what every date counts with. Pure."""

from dataclasses import replace
from typing import NamedTuple

from gpuledger.policy.state import PolicyConfig, Reservation, ReservationKind
from gpuledger.policy.words import duration, moment

CYCLE_S = 60
"""How often cycles are taken to come where none says it."""


class Cadence(NamedTuple):
    """Which cycle is in force, and how often they come.

    Args:
        decided_s: The instant of the cycle in force, whose reservations stand; None before the first.
        every_s: The interval of the leader that recorded it; None where none did.
    """

    decided_s: int | None = None
    every_s: int | None = None

    @property
    def cycle_s(self) -> int:
        """The longest time between two cycles that dates count with."""
        return self.every_s or CYCLE_S

    def since_s(self, at_s: int) -> int:
        """Return from when on the next cycle is waited for; one that is overdue is taken to come now."""
        return at_s if self.decided_s is None else max(self.decided_s, at_s - self.cycle_s)

    def doubts(self, at_s: int) -> tuple[str, ...]:
        """Return what has to be said beside dates that are told at an instant."""
        found = []
        if self.every_s is None:
            found.append(
                "No leader has recorded how often cycles come: bounds hold if one comes at least every"
                f" {duration(CYCLE_S)}."
            )
        elif self.decided_s is not None and at_s - self.decided_s > self.every_s:
            found.append(
                f"No cycle has come since {moment(self.decided_s)}, though one was due every"
                f" {duration(self.every_s)}: dates are as if it came now."
            )
        return tuple(found)

    def latest_start_s(self, kept: Reservation, at_s: int, config: PolicyConfig) -> int:
        """Return by when the workload of a reservation of the cycle in force has started.

        A cycle comes within the interval of the instant of a bound reservation and tells those in the way to leave;
        after the grace they are gone, and the next cycle lets it start. Under a promise they have been told already,
        and its instant is the end of their grace.

        Args:
            kept: The reservation.
            at_s: When it is asked.
            config: The knobs.
        """
        due_s = max(kept.at_s, self.since_s(at_s))
        if kept.kind is ReservationKind.PROMISE:
            return due_s + self.cycle_s
        return due_s + self.cycle_s + config.grace_s + self.cycle_s

    def latest_start_if_submitted_s(self, kept: Reservation, at_s: int, config: PolicyConfig) -> int:
        """Return by when work has started that is submitted at an instant and would get this reservation then.

        The cycle that decides about it comes up to an interval later, and counts grace and notice from itself.
        """
        decides_s = at_s + self.cycle_s
        counted_s = config.grace_s if kept.kind is ReservationKind.PROMISE else config.notice_s
        later = replace(kept, at_s=max(kept.at_s, decides_s + counted_s))
        return Cadence(decides_s, self.every_s).latest_start_s(later, decides_s, config)


NO_CYCLE = Cadence()
"""Before the first cycle."""
