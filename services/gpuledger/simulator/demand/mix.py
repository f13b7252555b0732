"""The kinds of work that users ask for, and jobs drawn from them.

All chance comes from the stream that is handed in, in a fixed order: the k-th draw of a stream is the same whatever
became of the jobs before it.
"""

import math
import random
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from gpuledger.events.mapping import Kind
from gpuledger.kernel.amounts import GPU_MILLI
from gpuledger.simulator.jobs import Job

PER_MILLE = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Length:
    """A length of time, log-normal: the logarithm is normal about that of the median.

    Args:
        median_s: Half of them are shorter.
        spread_permille: Standard deviation of the natural logarithm, times 1000; 0 is always the median.
        least_s: None is shorter.
        most_s: None is longer.
    """

    median_s: int
    spread_permille: int = 0
    least_s: int = 1
    most_s: int = 90 * 86_400

    def draw(self, stream: random.Random) -> int:
        """Return one, in whole seconds; a constant draws nothing."""
        drawn_s = self.median_s
        if self.spread_permille:
            drawn_s = round(
                stream.lognormvariate(math.log(self.median_s or 1), self.spread_permille / PER_MILLE)
            )
        return min(max(drawn_s, self.least_s), self.most_s)

    @property
    def mean_s(self) -> float:
        """About the mean: that of the whole distribution, within the bounds."""
        mean_s = self.median_s * math.exp((self.spread_permille / PER_MILLE) ** 2 / 2)
        return min(max(mean_s, self.least_s), self.most_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkKind:
    """One kind of work.

    Args:
        name: Its name, a part of the ids of its jobs.
        kind: As jobs declare it.
        part_permille: Of the GPU-time that users ask for, as far as a user's stock has room for it; of a session, how
            many of the users have any.
        is_session: Whether a user has one after another in working hours, beside the stock, rather than a stock of it.
        sizes: GPUs -> how often, by jobs.
        work: How long it works.
        minimum_runtimes: Seconds -> how often.
        unallocated_permille: How many ask to run unallocated, that is with a minimum runtime of 0.
        startup: What each run needs to load.
        checkpoints: Seconds of work after which it is saved each time -> how often; 0 never saves.
        resumable_permille: How many may be queued again.
        idle: For how long its GPUs are kept after the work is done, by those who do that.
        idle_permille: How many do.
        patience: After how long of waiting it is given up; None never is.
        think: From the end of one job to the submission of the next.
        time_limits_s: The limits that people write, ascending; the first that leaves room is taken. None are written
            when there are none.
    """

    name: str
    kind: Kind = "train"
    part_permille: int = PER_MILLE
    is_session: bool = False
    sizes: Mapping[int, int]
    work: Length
    minimum_runtimes: Mapping[int, int]
    unallocated_permille: int = 0
    startup: Length = field(default_factory=lambda: Length(median_s=0, least_s=0))
    checkpoints: Mapping[int, int] = field(default_factory=lambda: {0: 1})
    resumable_permille: int = PER_MILLE
    idle: Length | None = None
    idle_permille: int = 0
    patience: Length | None = None
    think: Length = field(default_factory=lambda: Length(median_s=0, least_s=0))
    time_limits_s: Sequence[int] = ()

    def fits(self, most_gpus: int) -> bool:
        """Say whether any of it is no larger."""
        return min(self.sizes) <= most_gpus

    def mean_gpu_s(self, most_gpus: int) -> float:
        """Return about how many GPU-seconds a job of it takes, of those that are no larger."""
        sizes = _up_to(self.sizes, most_gpus)
        return sum(gpus * often for gpus, often in sizes.items()) / sum(sizes.values()) * self.work.mean_s


@dataclass(frozen=True, slots=True)
class Drawn:
    """The next job of a user, before it is known when it is submitted.

    Args:
        job: The job; its time of submission is 0.
        think_s: How long its user thinks before.
        late: Where in the first hours of a day it is submitted, if it has to wait for the day: 0 to below 1.
    """

    job: Job
    think_s: int
    late: float


def draw(
    stream: random.Random, work: WorkKind, most_gpus: int, *, job: str, account: str, user: str
) -> Drawn:
    """Draw a job of a kind.

    Args:
        stream: Where chance comes from.
        work: The kind.
        most_gpus: The largest that the user asks for, unless even the smallest is larger.
        job: Its id.
        account: Who pays.
        user: Who asks.
    """
    gpus = chosen(stream, _up_to(work.sizes, most_gpus))
    work_s, startup_s = work.work.draw(stream), work.startup.draw(stream)
    is_unallocated = _happens(stream, work.unallocated_permille)
    minimum_runtime_s = chosen(stream, work.minimum_runtimes)
    checkpoint_s = chosen(stream, work.checkpoints)
    is_resumable = _happens(stream, work.resumable_permille)
    idles = _happens(stream, work.idle_permille)
    idle_s = work.idle.draw(stream) if work.idle is not None else 0
    patience_s = None if work.patience is None else work.patience.draw(stream)
    think_s, late, slack = work.think.draw(stream), stream.random(), stream.random()
    return Drawn(
        Job(
            job=job,
            account=account,
            user=user,
            kind=work.kind,
            gpus_milli=gpus * GPU_MILLI,
            submitted_s=0,
            work_s=work_s,
            minimum_runtime_s=0 if is_unallocated else minimum_runtime_s,
            time_limit_s=_limit(work.time_limits_s, startup_s + work_s, slack),
            startup_s=startup_s,
            checkpoint_s=checkpoint_s or None,
            idle_s=idle_s if idles else 0,
            patience_s=patience_s,
            resumable=is_resumable,
        ),
        think_s,
        late,
    )


def chosen(stream: random.Random, often: Mapping[int, int]) -> int:
    """Return one of the numbers, each as often as it is said."""
    pick = stream.randrange(sum(often.values()))
    for number, weight in often.items():
        pick -= weight
        if pick < 0:
            return number
    raise AssertionError("the weights are positive")


def _happens(stream: random.Random, permille: int) -> bool:
    return stream.randrange(PER_MILLE) < permille


def _up_to(sizes: Mapping[int, int], most_gpus: int) -> Mapping[int, int]:
    fitting = {gpus: often for gpus, often in sizes.items() if gpus <= most_gpus}
    smallest = min(sizes)
    return fitting or {smallest: sizes[smallest]}


def _limit(limits_s: Sequence[int], needed_s: int, slack: float) -> int | None:
    """Return the first limit that holds what is needed and up to as much again; else what is needed, doubled."""
    if not limits_s:
        return None
    wanted_s = round(needed_s * (1 + slack))
    place = bisect_left(limits_s, wanted_s)
    return limits_s[place] if place < len(limits_s) else 2 * needed_s
