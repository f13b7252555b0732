"""What a cycle is told, read from the ledger in one snapshot."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache

from gpuledger.database.engine import Reader
from gpuledger.events.envelope import ORG_BOOK
from gpuledger.kernel.accounts import lineage, own_path, parent, share_unless_set
from gpuledger.kernel.amounts import GPU_MILLI
from gpuledger.kernel.clock import instant
from gpuledger.kernel.errors import NotFound, Refused
from gpuledger.kernel.portions import members
from gpuledger.ledger import cycles, queries, state
from gpuledger.ledger.as_of import Vector
from gpuledger.ledger.mapping import DEFAULT_MINIMUM_RUNTIME_S
from gpuledger.ledger.rates import UNWEIGHTED, Rates
from gpuledger.policy.affording import as_paid_for
from gpuledger.policy.cadence import NO_CYCLE, Cadence
from gpuledger.policy.history import NOTHING, Past, read_past, weights
from gpuledger.policy.placement import HostState, Room, model_of, split
from gpuledger.policy.published import credits_of, reservations_of
from gpuledger.policy.state import AccountState, ClusterState, PendingWorkload, PolicyConfig, RunningRun


def read_state(
    reader: Reader,
    cluster: str,
    at_s: int,
    config: PolicyConfig,
    *,
    vector: Mapping[str, int] | None = None,
) -> ClusterState:
    """Return the cluster as the ledger knows it at an instant.

    Args:
        reader: A snapshot.
        cluster: The cluster.
        at_s: The instant.
        config: How far it looks back, and the cap.
        vector: Book -> sequence that is read up to, for a cycle of the past: whatever was booked later is not known.
            All there is unless given.

    Raises:
        NotFound: When the cluster has no book.
        Refused: When it has no healthy GPUs, and no host that is being emptied.
    """
    known = queries.clusters(reader) if vector is None else sorted(vector.keys() - {ORG_BOOK})
    seq = None if vector is None else vector.get(cluster, 0)
    if cluster not in known:
        raise NotFound(
            f"cluster {cluster!r} is not known",
            hint=f"known clusters: {', '.join(known) or 'none yet; import something first'}",
        )
    models = state.healthy_models(reader, cluster, at_s, seq=seq)
    healthy_milli = sum(models.values())
    hosts = _hosts(reader, cluster, at_s, seq)
    if healthy_milli == 0 and not hosts:  # while hosts drain, what runs there has to be told to leave
        raise Refused(
            f"cluster {cluster!r} has no healthy GPUs at {instant(at_s):%Y-%m-%dT%H:%M:%SZ}",
            hint="say what was installed then: gpuledger inventory apply FILE --from DAY, or gpuledger budget apply"
            " FILE --from DAY with its GPUs under `clusters:`",
        )
    running = state.running(reader, cluster, at_s, seq=seq)
    clusters = known if config.scope == "clusters" else [cluster]
    past = read_past(reader, clusters, at_s, config, vector=vector)
    waiting = _pending(state.pending(reader, cluster, at_s, seq=seq), hosts, config, past.weights(models))
    pending = as_paid_for(reader, cluster, at_s, waiting, vector=vector)
    sizes = {host.host: host.gpus_milli for host in hosts}
    before = cycles.newest_word(reader, cluster, at_s=at_s, seq=seq)
    return ClusterState(
        cluster=cluster,
        at_s=at_s,
        healthy_milli=healthy_milli,
        capacity_window_gpu_ms=past.capacity_gpu_ms,
        accounts=_accounts(reader, clusters, at_s, past, running, _placeable(pending, hosts), vector=vector),
        running=tuple(_running(run, config, sizes) for run in running),
        pending=pending,
        hosts=hosts,
        shared_milli=past.shared_milli,
        largest_host_milli=state.largest_host_milli(reader, cluster, at_s, seq=seq) if hosts else None,
        reservations=() if before is None else reservations_of(before.record),
        credits_gpu_ms={} if before is None else _credits(before.issued, at_s, config),
    )


def read_submitted(
    reader: Reader,
    told: ClusterState,
    at_s: int,
    config: PolicyConfig,
    *,
    only: Sequence[str],
    vector: Vector,
) -> tuple[PendingWorkload, ...]:
    """Return those of some workloads that wait at an instant, as a cycle of then would be told of them; in order.

    Whether hard accounts can pay for them is not asked: a cycle of then asks that about all that waits.

    Args:
        reader: A snapshot.
        told: What the cycle before was told; it has the hosts still.
        at_s: The instant.
        config: How work counts, and the cap.
        only: The workloads.
        vector: Book -> the row up to which it is read.
    """
    seq = vector.get(told.cluster, 0)
    rates = read_rates(reader, config, vector)
    weight_of = weights(rates, state.healthy_models(reader, told.cluster, at_s, seq=seq), at_s)
    waiting = state.pending(reader, told.cluster, at_s, only=only, seq=seq)
    read = {one.workload: one for one in _pending(waiting, told.hosts, config, weight_of)}
    return tuple(read[name] for name in only if name in read)


def read_asked(
    reader: Reader, told: ClusterState, config: PolicyConfig, *, vector: Vector | None = None
) -> dict[str, PendingWorkload]:
    """Return what the workloads that run ask for when they wait again, by workload.

    Args:
        reader: A snapshot.
        told: The cluster.
        config: The cap.
        vector: Book -> the row up to which it is read; now unless given.
    """
    seq = None if vector is None else vector.get(told.cluster, 0)
    names = [run.workload for run in told.running]
    asked = state.asked(reader, told.cluster, names, told.at_s, seq=seq) if names else []
    rates = read_rates(reader, config, vector)
    weight_of = weights(rates, state.healthy_models(reader, told.cluster, told.at_s, seq=seq), told.at_s)
    return {one.workload: one for one in _pending(asked, told.hosts, config, weight_of)}


def read_rates(reader: Reader, config: PolicyConfig, vector: Vector | None) -> Rates:
    """Return what GPUs of a model weigh in use, as of a vector; now without one."""
    org_seq = None if vector is None else vector.get(ORG_BOOK, 0)
    return queries.rate_card(reader, org_seq) if config.unit == "weighted" else UNWEIGHTED


def read_running(
    reader: Reader,
    cluster: str,
    at_s: int,
    config: PolicyConfig,
    *,
    only: Sequence[str] | None = None,
    seq: int | None = None,
) -> tuple[RunningRun, ...]:
    """Return the runs that occupy GPUs at an instant, of some workloads or all.

    Args:
        reader: A snapshot.
        cluster: The cluster.
        at_s: The instant.
        config: The protection cap of runs that nobody admitted.
        only: The workloads; all of them unless given.
        seq: The row of the book up to which it is read; now unless given.
    """
    if only is not None and not only:
        return ()
    sizes = {host.host: host.gpus * GPU_MILLI for host in state.hosts(reader, cluster, at_s, seq=seq)}
    found = state.running(reader, cluster, at_s, only=only, seq=seq)
    return tuple(_running(run, config, sizes) for run in found)


def read_cadence(reader: Reader, cluster: str, at_s: int, *, seq: int | None = None) -> Cadence:
    """Return which cycle is in force at an instant, and how often they come; as of a row of the book."""
    newest = cycles.named(reader, cluster, at_s, seq=seq)
    return NO_CYCLE if newest is None else Cadence(newest.at_s, newest.every_s)


def _credits(before: cycles.Recorded, at_s: int, config: PolicyConfig) -> dict[str, int]:
    """Return what the cycle before left of credits, and what came of it since: through a quantum at most."""
    if config.division == "deficit":
        return {}
    return credits_of(before.issued.record, min(at_s - before.at_s, config.quantum_s))


def _hosts(reader: Reader, cluster: str, at_s: int, seq: int | None) -> tuple[HostState, ...]:
    return tuple(
        HostState(host=h.host, gpus_milli=h.gpus * GPU_MILLI, gpu_model=h.gpu_model, draining=h.draining)
        for h in state.hosts(reader, cluster, at_s, seq=seq)
    )


def _pending(
    waiting: Iterable[state.Pending],
    hosts: Iterable[HostState],
    config: PolicyConfig,
    weight_of: Callable[[str | None], int],
) -> tuple[PendingWorkload, ...]:
    spelt = model_of(host.gpu_model for host in hosts)
    return tuple(
        PendingWorkload(
            workload=p.workload,
            account=p.account,
            gpus_milli=p.gpus_milli,
            submitted_at_s=p.submitted_s,
            eligible_at_s=p.eligible_s,
            priority=p.priority,
            minimum_runtime_s=config.protected_s(p.minimum_runtime_s),
            gpu_model=spelt(p.gpu_model),
            weight_permille=weight_of(p.gpu_model),
        )
        for p in waiting
    )


def _accounts(
    reader: Reader,
    clusters: Sequence[str],
    at_s: int,
    past: Past,
    running: list[state.Running],
    pending: Iterable[PendingWorkload],
    *,
    vector: Mapping[str, int] | None,
) -> tuple[AccountState, ...]:
    known = queries.clusters(reader) if vector is None else sorted(vector.keys() - {ORG_BOOK})
    org_seq = None if vector is None else vector.get(ORG_BOOK, 0)
    every = queries.account_paths(reader, org_seq)
    paths = {path for cluster in clusters for path in members(cluster, every, known)}
    held = past.held_gpu_ms
    shares = queries.shares_at(reader, instant(at_s), org_seq)
    demand: dict[str, int] = {}
    for run in running:
        demand[run.account] = demand.get(run.account, 0) + (run.gpus_milli if run.klass == "allocated" else 0)
    asked: dict[str, int] = {}
    for workload in pending:
        if workload.minimum_runtime_s > 0:
            asked[workload.account] = asked.get(workload.account, 0) + workload.gpus_milli
    working = {*past.use, *held, *demand, *asked}
    nodes = {node for path in {*paths, *working} for node in lineage(path)}
    inner = {above for node in nodes if (above := parent(node)) is not None}
    nodes |= {own_path(account) for account in inner & working}
    for account, gpus_milli in asked.items():  # without shares all along its path it would run unallocated
        path = lineage(own_path(account) if account in inner else account)
        if all(shares.get(node, share_unless_set(node)) > 0 for node in path):
            demand[account] = demand.get(account, 0) + gpus_milli
    entitled = past.entitled(nodes)
    return tuple(
        AccountState(
            account=node,
            share=shares.get(node, share_unless_set(node)),
            used_gpu_ms=past.use.get(node, NOTHING).allocated_gpu_ms + held.get(node, 0),
            held_gpu_ms=held.get(node, 0),
            entitled_gpu_ms=entitled[node].gpu_ms if node in entitled else None,
            par_gpu_ms=entitled[node].par_gpu_ms if node in entitled else 0,
            unallocated_gpu_ms=past.use.get(node, NOTHING).unallocated_gpu_ms,
            demand_milli=demand.get(node, 0),
        )
        for node in sorted(nodes)
    )


def _placeable(pending: Iterable[PendingWorkload], hosts: Iterable[HostState]) -> list[PendingWorkload]:
    """Return what the cluster could hold; larger work, or work for another GPU model, is no demand."""
    empty = Room(hosts)
    fits = cache(empty.fit)
    return [workload for workload in pending if fits(workload.gpus_milli, workload.gpu_model)]


def _running(run: state.Running, config: PolicyConfig, sizes: Mapping[str, int]) -> RunningRun:
    asked = DEFAULT_MINIMUM_RUNTIME_S if run.minimum_runtime_s is None else run.minimum_runtime_s
    return RunningRun(
        workload=run.workload,
        run=run.run,
        account=run.account,
        gpus_milli=run.gpus_milli,
        started_at_s=run.started_s,
        protected_until_s=run.started_s + config.protected_s(asked)
        if run.protected_until_s is None
        else run.protected_until_s,
        klass="allocated" if run.klass == "allocated" else "unallocated",
        placement=run.host_gpus_milli
        or split(run.gpus_milli, {host: sizes.get(host, 0) for host in run.hosts}),
        priority=run.priority,
        checkpointed_at_s=run.checkpointed_s,
    )
