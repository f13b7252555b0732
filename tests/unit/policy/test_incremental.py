"""What the next event is answered from."""

import pytest
from tests.unit.policy.forests import AT_S, GPU_HOUR, account, cluster, hosts, pending, run

from gpuledger.kernel.errors import Refused
from gpuledger.policy.cycle import Action, PolicyConfig, run_cycle
from gpuledger.policy.incremental import carried_out, prepare, with_submission

CONFIG = PolicyConfig()
STATE = cluster(
    [account("a"), account("b")],
    [pending("w", "a", gpus=8, hours=2), pending("v", "b", gpus=16)],
    [run("b", gpus=8, name="busy", hosts={"h1": 8}, protected_until_s=AT_S + 7200)],
    on=hosts(8, 8),
)


def test_what_a_cycle_started_runs_and_holds_and_its_reservations_stand() -> None:
    cycle = run_cycle(STATE, CONFIG)
    after = carried_out(STATE, cycle, CONFIG)
    started = after.running[-1]
    assert (started.workload, dict(started.placement), started.run) == ("w", {"h0": 8000}, "")
    assert (started.started_at_s, started.protected_until_s) == (AT_S, AT_S + 7200)
    assert [waiting.workload for waiting in after.pending] == ["v"]
    assert [(told.used_gpu_ms, told.held_gpu_ms) for told in after.accounts] == [(16 * GPU_HOUR,) * 2, (0, 0)]
    assert after.reservations == cycle.reservations != ()


def test_a_submission_is_decided_beside_what_was_ordered() -> None:
    prepared = prepare(STATE, CONFIG)
    after, cycle = prepared.submitted(pending("late", "a", gpus=4, submitted_at_s=AT_S + 20), AT_S + 20)
    decided = {decision.workload: decision for decision in cycle.decisions}
    assert cycle.at_s == AT_S + 20
    assert decided["late"].action is Action.WAIT
    assert "w" not in decided
    assert after.cycle == cycle


def test_a_second_event_is_answered_after_the_first() -> None:
    prepared = prepare(cluster([account("a")], on=hosts(8)), CONFIG)
    prepared, first = prepared.submitted(pending("w", "a", gpus=6), AT_S + 1)
    _, second = prepared.submitted(pending("v", "a", gpus=6), AT_S + 2)
    assert [decision.action for decision in first.decisions] == [Action.START]
    assert [(d.workload, d.action) for d in second.decisions] == [("v", Action.WAIT)]


def test_who_waits_already_is_not_submitted_again() -> None:
    with pytest.raises(Refused, match="pending twice"):
        with_submission(STATE, pending("w", "a"), AT_S)
    with pytest.raises(Refused, match="pending twice"):
        prepare(STATE, CONFIG).submitted(pending("v", "b"), AT_S)
