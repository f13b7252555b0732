"""Small trees for tests: ``forest({"a": {"share": 3}, "a/b": {"demand": 4}})``."""

from collections.abc import Iterable, Mapping
from typing import Any

from gpuledger.policy.cycle import (
    AccountState,
    ClusterState,
    HostState,
    PendingWorkload,
    Reservation,
    RunningRun,
)
from gpuledger.policy.tree import Capacity, Tree, build_tree

HOUR_S = 3600
WEEK_S = 7 * 24 * HOUR_S
GPU_HOUR = 3_600_000
AT_S = 1_000_000
"""When the cycles of these tests are: 1970-01-12T13:46:40Z."""


def account(path: str, *, share: int = 1, demand: float = 0, used: int = 0, **more: int) -> AccountState:
    """An account; demand in GPUs, used in GPU-hours."""
    return AccountState(
        account=path,
        share=share,
        demand_milli=round(demand * 1000),
        used_gpu_ms=used * GPU_HOUR,
        **more,
    )


def forest(
    accounts: Mapping[str, Mapping[str, float]], *, gpus: int = 100, running: Mapping[str, int] | None = None
) -> Tree:
    """A tree on a cluster that has been healthy for a week; running in GPUs."""
    return build_tree(
        [account(path, **given) for path, given in accounts.items()],  # type: ignore[arg-type]
        Capacity(
            healthy_milli=gpus * 1000,
            window_gpu_ms=gpus * 1000 * WEEK_S,
            ahead_gpu_ms=gpus * 1000 * 8 * HOUR_S,
        ),
        running_milli={path: busy * 1000 for path, busy in (running or {}).items()},
    )


def pending(workload: str, path: str, *, gpus: float = 1, hours: int = 1, **more: int) -> PendingWorkload:
    """A waiting workload with a minimum runtime in hours, submitted and eligible at second 0."""
    return PendingWorkload(
        workload=workload,
        account=path,
        gpus_milli=round(gpus * 1000),
        minimum_runtime_s=hours * HOUR_S,
        submitted_at_s=more.pop("submitted_at_s", 0),
        eligible_at_s=more.pop("eligible_at_s", 0),
        **more,
    )


def run(
    path: str,
    *,
    gpus: float,
    protected_until_s: int = 0,
    klass: str = "allocated",
    name: str | None = None,
    started_at_s: int = 0,
    **more: Any,  # noqa: ANN401 - any field
) -> RunningRun:
    """A run that started at second 0 unless told otherwise; ``hosts`` in GPUs."""
    placement = {host: round(held * 1000) for host, held in more.pop("hosts", {}).items()}
    return RunningRun(
        workload=name or f"running-{path}",
        run=f"{name or path}/1",
        account=path,
        gpus_milli=round(gpus * 1000),
        started_at_s=started_at_s,
        protected_until_s=protected_until_s,
        klass=klass,  # type: ignore[arg-type]
        placement=placement,
        **more,
    )


def hosts(*gpus: int, model: str = "h100") -> tuple[HostState, ...]:
    """Hosts h0, h1, ... with so many GPUs."""
    return tuple(
        HostState(host=f"h{n}", gpus_milli=count * 1000, gpu_model=model) for n, count in enumerate(gpus)
    )


def cluster(
    accounts: Iterable[AccountState],
    queue: Iterable[PendingWorkload] = (),
    running: Iterable[RunningRun] = (),
    *,
    gpus: int | None = None,
    on: tuple[HostState, ...] = (),
    reservations: Iterable[Reservation] = (),
) -> ClusterState:
    """A cluster that has been healthy for a week; 100 GPUs unless its hosts are given."""
    healthy_milli = sum(host.gpus_milli for host in on if not host.draining) if on else (gpus or 100) * 1000
    return ClusterState(
        cluster="c",
        at_s=AT_S,
        healthy_milli=healthy_milli,
        capacity_window_gpu_ms=healthy_milli * WEEK_S,
        accounts=tuple(accounts),
        running=tuple(running),
        pending=tuple(queue),
        hosts=on,
        reservations=tuple(reservations),
    )
