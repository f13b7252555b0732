"""Runs that have to leave: which group goes first."""

from tests.unit.policy.forests import run

from gpuledger.policy.victims import Ground, Victim


def test_work_that_nobody_pays_for_leaves_before_that_of_others_and_that_before_ones_own() -> None:
    grounds = [Ground.OWN, Ground.ISSUE, Ground.RATIO, Ground.UNALLOCATED]
    in_order = [Ground.UNALLOCATED, Ground.RATIO, Ground.ISSUE, Ground.OWN]
    assert sorted(grounds, key=lambda ground: ground.group) == in_order


def test_whoever_leaves_a_draining_host_leaves_for_nobody() -> None:
    leaves = Victim(run("a", gpus=1, name="r"), Ground.DRAINING)
    assert (leaves.asker, leaves.mine, leaves.theirs) == (None, None, None)
