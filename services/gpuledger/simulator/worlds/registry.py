"""The worlds there are, by name."""

from collections.abc import Callable, Mapping

from gpuledger.kernel.errors import NotFound
from gpuledger.kernel.near import did_you_mean
from gpuledger.simulator.scenario import Scenario
from gpuledger.simulator.worlds.fifo import Fifo
from gpuledger.simulator.worlds.gpuledger import Gpuledger
from gpuledger.simulator.worlds.multifactor import Multifactor
from gpuledger.simulator.worlds.old import Old
from gpuledger.simulator.worlds.protocol import World

WORLDS: Mapping[str, Callable[[Scenario, int], World]] = {
    "old": Old,
    "fifo": Fifo,
    "multifactor": Multifactor,
    "gpuledger": Gpuledger,
}
"""What makes a world of a scenario and a seed."""


def make_world(name: str, scenario: Scenario, seed: int) -> World:
    """Return a world for one simulation of a scenario.

    Args:
        name: Which.
        scenario: What is simulated.
        seed: What the world draws from, if it draws anything.

    Raises:
        NotFound: When there is no such world.
    """
    maker = WORLDS.get(name)
    if maker is None:
        there_are = f"there are {', '.join(WORLDS)}"
        raise NotFound(f"there is no world {name!r}", hint=did_you_mean(name, WORLDS, there_are))
    return maker(scenario, seed)
