"""The partition of law 9, and how large a gang could start."""

import pytest
from tests.unit.simulator.stories import START_S, host, scenario

from gpuledger.kernel.errors import Corrupt
from gpuledger.simulator.capacity import Capacity
from gpuledger.simulator.facts import HostCondition


def capacity(hosts: int = 3) -> Capacity:
    return Capacity(scenario(hosts=hosts).hosts, START_S)


def test_each_gpu_is_in_one_state() -> None:
    found = capacity(4)
    found.hold(START_S, {"h1": 5000}, "allocated")
    found.hold(START_S, {"h2": 2000}, "unallocated")
    found.change(host("h2", 0, HostCondition.DRAINING))
    found.change(host("h3", 0, HostCondition.DOWN))
    found.reserve(START_S, {"h1": 4000, "h4": 1000})
    sums = found.partition(START_S + 10)
    states = (sums.allocated, sums.unallocated, sums.maintenance, sums.unhealthy, sums.reserved, sums.free)
    assert [amount // 10_000 for amount in states] == [5, 2, 6, 8, 3 + 1, 7]
    assert sums.residual == 0
    assert sums.usable // 10_000 == 32 - 6 - 8
    assert found.healthy.area(START_S + 10) == sums.usable


def test_a_host_that_was_drained_is_in_maintenance_while_it_is_repaired() -> None:
    found = capacity(1)
    found.change(host("h1", 0, HostCondition.DRAINING))
    found.change(host("h1", 5, HostCondition.DOWN, planned=True))
    found.change(host("h1", 9, HostCondition.HEALTHY))
    sums = found.partition(START_S + 10)
    assert (sums.maintenance, sums.unhealthy, sums.free) == (9 * 8000, 0, 8000)


def test_the_largest_gang_is_whole_hosts_and_what_fits_on_one_more() -> None:
    found = capacity(3)
    found.hold(START_S, {"h1": 3000}, "allocated")
    found.hold(START_S, {"h2": 6500}, "allocated")
    found.settle(START_S)
    assert found.take_gang(START_S + 1) == (8000 + 5000, 8000 + 5000)


def test_hosts_of_another_model_or_size_make_no_gang_together() -> None:
    mixed = (*scenario(hosts=1).hosts, *scenario(hosts=1, gpus=4).hosts)
    found = Capacity((mixed[0], type(mixed[1])(host="h2", gpus_milli=4000, gpu_model="H100")), START_S)
    found.settle(START_S)
    assert found.take_gang(START_S + 1)[1] == 8000


def test_nothing_is_handed_over_twice() -> None:
    found = capacity(1)
    found.hold(START_S, {"h1": 8000}, "allocated")
    with pytest.raises(Corrupt, match="9000 milli-GPU of host h1"):
        found.hold(START_S, {"h1": 1000}, "allocated")
