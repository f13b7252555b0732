"""What came and went between two cycles."""

import pytest
from tests.unit.policy.forests import AT_S, GPU_HOUR, account, cluster, hosts, pending, run

from gpuledger.kernel.errors import Refused
from gpuledger.policy.cycle import PolicyConfig, RunId, run_cycle
from gpuledger.policy.turnover import NO_TURNOVER, Turnover, starts_of, with_turnover

CONFIG = PolicyConfig()
STATE = cluster(
    [account("a"), account("b")],
    [pending("w", "a", gpus=8, hours=2), pending("v", "b", gpus=16)],
    [run("b", gpus=8, name="busy", hosts={"h1": 8}, protected_until_s=AT_S + 7200)],
    on=hosts(8, 8),
)
(BUSY,) = STATE.running


def test_what_starts_runs_without_a_name_waits_no_more_and_holds_its_gpus() -> None:
    waiting = {one.workload: one for one in STATE.pending}
    starts = starts_of(run_cycle(STATE, CONFIG), waiting.get, CONFIG)
    assert [(one.id, dict(one.placement)) for one in starts.come] == [(RunId("w", ""), {"h0": 8000})]
    assert (starts.left, starts.gone) == (("w",), ())
    assert starts.held_gpu_ms == {"a": 16 * GPU_HOUR}
    assert starts.holding_gpu_ms == {"w": 16 * GPU_HOUR}


def test_runs_that_are_gone_leave_their_gpus_and_what_was_set_aside_for_them() -> None:
    waiting = {one.workload: one for one in STATE.pending}
    begun = with_turnover(STATE, starts_of(run_cycle(STATE, CONFIG), waiting.get, CONFIG))
    over = Turnover(gone=(RunId("w", ""),), left=("v",), held_gpu_ms={"a": -16 * GPU_HOUR})
    after = with_turnover(begun, over)
    assert after.running == STATE.running
    assert after.pending == ()
    assert after.accounts == STATE.accounts


def test_a_run_that_is_another_takes_the_place_of_what_it_was() -> None:
    other = run("b", gpus=8, name="busy", hosts={"h1": 8}, protected_until_s=AT_S + 60)
    after = with_turnover(STATE, Turnover(gone=(BUSY.id,), come=(other,)))
    assert after.running == (other,)


def test_nothing_is_otherwise_without_turnover() -> None:
    assert not NO_TURNOVER
    assert with_turnover(STATE, NO_TURNOVER) == STATE
    assert Turnover(left=("w",))


def test_nobody_sets_aside_less_than_nothing() -> None:
    with pytest.raises(Refused, match="used_gpu_ms = -1"):
        with_turnover(STATE, Turnover(gone=(BUSY.id,), held_gpu_ms={"b": -1}))
