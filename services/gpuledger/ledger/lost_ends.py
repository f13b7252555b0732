"""Runs that nobody saw end -> when they must have been over (docs/decisions/0015-lost-ends.md). Pure.

A run whose end was lost is closed at the last evidence of life: never at its start, never after its declared
limit, and only on evidence that leaves no other reading. The truth, when it comes, beats the estimate.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from gpuledger.events import host
from gpuledger.events import workload as events
from gpuledger.events.envelope import Event, make
from gpuledger.kernel.amounts import GPU_MILLI
from gpuledger.ledger.facts import STOPS, Known, Rank, rank, winner
from gpuledger.ledger.inventory import HostFact
from gpuledger.ledger.requests import LATEST_S, Request, asked_at, requests_of

SOURCE = "gpuledger/lost-ends"
REASON = "lost-end"

GRACE_S = 600
"""How long after its limit a run's end is waited for: schedulers let a job die slowly, and events travel."""

SILENCE_S = 7200
"""Devices that named a run and then were sampled for so long without it do not hold it any more."""

TOLERANCE_S = 600
"""Evidence of life so long after a bound refutes it: a bucket of five minutes, and clocks that differ by as much."""

REBOOT = "reboot"
"""The reason of a ``host.state_changed`` that says that nothing survived on the host."""

DECLARED = "gpuledger/"
"""Sources that declare what is installed rather than see it: an inventory that is applied reboots nothing."""

_SIGNS_OF_LIFE = (events.Ready, events.Checkpointed, events.Resized, events.Suspended, events.Resumed)
"""Facts that only a living run gives rise to; a change of class is the policy's own."""


@dataclass(frozen=True, slots=True)
class Claim:
    """GPUs that a run holds from an instant on.

    Args:
        workload: The workload.
        run: The run.
        from_s: From when, in seconds since the epoch.
        gpus_milli: How many, in milli-GPU.
        hosts: All hosts they are on; empty when not known.
        gpu_uuids: The devices; empty when not known.
    """

    workload: str
    run: str
    from_s: int
    gpus_milli: int
    hosts: frozenset[str]
    gpu_uuids: frozenset[str]


@dataclass(frozen=True, slots=True)
class Run:
    """A run as its facts tell it.

    Args:
        start: What it was given.
        now: What it holds since it was resized last; its start otherwise.
        limit_s: When it ends at the latest by its declared limit; None without one.
        spoke_s: The newest fact that only a living run gives rise to, after the start.
        suspended: Whether it was suspended last, and not resumed.
        ended_s: The end that counts; None while it is open.
        guessed: Whether that end is an estimate of this module.
    """

    start: Claim
    now: Claim
    limit_s: int | None = None
    spoke_s: int | None = None
    suspended: bool = False
    ended_s: int | None = None
    guessed: bool = False


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known of one run without a known end; instants in seconds since the epoch.

    Args:
        started_s: When it started.
        limit_s: When it ends at the latest by its declared limit.
        taken_s: When another run started on its GPUs.
        down_s: When a host of it was rebooted or taken away.
        seen_s: The last evidence of life: the end of the newest bucket that names it, or its newest own fact.
        missed_s: For how many seconds its devices were sampled since without naming it; 0 if they never did.
    """

    started_s: int
    limit_s: int | None = None
    taken_s: int | None = None
    down_s: int | None = None
    seen_s: int | None = None
    missed_s: int = 0

    def alive_s(self) -> int | None:
        """Return the last evidence of life; what lies at or before the start tells of another clock, not of life."""
        return self.seen_s if self.seen_s is not None and self.seen_s > self.started_s else None

    def bounds(self, as_of_s: int) -> list[int]:
        """Return when it lost its GPUs, as far as no later evidence of life says that it did not."""
        alive_s = self.alive_s()
        return [
            bound
            for bound in (self.taken_s, self.down_s)
            if bound is not None
            and self.started_s < bound <= as_of_s
            and (alive_s is None or alive_s - bound <= TOLERANCE_S)
        ]


def lost_end(evidence: Evidence, as_of_s: int) -> int | None:
    """Return when a run that is open must have been over, or None while it may be alive.

    The result is the last evidence of life, bounded above by the next run on its GPUs, the loss of a host and
    its limit; without evidence of life it is the earliest of those. It lies after the start, not after the
    limit, and not after ``as_of_s``.

    Args:
        evidence: What is known of it.
        as_of_s: The instant that is asked for, in seconds since the epoch.
    """
    bounds, alive_s = evidence.bounds(as_of_s), evidence.alive_s()
    overdue = evidence.limit_s is not None and as_of_s - evidence.limit_s >= GRACE_S
    silent = alive_s is not None and evidence.missed_s >= SILENCE_S
    if not (bounds or overdue or silent):
        return None
    end_s = _bounded(evidence, alive_s, bounds)
    return end_s if end_s <= as_of_s else None


def revised_end(evidence: Evidence, ended_s: int, as_of_s: int) -> int | None:
    """Return the later end of a run that was closed by an estimate and proves to have lived longer, or None.

    Args:
        evidence: What is known of it.
        ended_s: The estimate that stands.
        as_of_s: The instant that is asked for; of what lived beyond it no more is said than that.
    """
    alive_s = evidence.alive_s()
    if alive_s is None or alive_s <= ended_s:
        return None
    end_s = min(as_of_s, _bounded(evidence, alive_s, evidence.bounds(as_of_s)))
    return end_s if end_s > ended_s else None


def _bounded(evidence: Evidence, alive_s: int | None, bounds: Sequence[int]) -> int:
    limits = [] if evidence.limit_s is None else [evidence.limit_s]
    found = [*bounds, *limits] if alive_s is None else [*bounds, *limits, alive_s]
    return max(min(found), evidence.started_s + 1)


def excludes(held: Claim, later: Claim, installed: Mapping[str, int]) -> bool:
    """Say whether one run cannot hold its GPUs any more because a later one got its own.

    Where the devices of both are known, they decide: two runs may share a device as long as both fit on it.
    Otherwise a host decides, and only when it has not GPUs enough for both.

    Args:
        held: What the first run held.
        later: What the other was given afterwards.
        installed: Host -> GPUs installed in it then, in milli-GPU; hosts that are not in it decide nothing.
    """
    common = held.hosts & later.hosts
    if later.from_s <= held.from_s or not common:
        return False
    if held.gpu_uuids and later.gpu_uuids:
        of_held, of_later = len(held.gpu_uuids), len(later.gpu_uuids)
        per_device = held.gpus_milli * of_later + later.gpus_milli * of_held
        return bool(held.gpu_uuids & later.gpu_uuids) and per_device > GPU_MILLI * of_held * of_later
    return any(
        _at_least(held, name, installed) + _at_least(later, name, installed) > installed[name]
        for name in common & installed.keys()
    )


def _at_least(claim: Claim, name: str, installed: Mapping[str, int]) -> int:
    """Return the milli-GPU that a run holds on a host even if it fills all its other hosts."""
    others = claim.hosts - {name}
    if not others <= installed.keys():
        return 0
    return max(0, claim.gpus_milli - sum(installed[other] for other in others))


def downs(facts: Iterable[HostFact]) -> list[int]:
    """Return when nothing can have survived on a host, in order.

    It was retired, it was said to reboot, or a source that had registered it registered it anew. Files that
    declare an inventory are no such source.
    """
    found: set[int] = set()
    registered_by: set[str] = set()
    for fact in sorted(facts, key=lambda f: f.known.at_s):
        said, source = fact.data, fact.known.source
        if isinstance(said, host.Retired) or (
            isinstance(said, host.StateChanged) and said.reason is not None and said.reason.lower() == REBOOT
        ):
            found.add(fact.known.at_s)
        elif isinstance(said, host.Registered) and not source.startswith(DECLARED):
            if source in registered_by:
                found.add(fact.known.at_s)
            registered_by.add(source)
    return sorted(found)


def runs_of(facts: Sequence[Known]) -> list[Run]:
    """Return the runs of one workload that have a start, by their names."""
    told = requests_of(facts)
    by_run: dict[str, list[Known]] = {}
    for fact in facts:
        run = getattr(fact.data, "run", None)
        if run is not None:
            by_run.setdefault(run, []).append(fact)
    found = (_run(claims, told) for _, claims in sorted(by_run.items()))
    return [run for run in found if run is not None]


def _run(facts: Sequence[Known], told: Sequence[Request]) -> Run | None:
    started = winner([fact for fact in facts if isinstance(fact.data, events.Started)])
    if started is None:
        return None
    given = started.data
    assert isinstance(given, events.Started)  # noqa: S101 - narrows the type
    start = Claim(
        workload=given.workload,
        run=given.run,
        from_s=started.at_s,
        gpus_milli=given.gpus_milli,
        hosts=frozenset(given.hosts),
        gpu_uuids=frozenset(given.gpu_uuids or ()),
    )
    signs = [f for f in facts if isinstance(f.data, _SIGNS_OF_LIFE) and f.at_s > started.at_s]
    pauses = [f for f in signs if isinstance(f.data, events.Suspended | events.Resumed)]
    stop = winner([fact for fact in facts if isinstance(fact.data, STOPS)])
    asked = asked_at(told, stop.at_s if stop else LATEST_S)
    limit_s = asked.asked.time_limit_s if asked else None
    return Run(
        start=start,
        now=_resized(start, signs),
        limit_s=started.at_s + limit_s if limit_s else None,
        spoke_s=max((fact.at_s for fact in signs), default=None),
        suspended=bool(pauses) and isinstance(max(pauses, key=_by_time).data, events.Suspended),
        ended_s=stop.at_s if stop else None,
        guessed=stop is not None and stop.source == SOURCE and bool(getattr(stop.data, "estimated", False)),
    )


def _resized(start: Claim, signs: Iterable[Known]) -> Claim:
    """Return what a run holds since its last change of size, whose devices nobody tells."""
    changes = [(fact, fact.data) for fact in signs if isinstance(fact.data, events.Resized)]
    if not changes:
        return start
    fact, data = max(changes, key=lambda change: _by_time(change[0]))
    hosts = frozenset(data.hosts)
    return Claim(start.workload, start.run, fact.at_s, data.gpus_milli, hosts, frozenset())


def _by_time(fact: Known) -> tuple[int, Rank]:
    return fact.at_s, rank(fact)


def ended_event(cluster: str, run: Run, end_s: int) -> Event:
    """Return the estimated end of a run as an event; the same end is the same event."""
    workload, name = run.start.workload, run.start.run
    fact = events.Ended(cluster=cluster, workload=workload, run=name, reason=REASON, estimated=True)
    return make(id=f"{workload}/{name}/{end_s}", source=SOURCE, at_s=end_s, data=fact)[0]
