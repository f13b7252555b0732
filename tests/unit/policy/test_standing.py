"""What stands between two cycles: moved where something changed, and kept where nothing did."""

from tests.unit.policy.forests import AT_S, account, cluster, hosts, pending, run

from gpuledger.policy.cycle import PolicyConfig
from gpuledger.policy.standing import FEW, stand
from gpuledger.policy.turnover import Turnover

CONFIG = PolicyConfig()
STATE = cluster(
    [account("a/x"), account("a/y"), account("b")],
    [pending("w", "a/x", gpus=8), pending("v", "a/y", gpus=8), pending("u", "b", gpus=8)],
    [run("a/x", gpus=8, name="busy", hosts={"h0": 8}, protected_until_s=AT_S + 7200)],
    on=hosts(8),
)
(BUSY,) = STATE.running


def test_only_lines_on_the_way_to_an_account_that_changed_are_made_anew() -> None:
    before = stand(STATE, CONFIG)
    after = before.after(Turnover(gone=(BUSY.id,)), AT_S + 1, CONFIG)
    lines, moved = (one.queues["allocated"].leaves for one in (before, after))
    assert moved["a/y"] is lines["a/y"]
    assert moved["b"] is lines["b"]
    assert moved["a/x"].contender.running_milli == 0
    assert after.state.running == ()
    assert before.state.running == (BUSY,)  # what stood before is as it was
    assert before.yard.free_milli == 0
    assert after.yard.free_milli == 8000


def test_who_waits_no_more_is_in_no_queue_and_not_told() -> None:
    after = stand(STATE, CONFIG).after(Turnover(left=("w", "u")), AT_S, CONFIG)
    assert after.waits("w") is None
    assert after.queues["allocated"].leaves.keys() == {"a/y"}
    assert [one.workload for one in after.told(AT_S).pending] == ["v"]


def test_who_waits_again_is_found_again() -> None:
    after = stand(STATE, CONFIG).after(Turnover(left=("w",)), AT_S, CONFIG)
    again = after.with_submission(pending("w", "a/x", gpus=4), AT_S, CONFIG)
    assert again is not None
    found = again.waits("w")
    assert found is not None
    assert found.gpus_milli == 4000
    assert again.with_submission(pending("w", "a/x", gpus=4), AT_S, CONFIG) is None


def test_where_the_accounts_are_others_everything_is_made_anew() -> None:
    """Nobody listed the account: with its run the account is gone, and the one above owns its work itself again."""
    state = cluster(
        [account("a")],
        [pending("w", "a", gpus=8)],
        [run("a/x", gpus=8, name="busy", hosts={"h0": 8})],
        on=hosts(8),
    )
    before = stand(state, CONFIG)
    after = before.after(Turnover(gone=(state.running[0].id,)), AT_S, CONFIG)
    assert before.tree.nodes.keys() == {"a", "a/x", "a/~own"}
    assert after.tree.nodes.keys() == {"a"}


def test_many_who_become_eligible_at_once_call_for_a_full_cycle() -> None:
    for many, answered in ((FEW, True), (FEW + 1, False)):
        late = [pending(f"late{n}", "b", eligible_at_s=AT_S + 5) for n in range(many)]
        standing = stand(cluster([account("b")], late, on=hosts(8)), CONFIG)
        assert (standing.joined(AT_S + 5, CONFIG) is not None) is answered
        assert standing.joined(AT_S + 4, CONFIG) is not None
    assert standing.joined(AT_S - 1, CONFIG) is None
