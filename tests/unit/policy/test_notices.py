"""Who is told to leave, when it is ordered and when it is foreseen."""

from gpuledger.kernel.clock import instant
from gpuledger.policy.cycle import (
    AccountState,
    ClusterState,
    HostState,
    PendingWorkload,
    PolicyConfig,
    RunningRun,
    WorkClass,
    run_cycle,
)
from gpuledger.policy.notices import Notice, notices

CONFIG = PolicyConfig(protection_cap_s=3600, quantum_s=300, notice_s=900, grace_s=60)


def run(name: str, host: str, until_s: int, klass: WorkClass = "allocated") -> RunningRun:
    return RunningRun(
        workload=name, run="1", account="a", gpus_milli=8000, started_at_s=0, protected_until_s=until_s, klass=klass,
        placement={host: 8000},
    )  # fmt: skip


def told(*runs: RunningRun, at_s: int, draining: bool = False) -> tuple[Notice, ...]:
    state = ClusterState(
        cluster="c",
        at_s=at_s,
        healthy_milli=16_000,
        capacity_window_gpu_ms=16_000 * CONFIG.window_s,
        accounts=(AccountState(account="a", share=1), AccountState(account="b", share=1)),
        running=runs,
        pending=()
        if draining
        else (
            PendingWorkload(
                workload="w",
                account="b",
                gpus_milli=8000,
                submitted_at_s=0,
                eligible_at_s=0,
                minimum_runtime_s=600,
            ),
        ),
        hosts=(
            HostState(host="h1", gpus_milli=8000, gpu_model="x", draining=draining),
            HostState(host="h2", gpus_milli=8000, gpu_model="x"),
        ),
    )
    return notices(state, CONFIG, run_cycle(state, CONFIG))


def test_what_is_ordered_is_told_with_the_asker_and_the_grace() -> None:
    (notice,) = told(run("r1", "h1", 0, "unallocated"), run("r2", "h2", 3600), at_s=1000)
    assert notice.id == "leaves/r1/1/w"
    assert (notice.fact.asker, notice.fact.foreseen) == ("w", False)
    assert notice.fact.leaves_at == instant(1060)
    assert notice.fact.reason.startswith("Leaves for w of account b")


def test_what_a_reservation_takes_is_foreseen_within_the_notice_only() -> None:
    runs = run("r1", "h1", 3000), run("r2", "h2", 3600)
    assert told(*runs, at_s=1000) == ()
    (notice,) = told(*runs, at_s=2100)
    assert notice.id == "foreseen/r1/1/w"
    assert (notice.fact.foreseen, notice.fact.leaves_at) == (True, instant(3060))
    assert "May have to leave for w, to which 8 GPUs are reserved here" in notice.fact.reason


def test_a_host_that_is_emptied_has_no_asker() -> None:
    (notice,) = told(run("r1", "h1", 100), at_s=1000, draining=True)
    assert (notice.id, notice.fact.asker) == ("leaves/r1/1/~drain", None)


def test_the_same_is_told_under_the_same_id() -> None:
    runs = run("r1", "h1", 3000), run("r2", "h2", 3600)
    assert [one.id for one in told(*runs, at_s=2100)] == [one.id for one in told(*runs, at_s=2200)]
