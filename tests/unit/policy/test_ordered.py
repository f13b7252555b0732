"""Orders without those who wait, in a case that can be worked out by hand."""

from tests.unit.policy.forests import account, cluster, hosts, pending

from gpuledger.policy.cycle import Action, PolicyConfig
from gpuledger.policy.ordered import ordered


def test_who_starts_is_told_and_who_waits_is_not() -> None:
    waiting = [pending("first", "a", gpus=6), pending("second", "a", gpus=4), pending("third", "b", gpus=2)]
    found = ordered(cluster([account("a"), account("b")], waiting, on=hosts(8)), PolicyConfig())
    assert {decision.workload for decision in found.decisions} == {"first", "third"}
    assert {decision.action for decision in found.decisions} == {Action.START}
    assert found.allocations == ()
    assert [kept.workload for kept in found.reservations] == ["second"]


def test_nobody_and_nothing() -> None:
    found = ordered(cluster([], [], on=hosts(8)), PolicyConfig())
    assert (found.decisions, found.reservations) == ((), ())
