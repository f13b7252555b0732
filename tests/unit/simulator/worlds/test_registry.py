"""Worlds by name."""

import pytest
from tests.simulating import job, scenario, told

from gpuledger.kernel.errors import NotFound
from gpuledger.simulator.engine import simulate
from gpuledger.simulator.worlds.registry import WORLDS, make_world


@pytest.mark.parametrize("name", WORLDS)
def test_each_world_bears_its_name_and_starts_what_is_alone(name: str) -> None:
    alone = scenario([job("j", 8, 1000, at_s=5)])
    world = make_world(name, alone, 1)
    assert world.name == name
    lines = told(simulate(alone, world))
    assert any(line.endswith("j started run 1 on h0:8") for line in lines)
    assert lines[-1].endswith("j left, done: kept 1000 lost 0 loading 0 idle 0")


def test_a_world_that_is_not_there() -> None:
    with pytest.raises(NotFound, match="there is no world 'fifi'") as error:
        make_world("fifi", scenario(), 1)
    assert error.value.hint == "did you mean fifo?"
    with pytest.raises(NotFound) as error:
        make_world("xyz", scenario(), 1)
    assert error.value.hint.startswith("there are old, fifo")
