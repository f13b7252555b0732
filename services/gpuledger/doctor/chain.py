"""Judge the chain of one cluster: sources, events, posted rows, owners, roll-up, policy, closes. Pure."""

import datetime as dt
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from gpuledger.doctor.findings import Finding, Level, fine
from gpuledger.kernel.amounts import people_gpu_hours

SILENT = dt.timedelta(hours=1)
"""How long a source may say nothing before it is taken for dead: collectors send heartbeats each minute."""

TICKED = dt.timedelta(hours=2)
"""How long after a full hour its tick may come."""

ROLLED_UP = dt.timedelta(hours=3)
"""How far the warehouse may be behind a book that grows: its schedule comes each hour."""

DECIDED = dt.timedelta(minutes=10)
"""How old the newest cycle of a cluster may be that somebody leads."""

_SHOWN = 3


class Source(NamedTuple):
    """A source and up to when it has told all it knows."""

    name: str
    told_until_at: dt.datetime


class Overdue(NamedTuple):
    """A period that should have been closed."""

    period: str
    state: str
    since: dt.datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterFacts:
    """What was seen of a cluster.

    Args:
        cluster: Its name.
        rows: Rows of its book.
        last_recorded_at: When its newest row was recorded.
        sources: Its sources that send heartbeats.
        ticked_at: Its newest tick; None before the first.
        open_runs: Runs that have not ended, as far as is known.
        has_inventory: Whether its GPUs are known.
        has_work: Whether anything in its book held a GPU, or asks for one.
        unmapped: Foreign names without an owner, most GPU-time first, with that time.
        unknown_runs: Names by which GPUs report runs of the last day that no scheduler has told of.
        has_samples: Whether a GPU was measured in the last day.
        rolled_up_to: Up to when hours are rolled up; None before the first.
        unseen_rows: Rows of its book that the newest roll-up had not seen.
        seen_at: When the newest roll-up looked.
        leader: Who leads its policy; None where nobody does.
        decided_at: The instant of the newest cycle; None before the first.
        overdue: Periods that should have been closed, oldest first.
    """

    cluster: str
    rows: int
    last_recorded_at: dt.datetime
    sources: Sequence[Source] = ()
    ticked_at: dt.datetime | None = None
    open_runs: int = 0
    has_inventory: bool = True
    has_work: bool = True
    unmapped: Sequence[tuple[str, int]] = ()
    unknown_runs: Sequence[str] = ()
    has_samples: bool = True
    rolled_up_to: dt.datetime | None = None
    unseen_rows: int = 0
    seen_at: dt.datetime | None = None
    leader: str | None = None
    decided_at: dt.datetime | None = None
    overdue: Sequence[Overdue] = ()

    @property
    def is_live(self) -> bool:
        """Whether anything of it is still going on; what was imported once is not."""
        return bool(self.sources) or self.open_runs > 0


def of_cluster(facts: ClusterFacts, now: dt.datetime) -> Iterator[Finding]:
    """Judge a cluster, link by link, from its sources on; what is only imported owes no liveness."""
    yield from _sources(facts, now)
    if not facts.has_work and not facts.has_inventory:
        what = f"no record of {facts.cluster} holds a GPU: there is nothing to roll up"
        yield Finding("events", Level.NOTE, what, cluster=facts.cluster)
        return
    yield _tick(facts, now)
    yield _inventory(facts)
    yield _owners(facts)
    yield _telemetry(facts)
    yield _roll_up(facts, now)
    yield from _policy(facts, now)
    yield from _closes(facts)


def _sources(facts: ClusterFacts, now: dt.datetime) -> Iterator[Finding]:
    name = facts.cluster
    if not facts.sources:
        what = f"no source of {name} sends heartbeats: whether its records are complete nobody can say"
        remedy = "a collector sends them; records that were imported once need none"
        yield Finding(
            "sources", Level.NOTE, what, remedy=remedy, command="gpuledger collect slurm", cluster=name
        )
        return
    for source in facts.sources:
        if now - source.told_until_at > SILENT:
            what = f"{source.name} has told nothing since {_shown(source.told_until_at)}"
            remedy = "see whether its collector or agent runs, and whether it reaches the broker"
            yield Finding("sources", Level.WRONG, what, remedy=remedy, cluster=name)
    silent = sum(now - source.told_until_at > SILENT for source in facts.sources)
    if silent < len(facts.sources):
        yield fine(
            "sources", f"{len(facts.sources) - silent} of {len(facts.sources)} sources report", cluster=name
        )


def _tick(facts: ClusterFacts, now: dt.datetime) -> Finding:
    name, ticked = facts.cluster, facts.ticked_at
    if not facts.open_runs:
        return fine("posting", f"all of {facts.rows:,} rows are posted, and no run is open", cluster=name)
    if ticked is None or now - ticked > TICKED:
        when = "never" if ticked is None else f"last at {_shown(ticked)}"
        what = f"{facts.open_runs:,} runs are open and the book was ticked {when}: they are not charged up to now"
        remedy = "workers of gpu.scheduler.events tick by themselves; where there is none, tick by a timer"
        return Finding(
            "posting",
            Level.WRONG,
            what,
            remedy=remedy,
            command=f"gpuledger tick --cluster {name}",
            cluster=name,
        )
    return fine("posting", f"{facts.open_runs:,} open runs are charged up to {_shown(ticked)}", cluster=name)


def _inventory(facts: ClusterFacts) -> Finding:
    name = facts.cluster
    if facts.has_inventory:
        return fine("inventory", "installed GPUs are known", cluster=name)
    what = f"the GPUs of {name} are not known: availability, occupancy, entitlement and periods stay empty"
    return Finding(
        "inventory", Level.WRONG, what, command="gpuledger inventory apply inventory.yaml", cluster=name
    )


def _owners(facts: ClusterFacts) -> Finding:
    name = facts.cluster
    if not facts.unmapped:
        return fine("owners", "all GPU-time has an account", cluster=name)
    named = ", ".join(
        f"{foreign} ({people_gpu_hours(gpu_ms)} GPU-h)" for foreign, gpu_ms in facts.unmapped[:_SHOWN]
    )
    more = f", and {len(facts.unmapped) - _SHOWN} more" if len(facts.unmapped) > _SHOWN else ""
    what = f"no rule says whose this work is: {named}{more}"
    remedy = "add rules to the mapping; what they match is booked to its owner, back to the first day"
    return Finding(
        "owners",
        Level.WRONG,
        what,
        remedy=remedy,
        command=f"gpuledger mapping unmapped --cluster {name}",
        cluster=name,
    )


def _telemetry(facts: ClusterFacts) -> Finding:
    name = facts.cluster
    if facts.unknown_runs:
        named = ", ".join(facts.unknown_runs[:_SHOWN])
        more = f", and {len(facts.unknown_runs) - _SHOWN} more" if len(facts.unknown_runs) > _SHOWN else ""
        what = f"GPUs report runs that no scheduler has told of: {named}{more}"
        remedy = "compare these names with the scheduler's: its records may be missing, or the agent have other labels"
        return Finding("telemetry", Level.WRONG, what, remedy=remedy, cluster=name)
    if facts.is_live and not facts.has_samples:
        what = f"no GPU of {name} was measured in the last day: utilisation and waste stay empty"
        remedy = "run the agent on the hosts, or have DCGM's exporter read"
        return Finding(
            "telemetry", Level.NOTE, what, remedy=remedy, command="gpuledger agent nvml", cluster=name
        )
    return fine(
        "telemetry",
        "what is measured has a run" if facts.has_samples else "nothing is measured",
        cluster=name,
    )


def _roll_up(facts: ClusterFacts, now: dt.datetime) -> Finding:
    name = facts.cluster
    if facts.rolled_up_to is None:
        what = f"nothing of the {facts.rows:,} rows of {name} is rolled up: reports and pages stay empty"
        return Finding("roll-up", Level.WRONG, what, command="gpuledger rollup", cluster=name)
    late = facts.seen_at is None or now - facts.seen_at > ROLLED_UP
    if facts.unseen_rows and late:
        seen = "" if facts.seen_at is None else f" since {_shown(facts.seen_at)}"
        what = f"{facts.unseen_rows:,} rows of {name} are not rolled up{seen}"
        remedy = "see whether Dagster's daemon runs and whether a gate stopped it; this tries now and names what fails"
        return Finding("roll-up", Level.WRONG, what, remedy=remedy, command="gpuledger rollup", cluster=name)
    return fine("roll-up", f"rolled up to {_shown(facts.rolled_up_to)}", cluster=name)


def _policy(facts: ClusterFacts, now: dt.datetime) -> Iterator[Finding]:
    name = facts.cluster
    if facts.decided_at is None:
        if facts.is_live:
            what = f"the policy has not run for {name}"
            yield Finding(
                "policy", Level.NOTE, what, command=f"gpuledger policy run --cluster {name}", cluster=name
            )
        return
    age = now - facts.decided_at
    if facts.leader is not None and age > DECIDED:
        what = f"{facts.leader} leads {name}, and its newest cycle is of {_shown(facts.decided_at)}"
        yield Finding("policy", Level.WRONG, what, command="gpuledger policy status", cluster=name)
    elif facts.leader is None and facts.is_live:
        what = f"nobody leads {name}: its newest cycle is of {_shown(facts.decided_at)}"
        yield Finding(
            "policy", Level.NOTE, what, command=f"gpuledger policy run --cluster {name}", cluster=name
        )
    else:
        yield fine("policy", f"the newest cycle is of {_shown(facts.decided_at)}", cluster=name)


def _closes(facts: ClusterFacts) -> Iterator[Finding]:
    for due in facts.overdue:
        what = f"{due.period} of {facts.cluster} is {due.state}, and should have been closed since {_shown(due.since)}"
        command = f"gpuledger close run {due.period} --cluster {facts.cluster}"
        level = Level.WRONG if facts.is_live else Level.NOTE
        yield Finding("closes", level, what, command=command, cluster=facts.cluster)
        return  # periods are closed in order: the others wait for it


def _shown(at: dt.datetime) -> str:
    return at.astimezone(dt.UTC).strftime("%Y-%m-%d %H:%M UTC")
