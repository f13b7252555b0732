"""Hosts as a ledger knows them, and as a simulation has them."""

from gpuledger.ledger.inventory import HostInterval
from gpuledger.simulator.backtest.hosts import Installed, installed
from gpuledger.simulator.facts import HostChanged, HostCondition
from gpuledger.simulator.scenario import HostSpec, Outage

START_S, END_S = 1_000, 9_000


def interval(state: str, from_s: int, to_s: int | None, *, host: str = "h", gpus: int = 8) -> HostInterval:
    return HostInterval(host, gpus, "H100", state, from_s, to_s)


def of(*intervals: HostInterval, busy: tuple[int, ...] = ()) -> Installed:
    return installed(intervals, {"h": busy}, start_s=START_S, end_s=END_S)


def test_a_host_that_was_well_all_the_time_never_changes() -> None:
    found = of(interval("healthy", 0, 5_000), interval("reserved", 5_000, None))
    assert found.hosts == (HostSpec(host="h", gpus_milli=8_000, gpu_model="H100"),)
    assert (found.changes, found.faults.failed["h"], found.faults.wanted["h"]) == ((), [], [])
    assert found.notes == ()


def test_a_fault_takes_it_down_for_as_long_as_it_was_down() -> None:
    found = of(
        interval("healthy", 0, 2_000), interval("unhealthy", 2_000, 2_600), interval("healthy", 2_600, None)
    )
    assert found.faults.failed["h"] == [Outage(2_000, 600)]
    assert found.faults.wanted["h"] == []
    assert found.changes == (
        HostChanged(at_s=2_000, host="h", condition=HostCondition.DOWN),
        HostChanged(at_s=2_600, host="h", condition=HostCondition.HEALTHY),
    )


def test_a_repair_lasts_from_when_it_was_down_not_from_when_it_was_asked_for() -> None:
    found = of(
        interval("healthy", 0, 2_000), interval("draining", 2_000, 3_000), interval("maintenance", 3_000, 3_700),
        interval("healthy", 3_700, None),
    )  # fmt: skip
    assert found.faults.wanted["h"] == [Outage(2_000, 700)]
    assert found.faults.failed["h"] == []
    assert [change.planned for change in found.changes] == [True, True, False]


def test_one_that_only_ever_drained_was_mended_while_nothing_ran_there() -> None:
    """As Slurm tells it: drained hosts stay drained until somebody resumes them."""
    found = of(
        interval("healthy", 0, 2_000), interval("draining", 2_000, 3_000), interval("healthy", 3_000, None),
        busy=(1_500, 2_400, 3_500),
    )  # fmt: skip
    assert found.faults.wanted["h"] == [Outage(2_000, 600)]


def test_a_fault_ends_a_drain() -> None:
    found = of(
        interval("healthy", 0, 2_000), interval("draining", 2_000, 3_000), interval("unhealthy", 3_000, 3_400),
        interval("healthy", 3_400, None),
    )  # fmt: skip
    assert found.faults.failed["h"] == [Outage(3_000, 400)]
    assert found.faults.wanted["h"] == [Outage(2_000, 400)]


def test_what_is_down_when_it_begins_is_down_from_the_beginning_and_what_stays_down_stays() -> None:
    found = of(
        interval("unhealthy", 0, 1_500), interval("healthy", 1_500, 8_000), interval("unhealthy", 8_000, None)
    )
    first, last = found.faults.failed["h"]
    assert first == Outage(START_S, 500)
    assert last.at_s == 8_000
    assert last.at_s + last.lasts_s >= END_S
    assert found.changes[0] == HostChanged(at_s=START_S, host="h", condition=HostCondition.DOWN)


def test_one_that_came_later_is_repaired_until_then_and_one_that_went_since_then() -> None:
    found = of(interval("healthy", 2_000, 5_000))
    first, last = found.faults.wanted["h"]
    assert first == Outage(START_S, 1_000)
    assert last.at_s == 5_000
    assert last.at_s + last.lasts_s >= END_S
    assert found.notes == (
        "1 hosts that came later or went earlier count as installed, and in maintenance, until or since then",
    )


def test_a_host_of_which_some_can_be_used_is_whole() -> None:
    found = of(
        interval("healthy", 0, 2_000),
        interval("healthy", 2_000, None, gpus=7),
        interval("unhealthy", 2_000, None, gpus=1),
    )
    assert found.hosts[0].gpus_milli == 8_000
    assert found.changes == ()
    assert found.notes == ("1 hosts of which some GPUs could not be used count as whole then",)


def test_hosts_come_by_name() -> None:
    found = of(interval("healthy", 0, None, host="b"), interval("healthy", 0, None, host="a", gpus=4))
    assert [(spec.host, spec.gpus_milli) for spec in found.hosts] == [("a", 4_000), ("b", 8_000)]
