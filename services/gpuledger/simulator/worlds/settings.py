"""Settings of single worlds, as a scenario gives them."""

from collections.abc import Mapping

from gpuledger.kernel.errors import Refused
from gpuledger.kernel.near import did_you_mean
from gpuledger.simulator.scenario import Scenario


def settings_of(scenario: Scenario, world: str, defaults: Mapping[str, int]) -> dict[str, int]:
    """Return the settings of a world, with defaults for those that the scenario leaves out.

    Args:
        scenario: What is simulated.
        world: Whose settings.
        defaults: All that there are; none may be below 0.

    Raises:
        Refused: When a setting is not known, or below 0.
    """
    given = scenario.worlds.get(world, {})
    for name, value in given.items():
        if name not in defaults:
            there_are = f"there are {', '.join(defaults)}" if defaults else "it has none"
            raise Refused(
                f"the world {world} has no setting {name!r}", hint=did_you_mean(name, defaults, there_are)
            )
        if value < 0:
            raise Refused(f"setting {name!r} of the world {world} is {value}", hint="give it at least 0")
    return {**defaults, **given}
