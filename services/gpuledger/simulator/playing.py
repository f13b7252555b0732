"""One simulation from its names: a scenario by name, a world, a seed, what is set otherwise; and its report.

What says which simulation is meant is a plain value, so that another process can be told to run it.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from gpuledger.kernel import knobs
from gpuledger.kernel.errors import NotFound, Refused
from gpuledger.kernel.near import did_you_mean
from gpuledger.simulator.document import Simulation
from gpuledger.simulator.engine import simulate
from gpuledger.simulator.facts import Fact, Submitted
from gpuledger.simulator.journal import Journal
from gpuledger.simulator.measures import Measures, measure
from gpuledger.simulator.scenario import Scenario
from gpuledger.simulator.scenario_file import read_scenario
from gpuledger.simulator.summary import summarise
from gpuledger.simulator.swf import write_swf
from gpuledger.simulator.worlds.registry import WORLDS, make_world

_POLICY, _WORLDS, _CYCLE = "policy", "worlds", "cycle_s"


@dataclass(frozen=True, slots=True, kw_only=True)
class Play:
    """Which simulation is meant.

    Args:
        scenario: The scenario's name or path.
        world: Who decides.
        seed: What chance is drawn from; the scenario's own unless given.
        days: How many days are measured; as many as the scenario says unless given.
        settings: Key -> what it is set to instead, such as ``policy.window_s``.
    """

    scenario: str
    world: str
    seed: int | None = None
    days: int | None = None
    settings: Mapping[str, int | str] = field(default_factory=dict)


def prepare(play: Play) -> Scenario:
    """Return the scenario that is meant, as it is to be simulated.

    Raises:
        Refused: When there is no such scenario, a setting is not known, or a value does not fit.
    """
    scenario = set_all(found(play.scenario), play.settings)
    return replace(
        scenario,
        seed=scenario.seed if play.seed is None else play.seed,
        days=scenario.days if play.days is None else play.days,
    )


def found(name_or_path: str) -> Scenario:
    """Return a scenario by name or path.

    Raises:
        Refused: When there is none, which is bad usage as a missing file is, or it is not well formed.
    """
    try:
        return read_scenario(name_or_path)
    except NotFound as error:
        raise Refused(error.message, hint=error.hint) from error


def run(play: Play, *, watch: Callable[[int], None] | None = None, events: Path | None = None) -> Simulation:
    """Run a simulation and report what came of it.

    Args:
        play: Which.
        watch: Told the simulated instant now and then.
        events: A file that is written with what a ledger would have been told.

    Raises:
        NotFound: When there is no such world.
        Refused: As ``prepare``.
    """
    return run_prepared(prepare(play), play.world, watch=watch, events=events)


def run_prepared(
    scenario: Scenario,
    world: str,
    *,
    watch: Callable[[int], None] | None = None,
    events: Path | None = None,
    swf: Path | None = None,
) -> Simulation:
    """Run a world on a scenario and report what came of it; see ``run``."""
    # How long a simulation takes is a fact of this machine, and of no other figure.
    began = time.perf_counter()
    measures = measured(scenario, world, watch=watch, events=events, swf=swf)
    wall_s = round(time.perf_counter() - began, 3)
    return summarise(measures, scenario, world=world, seed=scenario.seed, wall_s=wall_s)


def measured(
    scenario: Scenario,
    world: str,
    *,
    watch: Callable[[int], None] | None = None,
    events: Path | None = None,
    swf: Path | None = None,
) -> Measures:
    """Run a world on a scenario and return what is measured, exact: waits of several seeds can be pooled."""
    seed = scenario.seed
    facts = simulate(scenario, make_world(world, scenario, seed), seed=seed, watch=watch)
    if events is not None:
        facts = _journalled(facts, Journal(scenario, world=world, seed=seed), events)
    if swf is not None:
        facts = _submissions(facts, scenario, swf)
    return measure(facts, scenario)


def _submissions(facts: Iterator[Fact], scenario: Scenario, path: Path) -> Iterator[Fact]:
    asked = []
    for fact in facts:
        if isinstance(fact, Submitted):
            asked.append(fact)
        yield fact
    with path.open("w", encoding="ascii") as file:
        write_swf(asked, scenario, file)


def _journalled(facts: Iterator[Fact], journal: Journal, path: Path) -> Iterator[Fact]:
    with path.open("wb") as file:
        file.writelines(journal.opening())
        for fact in facts:
            file.writelines(journal.lines(fact))
            yield fact


def set_all(scenario: Scenario, settings: Mapping[str, int | str]) -> Scenario:
    """Return a scenario with some things set otherwise.

    Args:
        scenario: The scenario.
        settings: ``policy.KNOB``, ``worlds.WORLD.SETTING`` or ``cycle_s`` -> value.

    Raises:
        Refused: When a key or a setting of a world is not known, or a value does not fit.
    """
    policy: dict[str, int | str] = {}
    worlds = {name: dict(of) for name, of in scenario.worlds.items()}
    for key, value in settings.items():
        first, _, rest = key.partition(".")
        world, _, setting = rest.partition(".")
        if first == _POLICY:
            knobs.check(rest, value)
            policy[rest] = value
        elif first == _WORLDS and world in WORLDS and setting:
            worlds.setdefault(world, {})[setting] = _whole(key, value)
        elif key == _CYCLE:
            scenario = replace(scenario, cycle_s=_whole(key, value))
        else:
            raise _unknown(key)
    # The knobs bound each other, so that they are set together.
    config = replace(scenario.policy, **policy) if policy else scenario.policy  # type: ignore[arg-type]  # checked
    changed = replace(scenario, policy=config, worlds=worlds)
    for world in worlds:  # a setting that a world does not know is refused before anything is run
        make_world(world, changed, changed.seed)
    return changed


def _whole(key: str, value: int | str) -> int:
    least = 1 if key == _CYCLE else 0
    if not isinstance(value, int) or value < least:
        raise Refused(
            f"{key}: {value!r} is not a whole number of at least {least}", hint="write seconds, or a number"
        )
    return value


def _unknown(key: str) -> Refused:
    known = [*(f"{_POLICY}.{name}" for name in knobs.KNOBS), _CYCLE]
    there_are = f"there are {', '.join(known)} and {_WORLDS}.WORLD.SETTING; worlds are {', '.join(WORLDS)}"
    return Refused(f"{key}: nothing of that name can be set", hint=did_you_mean(key, known, there_are))


__all__ = ["Play", "found", "measured", "prepare", "run", "run_prepared", "set_all"]
