"""A stretch of time of a cluster, read from its ledger in one snapshot: a scenario to be run, and what really happened.

What was in force (shares, settings of the policy) is read beside it, as of another moment or another row if need be.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from gpuledger.database.engine import Reader
from gpuledger.events.envelope import ORG_BOOK
from gpuledger.kernel.accounts import UNMAPPED_ROOT, lineage, share_unless_set
from gpuledger.kernel.amounts import GPU_MILLI
from gpuledger.kernel.clock import instant
from gpuledger.kernel.errors import Refused
from gpuledger.kernel.knobs import PolicyConfig, Value
from gpuledger.kernel.portions import members
from gpuledger.ledger import knobs, queries, retold
from gpuledger.ledger.as_of import Vector, seq_of
from gpuledger.ledger.look_back import share_versions
from gpuledger.policy.reading import read_cadence
from gpuledger.simulator.backtest.hosts import installed
from gpuledger.simulator.backtest.jobs import jobs_of
from gpuledger.simulator.backtest.lives import Life, life
from gpuledger.simulator.backtest.past import past
from gpuledger.simulator.demand.listed import Given
from gpuledger.simulator.facts import Fact
from gpuledger.simulator.scenario import AccountSpec, Scenario

DAY_S = 86_400
HOUR_S = 3_600
_NAMED_MAX = 3
_ONE_CLUSTER = (
    "one cluster: what accounts used of others does not count here, though the policy looks at all of them"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """What is replayed.

    Args:
        cluster: The cluster.
        from_s: When what is measured begins; a full hour.
        days: How many days are measured.
        warm_up_days: How many days before them are simulated as well; as far as the policy looks back, or the book
            goes back, unless given.
        known_s: Up to when anything is known.
        vector: The rows up to which the books are read; all there is for None.
    """

    cluster: str
    from_s: int
    days: int
    warm_up_days: int | None
    known_s: int
    vector: Vector | None

    @property
    def to_s(self) -> int:
        """When it ends."""
        return self.from_s + self.days * DAY_S


@dataclass(frozen=True, slots=True, kw_only=True)
class InForce:
    """What decides.

    Args:
        shares: Account -> its share.
        everywhere: Knob of the policy -> what it is set to for every cluster.
        own: The same for this cluster, where that is something else.
    """

    shares: Mapping[str, int]
    everywhere: Mapping[str, Value]
    own: Mapping[str, Value]

    @property
    def policy(self) -> PolicyConfig:
        """The settings with the defaults of all others."""
        return PolicyConfig.of({**self.everywhere, **self.own})

    def under(
        self, everywhere: Mapping[str, Value | None], own: Mapping[str, Value | None] | None = None
    ) -> PolicyConfig:
        """Return the policy once some things are set otherwise; None takes back what was set.

        Raises:
            Refused: When settings do not go together.
        """
        merged = [
            {knob: value for knob, value in {**before, **wanted}.items() if value is not None}
            for before, wanted in ((self.everywhere, everywhere), (self.own, own or {}))
        ]
        return PolicyConfig.of({**merged[0], **merged[1]})


@dataclass(frozen=True, slots=True, kw_only=True)
class Retold:
    """What the ledger tells.

    Args:
        scenario: What is to be run; decided by what was in force when it began.
        facts: What really happened.
    """

    scenario: Scenario
    facts: Sequence[Fact]


def read_in_force(reader: Reader, cluster: str, at_s: int, vector: Vector | None) -> InForce:
    """Return the shares and the settings in force for a cluster at a moment."""
    org_seq = seq_of(vector, ORG_BOOK)
    versions = knobs.versions(reader, org_seq=org_seq)
    return InForce(
        shares=queries.shares_at(reader, instant(at_s), org_seq),
        everywhere=knobs.in_force_alone(versions, None, at_s),
        own=knobs.in_force_alone(versions, cluster, at_s),
    )


def read_stretch(reader: Reader, stretch: Stretch, in_force: InForce) -> Retold:
    """Read what is replayed.

    Raises:
        Refused: When the book knows no host of that time, or nothing that was asked for.
    """
    cluster, seq = stretch.cluster, seq_of(stretch.vector, stretch.cluster)
    warm_up_days = _warm_up_days(reader, stretch, in_force.policy, seq)
    start_s, end_s = stretch.from_s - warm_up_days * DAY_S, stretch.to_s
    intervals = retold.host_intervals(reader, cluster, start_s, end_s, seq=seq)
    if not intervals:
        raise Refused(
            f"cluster {cluster!r}: no host is known of that time",
            hint="say what was installed then: gpuledger inventory apply FILE --from DAY",
        )
    sizes = {interval.host: interval.gpus * GPU_MILLI for interval in intervals}
    rules = queries.mapping(reader, cluster, seq)
    lives = [
        found
        for _, known in retold.iter_workloads(reader, cluster, start_s, end_s, seq=seq)
        if (found := life(known, rules, sizes)) is not None
    ]
    jobs, told_of_jobs = jobs_of(lives, start_s=start_s, end_s=end_s, known_s=stretch.known_s)
    if not jobs:
        raise Refused(
            f"cluster {cluster!r}: nothing was asked for in that time",
            hint="name a time in which something ran: gpuledger usage --by month shows when",
        )
    there = installed(intervals, _busy(lives), start_s=start_s, end_s=end_s)
    facts, told_of_past = past(
        lives, {job.job: job for job in jobs}, there.hosts, there.changes, start_s=start_s, end_s=end_s
    )
    accounts = _accounts(reader, stretch, in_force.shares, {job.account for job in jobs})
    scenario = Scenario(
        name=f"{cluster} from {instant(stretch.from_s):%Y-%m-%d}",
        cluster=cluster,
        start_s=start_s,
        days=stretch.days,
        warm_up_days=warm_up_days,
        hosts=there.hosts,
        accounts=accounts,
        demand=lambda _: Given(jobs),
        faults=there.faults,
        policy=in_force.policy,
        cycle_s=read_cadence(reader, cluster, end_s, seq=seq).cycle_s,
        notes=(
            *told_of_jobs,
            *there.notes,
            *told_of_past,
            *_changed(reader, stretch, start_s),
            *((_ONE_CLUSTER,) if in_force.policy.scope == "clusters" else ()),
        ),
    )
    return Retold(scenario=scenario, facts=facts)


def _warm_up_days(reader: Reader, stretch: Stretch, config: PolicyConfig, seq: int | None) -> int:
    if stretch.warm_up_days is not None:
        return stretch.warm_up_days
    begins_s = retold.begins_s(reader, stretch.cluster, seq=seq)
    looks_back_s = config.window_s if config.mode == "window" else 4 * config.half_life_s
    known_s = 0 if begins_s is None else max(stretch.from_s - begins_s, 0)
    return -(-min(looks_back_s, known_s) // DAY_S)


def _busy(lives: Iterable[Life]) -> dict[str, list[int]]:
    """Return host -> when something that ran there was over, ascending."""
    ends: dict[str, list[int]] = {}
    for found in lives:
        for run in found.runs:
            for piece in run.pieces:
                for host in piece.placement:
                    if piece.to_s is not None:
                        ends.setdefault(host, []).append(piece.to_s)
    return {host: sorted(of) for host, of in ends.items()}


def _accounts(
    reader: Reader, stretch: Stretch, shares: Mapping[str, int], working: Iterable[str]
) -> tuple[AccountSpec, ...]:
    """Return every node that has a part of the cluster, or work there, and those above it."""
    vector = stretch.vector
    known = queries.clusters(reader) if vector is None else sorted(vector.keys() - {ORG_BOOK})
    every = queries.account_paths(reader, seq_of(vector, ORG_BOOK))
    paths = [*members(stretch.cluster, every, known), *working]
    nodes = sorted({node for path in paths for node in lineage(path)})
    return tuple(AccountSpec(account=node, share=shares.get(node, share_unless_set(node))) for node in nodes)


def _changed(reader: Reader, stretch: Stretch, start_s: int) -> list[str]:
    """Return what was set while it went on, which is not replayed: one budget and one policy decide all of it."""
    org_seq, end_s = seq_of(stretch.vector, ORG_BOOK), stretch.to_s
    versions = share_versions(reader, end_s - 1, org_seq=org_seq)
    set_ = [path for path, steps in versions.items() if any(start_s < at_s for at_s, _ in steps)]
    notes = []
    if shares := [path for path in sorted(set_) if next(lineage(path)) != UNMAPPED_ROOT]:
        more = f" and {len(shares) - _NAMED_MAX} more" if len(shares) > _NAMED_MAX else ""
        named = f"{', '.join(shares[:_NAMED_MAX])}{more}"
        notes.append(f"one budget: shares of {named} were set in that time; those of its beginning count")
    settings = [
        version
        for version in knobs.versions(reader, org_seq=org_seq)
        if start_s < version.from_s < end_s and version.cluster in {None, stretch.cluster}
    ]
    if settings:
        notes.append("one policy: settings were made in that time; those of its beginning count")
    if hard := queries.hard_accounts(reader, instant(stretch.from_s), org_seq):
        notes.append(f"{len(hard)} hard accounts are never out of budget here")
    return notes


__all__ = ["DAY_S", "HOUR_S", "InForce", "Retold", "Stretch", "read_in_force", "read_stretch"]
