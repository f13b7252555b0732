"""The keys of a scenario file. Read strictly; docs/scenarios.md says what each means."""

import datetime as dt
from decimal import Decimal
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, NonNegativeInt, PositiveInt, model_validator

from gpuledger.events.mapping import Kind
from gpuledger.ingest.yaml_file import ClusterName, Settings, Strict, Word

_LONGEST_S = 400 * 86_400

Seconds = Annotated[int, Field(ge=0, le=_LONGEST_S)]
SomeSeconds = Annotated[int, Field(ge=1, le=_LONGEST_S)]
Days = Annotated[Decimal, Field(gt=0, le=100_000)]
Hours = Annotated[Decimal, Field(gt=0, le=100_000)]
Gpus = Annotated[int, Field(ge=1, le=100_000)]
Part = Annotated[Decimal, Field(ge=0, le=1, decimal_places=3)]
Weight = Annotated[int, Field(ge=1, le=1_000_000)]


def _weighted(value: object) -> object:
    """A number alone is that number always; in a list each comes as often as any other."""
    if isinstance(value, list) and all(isinstance(each, int) for each in value):
        return dict.fromkeys(value, 1)
    return {value: 1} if isinstance(value, int) else value


Sizes = Annotated[dict[Gpus, Weight], Field(min_length=1), BeforeValidator(_weighted)]
Choices = Annotated[dict[Seconds, Weight], Field(min_length=1), BeforeValidator(_weighted)]


class HostsKeys(Strict):
    """Hosts of one kind.

    Args:
        hosts: How many.
        gpus_per_host: GPUs in each.
        model: Their model.
        racks: Over how many racks they are spread, in order.
    """

    hosts: Annotated[int, Field(ge=1, le=100_000)] | None = None
    gpus_per_host: Annotated[int, Field(ge=1, le=1024)] = 8
    model: Word = "h100"
    racks: PositiveInt = 1


class ClusterKeys(HostsKeys):
    """The cluster.

    Args:
        name: Its name; that of the scenario unless given.
        more: Hosts of other kinds.
    """

    name: ClusterName | None = None
    more: list[HostsKeys] = Field(default_factory=list)


class AccountKeys(Strict):
    """A node of the program tree, and who works there.

    Args:
        share: Weight among its siblings.
        team_limit_gpus: The most that its non-preemptible runs hold together in the old world.
        users: How many people ask for GPUs there.
        demand: Its weight in the stock of all accounts.
        stock_gpus: GPUs outstanding, instead of a part of the stock.
        mix: Names of the kinds of work that its users ask for; all unless given.
    """

    share: NonNegativeInt = 1
    team_limit_gpus: PositiveInt | None = None
    users: Annotated[int, Field(ge=0, le=100_000)] = 0
    demand: PositiveInt | None = None
    stock_gpus: Gpus | None = None
    mix: Annotated[list[Word], Field(min_length=1)] | None = None

    @model_validator(mode="after")
    def _one_stock(self) -> Self:
        if self.demand is not None and self.stock_gpus is not None:
            raise ValueError("demand and stock_gpus say the same; leave one of them out")
        return self


class LengthKeys(Strict):
    """A length of time, log-normal.

    Args:
        median_s: Half of them are shorter.
        spread: Standard deviation of the natural logarithm; 0 is always the median.
        least_s: None is shorter.
        most_s: None is longer.
    """

    median_s: Seconds
    spread: Annotated[Decimal, Field(ge=0, le=5, decimal_places=3)] = Decimal(0)
    least_s: Seconds = 0
    most_s: Seconds = 90 * 86_400

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if not self.least_s <= self.median_s <= self.most_s:
            raise ValueError("median_s is not between least_s and most_s")
        return self


def _constant(value: object) -> object:
    return {"median_s": value} if isinstance(value, int) and not isinstance(value, bool) else value


Length = Annotated[LengthKeys, BeforeValidator(_constant)]


class IdleKeys(LengthKeys):
    """For how long GPUs are kept after the work is done.

    Args:
        part: How many do that.
    """

    part: Part = Decimal(1)


class WorkKeys(Strict):
    """A kind of work.

    Args:
        kind: As its jobs declare it.
        session: Whether people have one after another in working hours, beside the stock.
        part: Of the GPU-time in the stock; of a session, the part of the people who have any.
        gpus: GPUs -> how often.
        work: How long it works.
        minimum_runtime_s: Declared, seconds -> how often.
        unallocated: The part that asks to run unallocated.
        startup: What each run needs to load.
        checkpoint_s: Work between two checkpoints, seconds -> how often; 0 has none.
        resumable: The part that may be queued again.
        idle: For how long its GPUs are kept after the work is done.
        patience: After how long of waiting it is given up.
        think: From the end of one job to the submission of the next.
        time_limits_s: The limits that people write.
    """

    kind: Kind = "train"
    session: bool = False
    part: Part = Decimal(1)
    gpus: Sizes
    work: Length
    minimum_runtime_s: Choices = Field(default_factory=lambda: {3600: 1})
    unallocated: Part = Decimal(0)
    startup: Length = Field(default_factory=lambda: LengthKeys(median_s=0))
    checkpoint_s: Choices = Field(default_factory=lambda: {0: 1})
    resumable: Part = Decimal(1)
    idle: Annotated[IdleKeys, BeforeValidator(_constant)] | None = None
    patience: Length | None = None
    think: Length = Field(default_factory=lambda: LengthKeys(median_s=0))
    time_limits_s: list[SomeSeconds] = Field(default_factory=list)


class HoursKeys(Strict):
    """When people are at work, UTC.

    Args:
        from_hour: ``from`` in the file.
        to: When they go home.
        days: How many days of the week, from Monday on.
    """

    from_hour: Annotated[int, Field(ge=0, le=23, alias="from")] = 8
    to: Annotated[int, Field(ge=1, le=24)] = 20
    days: Annotated[int, Field(ge=1, le=7)] = 5

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.from_hour >= self.to:
            raise ValueError("from is not before to")
        return self


class SeasonKeys(Strict):
    """How the stock of a team goes up and down; teams do so one after another.

    Args:
        days: After how many days it is what it was.
        swing: By which part it rises and falls.
    """

    days: Annotated[int, Field(ge=1, le=366)] = 28
    swing: Annotated[Decimal, Field(ge=0, lt=1, decimal_places=3)] = Decimal(0)


class ClosedLoopKeys(Strict):
    """Users who keep asking.

    Args:
        stock: GPUs outstanding, as a multiple of those that there are.
        skew: How uneven users of a team are: the n-th has a stock of n to the power of minus this.
        season: How stocks go up and down.
        working_hours: When there are sessions.
        spread_hours: Within how many hours from the beginning the first stock is asked for.
        mix: Kinds of work by name.
    """

    stock: Annotated[Decimal, Field(gt=0, le=100, decimal_places=3)] = Decimal("2.5")
    skew: Annotated[Decimal, Field(ge=0, le=5, decimal_places=3)] = Decimal("1.5")
    season: SeasonKeys = SeasonKeys()
    working_hours: HoursKeys = HoursKeys()
    spread_hours: Annotated[int, Field(ge=0, le=240)] = 6
    mix: Annotated[dict[Word, WorkKeys], Field(min_length=1)]


class JobKeys(Strict):
    """A job, once or again and again.

    Args:
        job: Its name, a part of its ids.
        account: Who pays.
        user: Who asks; the name of the account's last part unless given.
        at_s: When the first is submitted, from the beginning.
        count: How many.
        every_s: From each submission to the next.
        gpus: GPUs of each.
    """

    job: Word
    account: Word
    user: Word | None = None
    kind: Kind = "train"
    at_s: Seconds = 0
    count: Annotated[int, Field(ge=1, le=10_000_000)] = 1
    every_s: Seconds = 0
    gpus: Annotated[Decimal, Field(gt=0, le=100_000, decimal_places=3)] = Decimal(1)
    work_s: SomeSeconds
    minimum_runtime_s: Seconds = 3600
    time_limit_s: SomeSeconds | None = None
    priority: int = 0
    startup_s: Seconds = 0
    checkpoint_s: SomeSeconds | None = None
    idle_s: Seconds = 0
    patience_s: SomeSeconds | None = None
    resumable: bool = True
    gpu_model: Word | None = None


class DemandKeys(Strict):
    """Where jobs come from: users who keep asking, a trace, jobs that are listed; any of them, together.

    Args:
        closed_loop: Users who keep asking.
        trace: The source of a trace, as ``gpuledger import`` calls it.
        path: Its file or folder, or several, from the folder of the scenario; the bundled one unless given.
        timezone: Zone of times without an offset.
        minimum_runtime_s: Of jobs of the trace that declare none.
        jobs: Jobs that are listed.
    """

    closed_loop: ClosedLoopKeys | None = None
    trace: Word | None = None
    path: list[Word] | Word | None = None
    timezone: Word | None = None
    minimum_runtime_s: Seconds = 3600
    jobs: list[JobKeys] = Field(default_factory=list)

    @model_validator(mode="after")
    def _some(self) -> Self:
        if self.closed_loop is None and self.trace is None and not self.jobs:
            raise ValueError("nobody asks for anything; write closed_loop, trace or jobs")
        if self.trace is None and (self.path is not None or self.timezone is not None):
            raise ValueError("path and timezone belong to a trace; write trace, or leave them out")
        return self


class FaultKeys(Strict):
    """How hosts break and are mended, in means.

    Args:
        mtbf_days: Between faults of one host that take it down at once; null never breaks.
        repair_hours: From going down until it is healthy again.
        drain_mtbf_days: Between requests to repair one host that may be emptied first; null for none.
        drain_repair_hours: Of such a repair, from empty to healthy.
        hands: The part of such repairs that needs hands at the machine.
    """

    mtbf_days: Days | None = None
    repair_hours: Hours = Decimal(4)
    drain_mtbf_days: Days | None = None
    drain_repair_hours: Hours = Decimal(2)
    hands: Part = Decimal(0)


class GroupKeys(Strict):
    """How waits are grouped by size.

    Args:
        medium_gpus: The largest that is medium.
        large_gpus: The largest that is large.
    """

    medium_gpus: Gpus = 8
    large_gpus: Gpus = 64

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.medium_gpus >= self.large_gpus:
            raise ValueError("medium_gpus is not below large_gpus")
        return self


class ScenarioKeys(Strict):
    """The whole file.

    Args:
        extends: Another scenario, by name or path from this one's folder: what this one leaves out is as there.
        name: The name; that of the file unless given.
        cluster: The cluster.
        start: The day on which it begins, UTC.
        days: How many days are measured.
        warm_up_days: How many days come before.
        seed: The seed unless another is given.
        accounts: The program tree by path.
        demand: Where jobs come from.
        faults: What breaks.
        policy: Knobs of the production policy.
        cycle_s: How often the production policy has a cycle though nothing happened.
        groups: How waits are grouped.
        worlds: Settings of single worlds by name.
    """

    extends: Word | None = None
    name: Word | None = None
    cluster: ClusterKeys = ClusterKeys()
    start: dt.date | None = None
    days: Annotated[int, Field(ge=1, le=3660)] | None = None
    warm_up_days: Annotated[int, Field(ge=0, le=366)] | None = None
    seed: NonNegativeInt = 1
    accounts: dict[str, AccountKeys] = Field(default_factory=dict)
    demand: DemandKeys
    faults: FaultKeys = FaultKeys()
    policy: Settings = Field(default_factory=dict)
    cycle_s: Annotated[int, Field(ge=1, le=86_400)] = 60
    groups: GroupKeys = GroupKeys()
    worlds: dict[Literal["old", "fifo", "multifactor", "gpuledger"], dict[str, int]] = Field(
        default_factory=dict
    )
