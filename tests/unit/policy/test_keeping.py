"""A gang of unallocated work beside small work that always waits: it starts where hosts are kept for it, else never."""

from dataclasses import replace

import pytest
from tests.unit.policy.forests import AT_S, cluster, forest, hosts, pending
from tests.unit.policy.forests import account as of

from gpuledger.policy.contenders import unallocated
from gpuledger.policy.cycle import Action, ClusterState, Decision, PolicyConfig, run_cycle
from gpuledger.policy.fair_share import entries
from gpuledger.policy.keeping import kept_for, leaves_of
from gpuledger.policy.lines import Line, line_up
from gpuledger.policy.state import PendingWorkload, RunningRun

HOUR_S, TICK_S, LONGEST_S = 3600, 300, 4200
KEEPS_AFTER_S = 6 * HOUR_S
NEVER, KEEPS = PolicyConfig(), PolicyConfig(unallocated_keeps_after_s=KEEPS_AFTER_S)
SMALL = 20
"""So many small ones always wait."""


class Crowd:
    """Two hosts of 8 GPUs; a gang of 16, and single GPUs of somebody else, which run for 40 to 70 minutes."""

    def __init__(self, *, small_hours: int) -> None:
        self.gang = pending("gang", "a", gpus=16, hours=0, submitted_at_s=AT_S, eligible_at_s=AT_S)
        self.small_hours, self.count = small_hours, 0
        self.waiting: list[PendingWorkload] = []
        self.running: dict[str, tuple[RunningRun, int]] = {}
        """Each run, and when it ends."""

    def state(self, at_s: int) -> ClusterState:
        self.running = {name: kept for name, kept in self.running.items() if at_s < kept[1]}
        while len(self.waiting) < SMALL:
            self.count += 1
            name = f"s{self.count:05}"
            self.waiting.append(
                pending(name, "b", hours=self.small_hours, submitted_at_s=at_s, eligible_at_s=at_s)
            )
        runs = [run for run, _ in self.running.values()]
        there = cluster([of("a"), of("b")], (self.gang, *self.waiting), runs, on=hosts(8, 8))
        return replace(there, at_s=at_s)

    def waits_s(self, config: PolicyConfig, *, hours: int) -> int | None:
        """Return how long the gang waits; None when it still does after so many hours."""
        for at_s in range(AT_S, AT_S + hours * HOUR_S, TICK_S):
            for decision in run_cycle(self.state(at_s), config).decisions:
                if isinstance(decision, Decision) and decision.action is Action.START:
                    if decision.workload == "gang":
                        return at_s - AT_S
                    self.start(decision, at_s, config)
        return None

    def start(self, decision: Decision, at_s: int, config: PolicyConfig) -> None:
        assert decision.klass is not None
        one = next(one for one in self.waiting if one.workload == decision.workload)
        self.waiting.remove(one)
        run, _ = one.begun("1", at_s, klass=decision.klass, placement=decision.placement, config=config)
        self.running[one.workload] = run, at_s + 2400 + 600 * (int(one.workload[1:]) % 4)


def filled(*, small_hours: int = 0) -> Crowd:
    """The same when the small ones were first: the gang comes to hosts that are full."""
    crowd = Crowd(small_hours=small_hours)
    crowd.gang = replace(crowd.gang, eligible_at_s=AT_S + TICK_S)
    return crowd


def test_beside_small_work_that_always_waits_a_gang_never_starts() -> None:
    assert filled().waits_s(NEVER, hours=48) is None


def test_once_it_waited_for_as_long_as_is_said_it_starts_when_the_longest_of_the_others_is_over() -> None:
    waits_s = filled().waits_s(KEEPS, hours=48)
    assert waits_s is not None
    assert KEEPS_AFTER_S <= waits_s <= KEEPS_AFTER_S + LONGEST_S + 3 * TICK_S


def test_nothing_is_kept_from_funded_work() -> None:
    """Account b's work has a minimum runtime now: the gang takes what that leaves, which is nothing."""
    assert filled(small_hours=1).waits_s(KEEPS, hours=24) is None


def heads(*waiting: PendingWorkload) -> list[Line]:
    tree = forest({"a": {}, "b": {}})
    there = entries(tree, waiting, KEEPS)["unallocated"]
    return [*leaves_of(line_up(unallocated(tree), lambda leaf: Line(leaf, there.get(leaf.path, ()))))]


def test_of_those_who_are_first_in_their_accounts_it_is_who_has_waited_longest() -> None:
    first = pending("first", "a", hours=0, eligible_at_s=50, priority=1)
    older = pending("older", "a", hours=0, eligible_at_s=10)
    other = pending("other", "b", hours=0, eligible_at_s=40)
    assert kept_for(heads(first, older, other), KEEPS_AFTER_S + 60, KEEPS) == other


@pytest.mark.parametrize(("config", "waited_s"), [(NEVER, 10 * KEEPS_AFTER_S), (KEEPS, KEEPS_AFTER_S - 1)])
def test_nothing_is_kept_before_that_or_where_it_is_not_wanted(config: PolicyConfig, waited_s: int) -> None:
    waits = heads(pending("w", "a", hours=0))
    assert kept_for(waits, waited_s, config) is None
    assert kept_for([], waited_s, config) is None
