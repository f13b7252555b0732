"""A stretch of time as it was, as it is decided again, and as it would have been decided under something else."""

from collections.abc import Callable, Sequence

import msgspec

from gpuledger.simulator.backtest.reading import Retold
from gpuledger.simulator.comparison import Comparison, compare
from gpuledger.simulator.document import Simulation
from gpuledger.simulator.glance import PAST
from gpuledger.simulator.measures import measure
from gpuledger.simulator.playing import run_prepared
from gpuledger.simulator.scenario import Scenario
from gpuledger.simulator.summary import summarise

WORLD = "gpuledger"

UNKNOWN = (
    "People react to what they get. Here they ask for what they asked for, when they did, whatever decides.",
    "How long work takes is known of what ended. What was cut, or never ran, is estimated; notes say how much of it.",
    "Work that told of no checkpoints begins anew when its GPUs are taken; GPUs held unused count as work.",
    "Who waited until GPUs came would have waited for ever; who gave up gives up after as long a wait.",
)
"""What no replay of a journal can know."""


class BackTest(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a back-test.

    Args:
        past: What really happened, measured as simulations are.
        decided: The same asks, decided by what was in force.
        other: The same, decided by something else; None where nothing else was given.
        comparison: The last two beside each other: ``a`` is as it was decided.
    """

    past: Simulation
    decided: Simulation
    other: Simulation | None
    comparison: Comparison | None


def back_test(
    retold: Retold,
    other: Scenario | None,
    *,
    watch: Callable[[str, Scenario], Callable[[int], None] | None] = lambda _, __: None,
) -> BackTest:
    """Run a stretch of time again.

    Args:
        retold: What the ledger tells of it.
        other: The same scenario under another budget or another policy.
        watch: Given what is run and the scenario, returns what is told the simulated instant now and then.
    """
    told = retold.scenario
    past = summarise(measure(retold.facts, told), told, world=PAST, seed=told.seed, wall_s=0.0)
    decided = run_prepared(told, WORLD, watch=watch("as decided", told))
    if other is None:
        return BackTest(past=past, decided=decided, other=None, comparison=None)
    found = run_prepared(other, WORLD, watch=watch("under the other", other))
    return BackTest(
        past=past,
        decided=decided,
        other=found,
        comparison=compare(decided, found, told.accounts, other.accounts),
    )


def named(found: BackTest, other: str) -> tuple[Sequence[Simulation], Sequence[str]]:
    """Return the reports that there are and what each is called."""
    if found.other is None:
        return (found.past, found.decided), ("past", "as decided")
    return (found.past, found.decided, found.other), ("past", "as decided", other)


__all__ = ["UNKNOWN", "WORLD", "BackTest", "back_test", "named"]
