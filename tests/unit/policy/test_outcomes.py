"""A decision that many share says what a decision of one's own says."""

from tests.unit.policy.forests import account, cluster, hosts, pending

from gpuledger.policy.cycle import Action, PolicyConfig, run_cycle
from gpuledger.policy.outcomes import Shared


def test_who_waits_as_others_do_is_told_the_same_in_words_of_its_own() -> None:
    queue = [pending(name, "a", gpus=4) for name in ("u", "v", "w", "x")]
    first, head, *others = run_cycle(cluster([account("a")], queue, on=hosts(4)), PolicyConfig()).decisions
    assert (first.action, head.action) == (Action.START, Action.WAIT)
    assert not isinstance(head, Shared)
    assert [type(one) for one in others] == [Shared, Shared]
    for place, one in enumerate(others, start=3):
        assert isinstance(one, Shared)
        said = one.said()
        assert one.position == said.numbers["position"] == place
        assert one == said == one
        assert hash(one) == hash((said.workload, said.action))
        assert repr(one) == repr(said)
    assert others[0] != others[1]
