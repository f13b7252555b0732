"""Small clusters and what happens on them, told by hand."""

from collections.abc import Iterable, Sequence

from gpuledger.policy.placement import Placement
from gpuledger.simulator.facts import Departure, Fact, HostChanged, HostCondition, Left, Started, Submitted
from gpuledger.simulator.jobs import Job, Kind
from gpuledger.simulator.scenario import AccountSpec, HostSpec, Scenario

START_S = 1_767_225_600
"""2026-01-01T00:00:00Z."""
HOUR_S, DAY_S = 3_600, 86_400
GPU_HOUR = 3_600_000


class NoDemand:
    """Nobody asks for anything."""

    def first(self) -> Iterable[Job]:
        return ()

    def after(self, job: Job, at_s: int) -> Iterable[Job]:
        return ()


def scenario(
    *,
    days: int = 1,
    warm_up_days: int = 0,
    hosts: int = 2,
    gpus: int = 8,
    accounts: Sequence[AccountSpec] = (
        AccountSpec(account="org/a", share=3),
        AccountSpec(account="org/b", share=1),
    ),
) -> Scenario:
    return Scenario(
        name="story",
        cluster="c",
        start_s=START_S,
        days=days,
        warm_up_days=warm_up_days,
        hosts=tuple(
            HostSpec(host=f"h{n}", gpus_milli=gpus * 1000, gpu_model="H100") for n in range(1, hosts + 1)
        ),
        accounts=tuple(accounts),
        demand=lambda seed: NoDemand(),
    )


def submitted(
    job: str,
    at_s: int,
    *,
    account: str = "org/a",
    gpus: int = 1,
    minimum_runtime_s: int = HOUR_S,
    kind: Kind = "train",
    gpu_model: str | None = None,
) -> Submitted:
    """A submission, so many seconds after the beginning."""
    return Submitted(
        at_s=START_S + at_s,
        job=Job(
            job=job, account=account, user="ada", kind=kind, gpus_milli=gpus * 1000, submitted_s=START_S + at_s,
            work_s=HOUR_S, minimum_runtime_s=minimum_runtime_s, gpu_model=gpu_model,
        ),
    )  # fmt: skip


def started(job: str, at_s: int, placement: Placement, *, run: int = 1, unallocated: bool = False) -> Started:
    """GPUs of hosts are handed over: whole GPUs by host."""
    return Started(
        at_s=START_S + at_s,
        job=job,
        run=run,
        placement={host: gpus * 1000 for host, gpus in placement.items()},
        klass="unallocated" if unallocated else "allocated",
    )


def left(
    job: str,
    at_s: int,
    *,
    run: int = 1,
    why: Departure = Departure.DONE,
    requeued: bool = False,
    lost_s: int = 0,
    loading_s: int = 0,
    idle_s: int = 0,
) -> Left:
    return Left(
        at_s=START_S + at_s, job=job, run=run, why=why, requeued=requeued, kept_s=0, lost_s=lost_s,
        loading_s=loading_s, idle_s=idle_s,
    )  # fmt: skip


def host(name: str, at_s: int, condition: HostCondition, *, planned: bool = False) -> HostChanged:
    return HostChanged(at_s=START_S + at_s, host=name, condition=condition, planned=planned)


def in_order(*facts: Fact) -> list[Fact]:
    """Facts in order of time; those of one instant as they stand."""
    return sorted(facts, key=lambda fact: fact.at_s)
