"""Cycles one after the other, of which each is told what changed; that they order what others do is a property."""

from dataclasses import replace

from tests.unit.policy.forests import AT_S, account, cluster, hosts, pending, run

from gpuledger.policy.cycle import Action, ClusterState, Cycle, PolicyConfig
from gpuledger.policy.ordering import Ordering

CONFIG = PolicyConfig()


def started(cycle: Cycle) -> dict[str, dict[str, int]]:
    return {decision.workload: dict(decision.placement or {}) for decision in cycle.decisions}


def test_what_came_and_went_in_between_counts() -> None:
    ordering = Ordering(CONFIG)
    first = run("a", gpus=8, name="first", hosts={"h0": 8}, protected_until_s=AT_S + 3600)
    second = run("a", gpus=6, name="second", hosts={"h1": 6}, protected_until_s=AT_S + 3600)
    waits = pending("waits", "a", gpus=4)
    state = cluster([account("a")], [waits], [first, second], on=hosts(8, 8))
    assert started(ordering.cycle(state)) == {}
    state = replace(state, at_s=AT_S + 1, running=(first,))
    assert started(ordering.cycle(state)) == {"waits": {"h1": 4000}}
    third = run("a", gpus=4, name="waits", hosts={"h1": 4}, protected_until_s=AT_S + 3600)
    state = replace(state, at_s=AT_S + 2, running=(first, third), pending=(pending("next", "a", gpus=2),))
    assert started(ordering.cycle(state)) == {"next": {"h1": 2000}}


def test_who_may_leave_as_time_passes_leaves() -> None:
    ordering = Ordering(CONFIG)
    busy = run("a", gpus=8, name="busy", hosts={"h0": 8}, protected_until_s=AT_S + 60)
    state = cluster([account("a", used=9000), account("b")], [pending("w", "b", gpus=8)], [busy], on=hosts(8))
    assert started(ordering.cycle(state)) == {}
    assert started(ordering.cycle(replace(state, at_s=AT_S + 60))) == {"busy": {}}
    assert started(ordering.cycle(state)) == {}  # whoever asks about an earlier instant is told of that one


def test_other_hosts_and_runs_of_which_nobody_said_where_they_are_are_looked_at_anew() -> None:
    ordering = Ordering(CONFIG)
    unsaid = run("a", gpus=4, name="unsaid", protected_until_s=AT_S + 3600)
    states: list[ClusterState] = [
        cluster([account("a")], [pending("w", "a", gpus=8)], [unsaid], on=hosts(8, 8)),
        cluster([account("a")], [pending("w", "a", gpus=8)], [unsaid], on=hosts(8)),
        cluster([account("a")], [pending("w", "a", gpus=8)], [], on=hosts(8)),
        cluster([account("a")], [pending("w", "a", gpus=8)], [unsaid], gpus=12),
        cluster([account("a")], [pending("w", "a", gpus=8)], [unsaid], gpus=8),
    ]
    for state in states:
        assert started(ordering.cycle(state)) == started(Ordering(CONFIG).cycle(state))


def test_who_starts_is_told_and_who_waits_is_not() -> None:
    waiting = [pending("first", "a", gpus=6), pending("second", "a", gpus=4), pending("third", "b", gpus=2)]
    found = Ordering(CONFIG).cycle(cluster([account("a"), account("b")], waiting, on=hosts(8)))
    assert {decision.workload for decision in found.decisions} == {"first", "third"}
    assert {decision.action for decision in found.decisions} == {Action.START}
    assert found.allocations == ()
    assert [kept.workload for kept in found.reservations] == ["second"]


def test_nobody_and_nothing() -> None:
    found = Ordering(CONFIG).cycle(cluster([], [], on=hosts(8)))
    assert (found.decisions, found.reservations) == ((), ())
