"""How long something takes when not all of it was seen to end: the product-limit estimate of Kaplan and Meier. Exact.

A job that still waits when a simulation ends waited *at least* so long. Leaving it out would make the worst scheduler
look best, as it starts only what is quick to start; counting it as over would be as wrong. The estimate lets it count
among those that wait for as long as it was seen to wait, and not afterwards.
"""

import random
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple, Self


class Step(NamedTuple):
    """The part that lasts longer than an instant, as a quotient that is not reduced.

    Args:
        after: The time; at least one ended exactly then.
        surviving: What is estimated to last longer, ...
        of: ... out of so much.
    """

    after: int
    surviving: int
    of: int


@dataclass(slots=True)
class Lengths:
    """Lengths of time, counted by their value: memory grows with how many values differ, not with how many there are.

    Args:
        ended: How many took exactly so long.
        unended: How many were lost from sight after so long, not over yet.
        late: (since when it was seen, how long it took or was seen, whether it ended) of those of them that had gone
            on for a while when they first were seen: nobody knows how many like them had ended before.
    """

    ended: Counter[int] = field(default_factory=Counter)
    unended: Counter[int] = field(default_factory=Counter)
    late: Counter[tuple[int, int, bool]] = field(default_factory=Counter)

    def add(self, length: int, *, ended: bool, entered: int = 0) -> None:
        """Count one.

        Args:
            length: How long it took, or was seen to go on.
            ended: Whether it was over then.
            entered: How long it had gone on when it first was seen.
        """
        (self.ended if ended else self.unended)[length] += 1
        if entered:
            self.late[entered, length, ended] += 1

    @property
    def count(self) -> int:
        """How many there are, over or not."""
        return self.ended.total() + self.unended.total()

    @property
    def longest(self) -> int | None:
        """The longest that was seen, over or not; None without any."""
        return max((*self.ended, *self.unended), default=None)

    @classmethod
    def merged(cls, parts: Iterable["Lengths"]) -> Self:
        """Return the lengths of several together, such as of several seeds."""
        whole = cls()
        for part in parts:
            whole.ended.update(part.ended)
            whole.unended.update(part.unended)
            whole.late.update(part.late)
        return whole

    def curve(self) -> Iterator[Step]:
        """Yield the estimate: a step wherever something ended, ascending; all survives before the first.

        What is lost from sight at the instant at which something ends is still there at that instant. What was seen
        late counts from then on (delayed entry). The curve stops short of 0 where everything that is seen ends
        although something is known to go on: that it was not seen yet is no reason to forget it.
        """
        entering: Counter[int] = Counter()
        for (entered, _, _), count in self.late.items():
            entering[entered] += count
        to_come = entering.total()
        # The factors (n - d) / n cancel out from one end to the next, except where something was lost from sight or
        # entered in between. They are kept as whole numbers and never reduced, as that costs more than all else.
        before, surviving, of, at_risk = 1, self.count, self.count, self.count - to_come
        for length in sorted({*self.ended, *self.unended, *entering}):
            at_risk += entering[length]
            to_come -= entering[length]
            if ended := self.ended[length]:
                if ended == at_risk and to_come:
                    return
                if at_risk != surviving:
                    before, of = before * surviving, of * at_risk
                surviving = at_risk - ended
                yield Step(length, before * surviving, of)
            at_risk -= ended + self.unended[length]

    def quantile(self, permille: int) -> int | None:
        """Return the shortest time within which at least so many per mille are over.

        None when the estimate never comes so far: too many were lost from sight, and all that is known is that it
        takes longer than the last step.
        """
        return self.quantiles(permille)[0]

    def quantiles(self, *permilles: int) -> list[int | None]:
        """Return several quantiles of one curve, asked for in ascending order; see ``quantile``."""
        found, waiting = list[int | None](), list(permilles)
        for step in self.curve():
            while waiting and (step.of - step.surviving) * 1000 >= waiting[0] * step.of:
                found.append(step.after)
                del waiting[0]
            if not waiting:
                break
        return [*found, *(None for _ in waiting)]

    def interval(
        self, permille: int, draw: random.Random, *, draws: int = 1000
    ) -> tuple[int | None, int | None]:
        """Return where nine in ten draws with replacement (bootstrap) see a quantile, from the lower to the upper end.

        Args:
            permille: Which quantile.
            draw: What chance is drawn from.
            draws: How many draws.

        None at an end says that it is further than the estimate comes; both are None when there is nothing.
        """
        early = Counter({(0, length, True): count for length, count in self.ended.items()})
        early.update({(0, length, False): count for length, count in self.unended.items()})
        for (_, length, ended), count in self.late.items():
            early[0, length, ended] -= count
        seen = +early + self.late
        if not seen:
            return None, None
        found = []
        for _ in range(draws):
            drawn = Lengths()
            for entered, length, ended in draw.choices([*seen], [*seen.values()], k=self.count):
                drawn.add(length, ended=ended, entered=entered)
            found.append(drawn.quantile(permille))
        found.sort(key=lambda length: (length is None, length or 0))
        return found[draws // 20], found[draws - 1 - draws // 20]


__all__ = ["Lengths", "Step"]
