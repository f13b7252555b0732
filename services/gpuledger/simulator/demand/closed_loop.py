"""Users who keep asking: each holds a bounded stock of outstanding requests, thinks, and asks again.

The published figure of a demand of two to three times the supply is a stock at any moment, not a rate of arrivals.
So a user asks for the next job when those that run or wait have fallen below the stock that is theirs, however long
that takes in the world at hand. The jobs themselves are drawn from streams of the user and of the kind of asking, so
that the k-th job is the same in each world; only the time of its submission differs.

What is in working hours (debug jobs, interactive sessions) comes beside the stock, one after another.
"""

import heapq
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from gpuledger.kernel.amounts import GPU_MILLI
from gpuledger.simulator.demand.mix import PER_MILLE, Drawn, WorkKind, draw
from gpuledger.simulator.jobs import Job

DAY_S = 86_400
_HOUR_S = 3_600
_MONDAY_S = 4 * DAY_S
"""1970 began on a Thursday; this is the first Monday."""

_WEEK_S = 7 * DAY_S
_LATE_S = 2 * _HOUR_S
"""What waits for the morning is submitted in the first so many seconds of it."""

STOCK = "batch"
"""The name of a user's asks that make up the stock, in the ids of their jobs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UserSpec:
    """A user.

    Args:
        user: The name.
        account: Who pays.
        stock_milli: Milli-GPU outstanding, on average over the seasons.
        works: The kinds of work they may ask for, in the order of the scenario.
        season_s: By how much the seasons of their team are ahead of others'.
    """

    user: str
    account: str
    stock_milli: int
    works: Sequence[WorkKind]
    season_s: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Rhythm:
    """When people ask for much, and when they are at work.

    Args:
        season_s: After so long the stock of a team is what it was.
        swing_permille: By how much it is above and below its mean in between; it rises and falls evenly.
        from_s: When working days begin, seconds of the day.
        to_s: When they end.
        days: How many days of the week are working days, from Monday on.
        spread_s: The first stock is asked for within so long from the beginning.
    """

    season_s: int = 28 * DAY_S
    swing_permille: int = 0
    from_s: int = 8 * _HOUR_S
    to_s: int = 20 * _HOUR_S
    days: int = 5
    spread_s: int = 6 * _HOUR_S

    def level_permille(self, at_s: int) -> int:
        """Return how high the stock is at an instant, 1000 on average."""
        if not self.swing_permille:
            return PER_MILLE
        # A wave of height 1 over four quarters, in units of the season: up, down over two of them, and up again.
        wave = 4 * (at_s % self.season_s)
        if wave > self.season_s:
            wave = 2 * self.season_s - wave if wave <= 3 * self.season_s else wave - 4 * self.season_s
        return PER_MILLE + self.swing_permille * wave // self.season_s

    def at_work(self, at_s: int, late: float) -> int:
        """Return the instant if people are at work then, else one in the first hours of the next working day."""
        of_week_s = (at_s - _MONDAY_S) % _WEEK_S
        day, of_day_s = divmod(of_week_s, DAY_S)
        if day < self.days and self.from_s <= of_day_s < self.to_s:
            return at_s
        if of_day_s >= self.from_s or day >= self.days:
            day += 1
        if day >= self.days:
            day = 7
        morning_s = at_s - of_week_s + day * DAY_S + self.from_s
        return morning_s + int(late * min(_LATE_S, self.to_s - self.from_s))


@dataclass(slots=True)
class _Lane:
    """What a user asks for one after another, or as a stock.

    Args:
        user: Whose.
        name: In the ids of the jobs.
        works: Kinds to choose from, each with its weight.
        stream: Where their chance comes from.
        next: The next job, drawn already.
        count: How many were drawn.
        outstanding_milli: Of the stock, what was asked for and is not over.
    """

    user: UserSpec
    name: str
    works: Sequence[tuple[WorkKind, float]]
    stream: random.Random
    count: int = 0
    outstanding_milli: int = 0
    next: Drawn = field(init=False)

    def __post_init__(self) -> None:
        self.next = self._drawn()

    @property
    def is_stock(self) -> bool:
        return self.name == STOCK

    def take(self) -> Drawn:
        """Return the next job and draw the one after it."""
        taken, self.next = self.next, self._drawn()
        return taken

    def _drawn(self) -> Drawn:
        self.count += 1
        works = [work for work, _ in self.works]
        work = self.stream.choices(works, [weight for _, weight in self.works])[0]
        return draw(
            self.stream,
            work,
            self.user.stock_milli // GPU_MILLI,
            job=f"{self.user.user}-{self.name}-{self.count}",
            account=self.user.account,
            user=self.user.user,
        )


class ClosedLoop:
    """The demand of users who keep asking.

    Args:
        users: The users.
        rhythm: Seasons and working hours.
        start_s: When the simulation begins.
        seed: Of all streams.
    """

    def __init__(self, users: Sequence[UserSpec], rhythm: Rhythm, *, start_s: int, seed: int) -> None:
        self._rhythm = rhythm
        self._start_s = start_s
        self._users = users
        self._seed = seed
        self._of: dict[str, tuple[_Lane, int]] = {}
        """By outstanding job: whose it is, and its milli-GPU."""

    def first(self) -> Iterator[Job]:
        """Return what users ask for in the first hours; see ``Demand.first``."""
        asked: list[tuple[int, str, Job]] = []
        for user in self._users:
            for lane in self._lanes(user):
                spread = self._stream("first", f"{user.user}/{lane.name}")
                begin_s = self._start_s + spread.randrange(self._rhythm.spread_s + 1)
                asked += ((job.submitted_s, job.job, job) for job in self._asks(lane, begin_s))
        heapq.heapify(asked)
        while asked:
            yield heapq.heappop(asked)[2]

    def after(self, job: Job, at_s: int) -> Iterable[Job]:
        """Return what the user asks for next; see ``Demand.after``. Nothing for a job of somebody else."""
        found = self._of.pop(job.job, None)
        if found is None:
            return []
        lane, gpus_milli = found
        lane.outstanding_milli -= gpus_milli
        return sorted(self._asks(lane, at_s), key=lambda job: (job.submitted_s, job.job))

    def _lanes(self, user: UserSpec) -> Iterator[_Lane]:
        most_gpus = user.stock_milli // GPU_MILLI
        stock = [
            (work, work.part_permille / work.mean_gpu_s(most_gpus))
            for work in user.works
            if not work.is_session and work.part_permille and work.fits(most_gpus)
        ]
        if not stock:
            smallest = sorted(
                (work for work in user.works if not work.is_session), key=lambda work: min(work.sizes)
            )
            stock = [(work, 1.0) for work in smallest[:1]]
        if stock:
            yield self._lane(user, STOCK, stock)
        habits = self._stream("habits", user.user)
        for work in user.works:
            if work.is_session and habits.randrange(PER_MILLE) < work.part_permille:
                yield self._lane(user, work.name, [(work, 1.0)])

    def _lane(self, user: UserSpec, name: str, works: Sequence[tuple[WorkKind, float]]) -> _Lane:
        return _Lane(user, name, works, self._stream("user", f"{user.user}/{name}"))

    def _stream(self, purpose: str, name: str) -> random.Random:
        return random.Random(f"{self._seed}/{purpose}/{name}")  # noqa: S311 - chance, no secret

    def _asks(self, lane: _Lane, at_s: int) -> Iterator[Job]:
        """Yield what a user asks for at an instant: a session, or what the stock has room for."""
        if not lane.is_stock:
            drawn = lane.take()
            yield self._ask(lane, drawn, self._rhythm.at_work(at_s + drawn.think_s, drawn.late))
            return
        level = self._rhythm.level_permille(at_s - self._start_s + lane.user.season_s)
        room_milli = lane.user.stock_milli * level // PER_MILLE
        # A job may go over by as much as it may stay below, so that the stock is met on average; and nobody with
        # a stock asks for nothing.
        while (
            not lane.outstanding_milli or lane.outstanding_milli + lane.next.job.gpus_milli // 2 <= room_milli
        ):
            drawn = lane.take()
            yield self._ask(lane, drawn, at_s + drawn.think_s)

    def _ask(self, lane: _Lane, drawn: Drawn, at_s: int) -> Job:
        job = replace(drawn.job, submitted_s=at_s)
        self._of[job.job] = (lane, job.gpus_milli)
        lane.outstanding_milli += job.gpus_milli
        return job
