"""From what a scenario file says of people and jobs to where jobs come from."""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from decimal import Decimal

from gpuledger.kernel.accounts import SEPARATOR, parent
from gpuledger.kernel.amounts import GPU_MILLI
from gpuledger.kernel.apportion import apportion
from gpuledger.kernel.errors import Refused
from gpuledger.kernel.near import did_you_mean
from gpuledger.policy.placement import model_of
from gpuledger.simulator.demand.closed_loop import STOCK, ClosedLoop, Rhythm, UserSpec
from gpuledger.simulator.demand.listed import Listed, Repeated, Together
from gpuledger.simulator.demand.mix import PER_MILLE, Length, WorkKind
from gpuledger.simulator.demand.traces import Trace, TraceDemand
from gpuledger.simulator.jobs import Demand, Job
from gpuledger.simulator.scenario_keys import (
    AccountKeys,
    ClosedLoopKeys,
    DemandKeys,
    JobKeys,
    LengthKeys,
    WorkKeys,
)

_HOUR_S = 3_600
_DAY_S = 86_400
_UNIT = 1_000_000
"""The weight of the first user of a team; those of the others are whole parts of it."""

_GOLDEN_PERMILLE = 618
"""Seasons of teams that follow each other in a file are so far apart: evenly spread, however many there are."""


def demand(
    keys: DemandKeys,
    accounts: Mapping[str, AccountKeys],
    *,
    supply_milli: int,
    start_s: int,
    trace: Trace | None,
    models: Collection[str] = (),
) -> Callable[[int], Demand]:
    """Return what gives, for a seed, where jobs come from.

    Args:
        keys: As written.
        accounts: The accounts as written, by path.
        supply_milli: Milli-GPU that there are.
        start_s: When the simulation begins.
        trace: The trace, read.
        models: GPU models of the hosts; jobs insist on one in any case of letters, and are given its spelling.

    Raises:
        Refused: When something does not fit together; names its place.
    """
    loop = keys.closed_loop
    users = () if loop is None else _users(loop, accounts, supply_milli)
    if loop is None and (people := [path for path, account in accounts.items() if account.users]):
        raise Refused(
            f"accounts.{people[0]}.users: only demand.closed_loop has users",
            hint="write demand.closed_loop, or leave users out",
        )
    rhythm = Rhythm() if loop is None else _rhythm(loop)
    spelt = model_of(models)
    listed = tuple(_repeated(job, place, accounts, start_s, spelt) for place, job in enumerate(keys.jobs))
    _check_names(keys.jobs)

    def make(seed: int) -> Demand:
        demands: list[Demand] = []
        if users:
            demands.append(ClosedLoop(users, rhythm, start_s=start_s, seed=seed))
        if trace is not None:
            demands.append(TraceDemand(trace, start_s, keys.minimum_runtime_s, models))
        if listed:
            demands.append(Listed(listed))
        return demands[0] if len(demands) == 1 else Together(demands)

    return make


def _users(
    loop: ClosedLoopKeys, accounts: Mapping[str, AccountKeys], supply_milli: int
) -> tuple[UserSpec, ...]:
    inner = {parent(path) for path in accounts}
    teams = {path: account for path, account in accounts.items() if account.users}
    for path in teams:
        if path in inner:
            raise Refused(
                f"accounts.{path}.users: there are accounts below it", hint="give the users to one of them"
            )
    if not teams:
        raise Refused("accounts: nobody works there", hint="write users: 10 to an account, or more")
    works = {name: _work(name, keys) for name, keys in loop.mix.items()}
    names = _names(teams)
    return tuple(
        UserSpec(
            user=f"{names[path]}-{number + 1:02}",
            account=path,
            stock_milli=stock_milli,
            works=_works(works, path, account),
            season_s=place * _GOLDEN_PERMILLE % PER_MILLE * loop.season.days * _DAY_S // PER_MILLE,
        )
        for place, (path, account) in enumerate(teams.items())
        for number, stock_milli in enumerate(_stocks(loop, teams, supply_milli, path))
    )


def _stocks(
    loop: ClosedLoopKeys, teams: Mapping[str, AccountKeys], supply_milli: int, path: str
) -> Sequence[int]:
    """Return the milli-GPU outstanding of each user of a team."""
    fixed = {path: team.stock_gpus * GPU_MILLI for path, team in teams.items() if team.stock_gpus is not None}
    rest_milli = int(loop.stock * supply_milli) - sum(fixed.values())
    if rest_milli <= 0 and len(fixed) < len(teams):
        raise Refused(
            f"demand.closed_loop.stock: {loop.stock} times {supply_milli // GPU_MILLI} GPUs leave nothing beside the"
            " stock_gpus of accounts",
            hint="raise it, or write stock_gpus to every account",
        )
    shared = [path for path in teams if path not in fixed]
    weights = [teams[path].demand or teams[path].users for path in shared]
    of_team = fixed | dict(zip(shared, apportion(max(rest_milli, 0), weights), strict=True))
    uneven = [max(round(_UNIT * rank ** -float(loop.skew)), 1) for rank in range(1, teams[path].users + 1)]
    return apportion(of_team[path], uneven)


def _names(teams: Mapping[str, AccountKeys]) -> dict[str, str]:
    """Return what users of each team are called by, no two alike.

    That is the last part of its path; with dots all of it where two are alike; or else the path itself.
    """
    last = {path: path.rpartition(SEPARATOR)[2] for path in teams}
    often = Counter(last.values())
    names = {path: path.replace(SEPARATOR, ".") if often[name] > 1 else name for path, name in last.items()}
    often = Counter(names.values())
    return {path: path if often[name] > 1 and SEPARATOR in path else name for path, name in names.items()}


def _works(works: Mapping[str, WorkKind], path: str, account: AccountKeys) -> tuple[WorkKind, ...]:
    for name in account.mix or ():
        if name not in works:
            raise Refused(
                f"accounts.{path}.mix: {name} is no kind of work in the mix",
                hint=did_you_mean(name, works, f"there are {', '.join(works)}"),
            )
    return tuple(work for name, work in works.items() if account.mix is None or name in account.mix)


def _work(name: str, keys: WorkKeys) -> WorkKind:
    if keys.session and name == STOCK:
        raise Refused(
            f"demand.closed_loop.mix.{name}: sessions of that name have the ids of jobs of the stock",
            hint="give this kind of work another name",
        )
    return WorkKind(
        name=name,
        kind=keys.kind,
        part_permille=_permille(keys.part),
        is_session=keys.session,
        sizes=keys.gpus,
        work=_length(keys.work, least_s=1),
        minimum_runtimes=keys.minimum_runtime_s,
        unallocated_permille=_permille(keys.unallocated),
        startup=_length(keys.startup),
        checkpoints=keys.checkpoint_s,
        resumable_permille=_permille(keys.resumable),
        idle=None if keys.idle is None else _length(keys.idle),
        idle_permille=0 if keys.idle is None else _permille(keys.idle.part),
        patience=None if keys.patience is None else _length(keys.patience, least_s=1),
        think=_length(keys.think),
        time_limits_s=sorted(keys.time_limits_s),
    )


def _length(keys: LengthKeys, *, least_s: int = 0) -> Length:
    return Length(
        median_s=keys.median_s,
        spread_permille=_permille(keys.spread),
        least_s=max(keys.least_s, least_s),
        most_s=max(keys.most_s, least_s),
    )


def _permille(part: Decimal) -> int:
    return int(part * PER_MILLE)


def _rhythm(loop: ClosedLoopKeys) -> Rhythm:
    return Rhythm(
        season_s=loop.season.days * _DAY_S,
        swing_permille=_permille(loop.season.swing),
        from_s=loop.working_hours.from_hour * _HOUR_S,
        to_s=loop.working_hours.to * _HOUR_S,
        days=loop.working_hours.days,
        spread_s=loop.spread_hours * _HOUR_S,
    )


def _check_names(jobs: Sequence[JobKeys]) -> None:
    """Refuse a name that stands twice: jobs of both would have the same ids."""
    places: dict[str, int] = {}
    for place, keys in enumerate(jobs):
        if keys.job in places:
            raise Refused(
                f"demand.jobs.{place}.job: {keys.job} is the name of demand.jobs.{places[keys.job]}, too",
                hint="give each a name of its own; count asks for the same again and again",
            )
        places[keys.job] = place


def _repeated(
    keys: JobKeys,
    place: int,
    accounts: Mapping[str, AccountKeys],
    start_s: int,
    spelt: Callable[[str | None], str | None],
) -> Repeated:
    if keys.account not in accounts:
        raise Refused(
            f"demand.jobs.{place}.account: {keys.account} is no account",
            hint=did_you_mean(keys.account, accounts, "list it under accounts, with its share"),
        )
    job = Job(
        job=keys.job,
        account=keys.account,
        user=keys.user or keys.account.rpartition(SEPARATOR)[2],
        kind=keys.kind,
        gpus_milli=int(keys.gpus * GPU_MILLI),
        submitted_s=start_s + keys.at_s,
        work_s=keys.work_s,
        minimum_runtime_s=keys.minimum_runtime_s,
        time_limit_s=keys.time_limit_s,
        priority=keys.priority,
        gpu_model=spelt(keys.gpu_model),
        startup_s=keys.startup_s,
        checkpoint_s=keys.checkpoint_s,
        idle_s=keys.idle_s,
        patience_s=keys.patience_s,
        resumable=keys.resumable,
    )
    return Repeated(job=job, count=keys.count, every_s=keys.every_s)
