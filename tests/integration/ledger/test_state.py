"""A cluster at one instant, as the policy sees it."""

from collections.abc import Mapping

from tests.integration.ledger.books import (
    CLUSTER,
    HOUR,
    Ledger,
    empty,
    ended,
    registered,
    run_of,
    started,
    submitted,
    told,
)

from gpuledger.database.engine import reading
from gpuledger.events import host
from gpuledger.events.envelope import Event
from gpuledger.events.workload import Checkpointed, ClassChanged, Preempted, Resized, Started
from gpuledger.ledger import state


def test_healthy_gpus_are_those_of_the_instant(ledger: Ledger) -> None:
    ill = host.StateChanged(cluster=CLUSTER, host="h1", gpus=8, gpu_model="H100", state="unhealthy")
    ledger.append(told(0, registered("h1", 8)), told(HOUR, ill), told(0, registered("h2", 4)))
    with reading(ledger.engine) as reader:
        found = [state.healthy_models(reader, CLUSTER, at_s) for at_s in (0, HOUR - 1, HOUR)]
        assert found == [{"H100": 12_000}, {"H100": 12_000}, {"H100": 4_000}]
        assert state.healthy_models(reader, "nowhere", 0) == {}


def test_the_largest_host_is_one_that_is_installed_whatever_its_health(ledger: Ledger) -> None:
    ill = host.StateChanged(cluster=CLUSTER, host="h1", gpus=8, gpu_model="H100", state="unhealthy")
    gone = host.Retired(cluster=CLUSTER, host="h1", gpus=8, gpu_model="H100")
    ledger.append(
        told(0, registered("h1", 8)), told(HOUR, ill), told(2 * HOUR, gone), told(0, registered("h2", 4))
    )
    with reading(ledger.engine) as reader:
        found = [state.largest_host_milli(reader, CLUSTER, at_s) for at_s in (-1, 0, HOUR, 2 * HOUR)]
        assert found == [None, 8000, 8000, 4000]


def test_running_is_what_occupies_gpus_at_the_instant(ledger: Ledger) -> None:
    ledger.append(*run_of(0, HOUR), told(0, submitted("w2", minimum_runtime_s=60)), told(0, started("w2")))
    with reading(ledger.engine) as reader:
        assert [r.workload for r in state.running(reader, CLUSTER, HOUR - 1)] == ["w1", "w2"]
        assert state.running(reader, CLUSTER, HOUR) == [
            ("w2", "r1", "org/vision", "allocated", 8000, ("h1",), None, 0, None, 60, 0, None)
        ]


def test_a_run_is_as_old_as_its_start_whatever_changed_since(ledger: Ledger) -> None:
    ledger.append(
        told(0, submitted()),
        told(100, started()),
        told(200, Resized(cluster=CLUSTER, workload="w1", run="r1", gpus_milli=4000, hosts=["h1"])),
        told(300, ClassChanged(cluster=CLUSTER, workload="w1", run="r1", klass="unallocated", reason="x")),
    )
    with reading(ledger.engine) as reader:
        (run,) = state.running(reader, CLUSTER, 400)
    assert (run.started_s, run.gpus_milli, run.klass) == (100, 4000, "unallocated")


def test_the_minimum_runtime_of_a_run_is_that_of_the_submission_that_counts(ledger: Ledger) -> None:
    ledger.append(
        told(50, submitted(minimum_runtime_s=7)),
        told(0, submitted(minimum_runtime_s=3), source="reconcile/x"),
        told(60, started()),
    )
    with reading(ledger.engine) as reader:
        (run,) = state.running(reader, CLUSTER, 100)
    assert run.minimum_runtime_s == 3


def test_a_run_is_told_of_with_its_hosts_its_priority_and_its_newest_checkpoint(ledger: Ledger) -> None:
    saved = Checkpointed(cluster=CLUSTER, workload="w1", run="r1")
    ledger.append(
        told(0, submitted(priority=7)), told(10, started(hosts=["h2", "h1", "h2"])),
        told(30, saved), told(20, saved), told(50, saved),
        told(40, Checkpointed(cluster=CLUSTER, workload="w1", run="r0")),
    )  # fmt: skip
    with reading(ledger.engine) as reader:
        (run,) = state.running(reader, CLUSTER, 45)
    assert (run.hosts, run.priority, run.checkpointed_s) == (("h1", "h2"), 7, 30)


def spread(ledger: Ledger, *told_of: Event) -> Mapping[str, int] | None:
    """What a run of 8 GPUs occupies on each of its hosts after two hours, as its facts say."""
    ledger.append(told(0, submitted()))
    for event in told_of:
        ledger.append(event)
    with reading(ledger.engine) as reader:
        (run,) = state.running(reader, CLUSTER, 2 * HOUR)
    return run.host_gpus_milli


def on_both(first: int, second: int) -> Started:
    return started(hosts=["h1", "h2"], host_gpus_milli={"h1": first, "h2": second})


def resized_to(first: int, second: int) -> Resized:
    each = {"h1": first, "h2": second}
    return Resized(
        cluster=CLUSTER, workload="w1", run="r1", gpus_milli=8000, hosts=["h1", "h2"], host_gpus_milli=each
    )


def test_of_two_who_say_otherwise_what_lies_where_the_rank_decides_and_not_arrival(ledger: Ledger) -> None:
    two = [told(0, on_both(6000, 2000)), told(0, on_both(2000, 6000))]
    one = spread(ledger, *two)
    empty(ledger)
    assert spread(ledger, *two[::-1]) == one


def test_what_lies_where_is_what_the_start_says_that_counts(ledger: Ledger) -> None:
    measured = told(0, on_both(6000, 2000), source="reconcile/x")
    assert spread(ledger, measured, told(60, on_both(2000, 6000))) == {"h1": 6000, "h2": 2000}


def test_a_resize_moves_what_lies_where_from_its_instant_on(ledger: Ledger) -> None:
    later, now = told(5 * HOUR, resized_to(2000, 6000)), told(HOUR, resized_to(1000, 7000))
    assert spread(ledger, now, later, told(0, on_both(6000, 2000))) == {"h1": 1000, "h2": 7000}


def test_hosts_that_run_something_are_healthy_or_draining(ledger: Ledger) -> None:
    facts = []
    for name, health in (("h1", "healthy"), ("h2", "draining"), ("h3", "unhealthy"), ("h4", "maintenance")):
        said = host.StateChanged(cluster=CLUSTER, host=name, gpus=8, gpu_model="H100", state=health)
        facts += [told(0, registered(name, 8)), told(HOUR, said)]
    ledger.append(*facts)
    with reading(ledger.engine) as reader:
        assert [h.host for h in state.hosts(reader, CLUSTER, HOUR - 1)] == ["h1", "h2", "h3", "h4"]
        assert state.hosts(reader, CLUSTER, HOUR) == [("h1", 8, "H100", False), ("h2", 8, "H100", True)]


def test_a_run_that_nobody_submitted_has_no_minimum_runtime(ledger: Ledger) -> None:
    ledger.append(told(0, started()))
    with reading(ledger.engine) as reader:
        (run,) = state.running(reader, CLUSTER, 1)
    assert run.minimum_runtime_s is None


def test_pending_is_what_is_eligible_and_waits_at_the_instant(ledger: Ledger) -> None:
    preempted = Preempted(cluster=CLUSTER, workload="w2", run="r1", reason="policy")
    ledger.append(
        told(10, submitted("w1", priority=5, minimum_runtime_s=60, gpu_model="H100")),
        told(10, submitted("w2")), told(20, started("w2")), told(30, preempted),
        told(10, submitted("w3")), told(15, ended("w3", run=None)),
    )  # fmt: skip
    with reading(ledger.engine) as reader:
        names = {
            at_s: [p.workload for p in state.pending(reader, CLUSTER, at_s)] for at_s in (9, 10, 15, 20, 30)
        }
        (first, second) = state.pending(reader, CLUSTER, 30)
    assert names == {9: [], 10: ["w1", "w2", "w3"], 15: ["w1", "w2"], 20: ["w1"], 30: ["w1", "w2"]}
    assert first == ("w1", "org/vision", 8000, "H100", 60, 5, 10, 10)
    assert (second.submitted_s, second.eligible_s) == (10, 30)
