"""What is to come on the hosts of a cluster, in order of time; drains against worlds: tests/property/policy."""

from gpuledger.policy.agenda import Entry, Kind, in_order, of_hosts
from gpuledger.policy.cycle import (
    ClusterState,
    HostState,
    PolicyConfig,
    Reservation,
    ReservationKind,
    RunningRun,
    WorkClass,
)
from gpuledger.policy.quotes import Certainty

CONFIG = PolicyConfig(grace_s=60)


def run(name: str, host: str | None, until_s: int, klass: WorkClass = "allocated") -> RunningRun:
    return RunningRun(
        workload=name, run="1", account="a", gpus_milli=4000, started_at_s=0, protected_until_s=until_s, klass=klass,
        placement={host: 4000} if host else {},
    )  # fmt: skip


def cluster(*runs: RunningRun, draining: bool = False, kept: tuple[Reservation, ...] = ()) -> ClusterState:
    return ClusterState(
        cluster="c",
        at_s=100,
        healthy_milli=16_000,
        capacity_window_gpu_ms=16_000,
        running=runs,
        hosts=(
            HostState(host="h1", gpus_milli=8000, gpu_model="x", draining=draining),
            HostState(host="h2", gpus_milli=8000, gpu_model="x"),
        ),
        reservations=kept,
    )


def entries(state: ClusterState, kind: Kind, limits_s: dict[str, int] | None = None) -> list[Entry]:
    return [entry for entry in in_order(of_hosts(state, CONFIG, limits_s=limits_s)) if entry.kind is kind]


def test_protection_that_is_to_end_is_told() -> None:
    state = cluster(
        run("r1", "h1", 500), run("r2", "h2", 300), run("r3", "h2", 50), run("r4", "h1", 0, "unallocated")
    )
    found = entries(state, Kind.PROTECTION_END)
    assert [(one.workload, one.at_s, one.certainty) for one in found] == [
        ("r2", 300, Certainty.BOUND), ("r1", 500, Certainty.BOUND),
    ]  # fmt: skip


def test_a_declared_limit_is_an_estimate() -> None:
    (one,) = entries(cluster(run("r1", "h1", 500), run("r2", "h1", 0)), Kind.LIMIT, {"r1": 900, "r2": 90})
    assert (one.at_s, one.certainty, one.run) == (900, Certainty.ESTIMATE, "1")


def test_a_reservation_counts_grace_and_cycles() -> None:
    bound = Reservation(workload="w", placement={"h1": 8000}, at_s=400, kind=ReservationKind.BOUND)
    (one,) = entries(cluster(kept=(bound,)), Kind.RESERVATION)
    assert (one.workload, one.at_s, one.gpus_milli) == ("w", 400 + 60 + 60 + 60, 8000)
    assert "host h1" in one.text


def test_a_draining_host_is_empty_when_its_last_run_is_out_of_protection() -> None:
    (one,) = entries(cluster(run("r1", "h1", 500), run("r2", "h2", 900), draining=True), Kind.DRAIN)
    assert (one.host, one.at_s, one.certainty) == ("h1", 500 + 60 + 60, Certainty.BOUND)
    (empty,) = entries(cluster(draining=True), Kind.DRAIN)
    assert (empty.at_s, empty.certainty) == (100, Certainty.BOUND)
    (guessed,) = entries(cluster(run("r1", None, 500), run("r2", "h1", 300), draining=True), Kind.DRAIN)
    assert (guessed.at_s, guessed.certainty) == (300 + 120, Certainty.BOUND)


def test_entries_come_in_order_whatever_order_they_are_told_in() -> None:
    state = cluster(run("r1", "h1", 500), run("r2", "h2", 300), draining=True)
    told = list(of_hosts(state, CONFIG))
    assert in_order(reversed(told)) == in_order(told)
    assert [one.at_s for one in in_order(told)] == sorted(one.at_s for one in told)
