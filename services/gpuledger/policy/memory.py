"""What the policy remembers of the past: how much a second of it weighs now.

With a *window*, every second in it weighs 1 and all before it nothing. With a *half-life*, a second weighs
2^(-age / half-life), by the table of ``policy.decay``; all seconds of one quarter of an hour (of absolute time, so that
it does not matter when somebody looks) have the age of its middle, and what is twenty half-lives old is forgotten.

Use, capacity and entitlement are remembered alike, or their ratio would mean nothing.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple, Self

from gpuledger.kernel.knobs import PolicyConfig
from gpuledger.policy.decay import ONE, decayed

BUCKET_S = 900
"""Length of the quarters of an hour."""

FORGOTTEN_AFTER = 20
"""Half-lives: less than a millionth is left then."""


class Step(NamedTuple):
    """From an instant on an amount holds, until the next step."""

    from_s: int
    amount: int


@dataclass(frozen=True, slots=True)
class Memory:
    """How much each second of the past weighs.

    Args:
        start_s: What was before is forgotten.
        end_s: Now.
        bucket_s: Seconds of one bucket, counted from ``start_s``, weigh the same.
        weights: Weight of a second by bucket, in units.
        unit: What a second that weighs 1 is in units.
        sums: By bucket, the weight of all seconds before it.
    """

    start_s: int
    end_s: int
    bucket_s: int
    weights: Sequence[int]
    unit: int
    sums: Sequence[int]

    @classmethod
    def of(cls, config: PolicyConfig, at_s: int) -> Self:
        """Return the memory at an instant."""
        if config.mode == "window":
            return cls(at_s - config.window_s, at_s, config.window_s, (1, 1), 1, (0, config.window_s))
        first = (at_s - FORGOTTEN_AFTER * config.half_life_s) // BUCKET_S
        current = at_s // BUCKET_S
        weights = [
            decayed(at_s - bucket * BUCKET_S - BUCKET_S // 2, config.half_life_s)
            for bucket in range(first, current)
        ]
        weights += [decayed((at_s - current * BUCKET_S) // 2, config.half_life_s)] * 2
        sums = list(accumulate((weight * BUCKET_S for weight in weights), initial=0))
        return cls(first * BUCKET_S, at_s, BUCKET_S, weights, ONE, sums)

    def before(self, bucket: int, seconds: int = 0) -> int:
        """Return the weight of all seconds before an instant: so many into a bucket; in units."""
        return self.sums[bucket] + self.weights[bucket] * seconds

    def weight(self, from_s: int, to_s: int) -> int:
        """Return what ``[from_s, to_s)`` weighs, in units; what lies outside the memory weighs nothing."""
        begin, end = max(from_s, self.start_s), min(to_s, self.end_s)
        if begin >= end:
            return 0
        return self.before(*divmod(end - self.start_s, self.bucket_s)) - self.before(
            *divmod(begin - self.start_s, self.bucket_s)
        )

    def of_steps(self, steps: Sequence[Step], from_s: int, to_s: int) -> int:
        """Return what amounts, each through the seconds in which it held, weigh over ``[from_s, to_s)``, in units.

        Args:
            steps: Ascending in time; before the first the amount is 0.
            from_s: Begin of the time.
            to_s: Its end, exclusive.
        """
        first = max(bisect_right(steps, from_s, key=lambda step: step.from_s) - 1, 0)
        total = 0
        for index in range(first, len(steps)):
            begin_s, amount = steps[index]
            if begin_s >= to_s:
                break
            end_s = steps[index + 1].from_s if index + 1 < len(steps) else to_s
            total += amount * self.weight(max(begin_s, from_s), min(end_s, to_s))
        return total

    def rounded(self, units: int, *, per_unit: int = 1) -> int:
        """Return an amount in units, so many to one besides the memory's own, as a whole number, half up."""
        one = self.unit * per_unit
        return (2 * units + one) // (2 * one)


def steps_of(changes: Iterable[tuple[int, int]]) -> list[Step]:
    """Return the running sums of (when, by how much) changes, one step for each instant."""
    by_instant: dict[int, int] = {}
    for at_s, change in changes:
        by_instant[at_s] = by_instant.get(at_s, 0) + change
    instants = sorted(by_instant)
    sums = accumulate(by_instant[at_s] for at_s in instants)
    return [Step(at_s, total) for at_s, total in zip(instants, sums, strict=True)]
