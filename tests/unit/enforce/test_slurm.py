"""Slurm's settings, out of a cycle."""

from hypothesis import given
from hypothesis import strategies as st
from tests.unit.enforce.slurms import NAMED, account, job, seen, user
from tests.unit.enforce.told import TREE, facts, leaves, record, run, waits

from gpuledger.enforce.config import Budgets, Order, Slurm, Unallocated
from gpuledger.enforce.plan import diff
from gpuledger.enforce.slurm import draft
from gpuledger.enforce.slurm_seen import Node, Quality, Seen, Usage

CYCLE = record(allocations=TREE)
NOTHING = Slurm(shares=False)
BUDGETS = Slurm(shares=False, budgets=Budgets())
FREE = Slurm(shares=False, unallocated=Unallocated())


def limited(left_gpu_ms: dict[str, int], now: str, used: int = 0, running: int = 0) -> tuple[str | None, str]:
    """Return what the limit of account a is, and what it is to be."""
    told = facts(CYCLE, left_gpu_ms=left_gpu_ms)
    slurm = seen(account("a", gpu_minutes=now), usage={"a": Usage(used, running)})
    (target,) = draft(told, slurm, NAMED, BUDGETS, {}).targets
    return target.now, target.wanted


def test_shares_are_what_is_issued_and_the_command_says_where() -> None:
    targets = draft(facts(CYCLE), seen(account("a", "5"), account("b", "10500")), NAMED, Slurm(), {}).targets

    assert [(t.key, t.now, t.wanted) for t in targets] == [
        ("account a: fairshare", "5", "6000"), ("account b: fairshare", "10500", "10500"),
    ]  # fmt: skip
    assert (
        targets[0].action.shown == "sacctmgr -i modify account where name=a cluster=west set fairshare=6000"
    )
    assert targets[0].sentence == "account a: fairshare from 5 to 6000, 6 GPUs are issued to org/a"
    assert [
        change.key
        for change in diff("c", draft(facts(CYCLE), seen(account("a")), NAMED, Slurm(), {}), {}).changes
    ]


def test_a_limit_lies_above_what_was_used_and_what_runs_by_what_is_left() -> None:
    assert limited({"org/a": 90 * 60_000}, "", used=10, running=30) == ("", "130")
    assert limited({"org/a": -1}, "", used=1, running=0) == ("", "1")


def test_a_limit_is_lowered_at_once_and_raised_only_beyond_the_slack() -> None:
    left = {"org/a": 100 * 60_000}
    assert limited(left, "101") == ("101", "100")
    assert limited(left, "40") == ("40", "40")
    assert limited(left, "39") == ("39", "100")


@given(st.integers(0, 10**6), st.integers(0, 10**6), st.integers(0, 10**6), st.integers(0, 3 * 10**6))
def test_no_limit_lets_more_through_than_is_left(left: int, used: int, running: int, now: int) -> None:
    """Slurm starts a job when used + running + the job <= the limit (``safe``)."""
    _, wanted = limited({"org/a": left * 60_000}, str(now), used=used, running=running)
    assert int(wanted) - used - running <= left


def test_an_account_that_is_hard_no_more_loses_the_limit_that_was_set_and_no_other() -> None:
    slurm = seen(account("a", gpu_minutes="50"), account("b", gpu_minutes="70"))
    (target,) = draft(facts(CYCLE), slurm, NAMED, BUDGETS, {"account a: GPU-minutes": ("50",)}).targets

    assert (target.key, target.now, target.wanted) == ("account a: GPU-minutes", "50", "")
    assert target.action.shown.endswith("set GrpTRESMins=gres/gpu=-1")


def test_no_limit_is_set_that_would_end_running_jobs() -> None:
    told = draft(facts(CYCLE, left_gpu_ms={"org/a": 1}), seen(account("a"), safe=False), NAMED, BUDGETS, {})
    assert told.targets == ()
    assert "would end running jobs" in told.notes[0]


def test_the_free_qos_is_made_once_with_all_that_it_needs() -> None:
    slurm = seen(
        account("a"),
        user("u", "a", "normal"),
        user("v", "z"),
        qos=[Quality("normal", frozenset(), "cluster", "1")],
    )
    targets = draft(facts(CYCLE), slurm, NAMED, FREE, {}).targets

    assert [(t.key, t.now, t.wanted) for t in targets] == [
        ("qos unallocated: usage factor", None, "0"),
        ("qos unallocated: preempt mode", None, "requeue"),
        ("qos normal: may preempt unallocated", "no", "yes"),
        ("account a: may use unallocated", "no", "yes"),
        ("user u of account a: may use unallocated", "no", "yes"),
    ]
    assert [t.action.shown for t in targets] == [
        "sacctmgr -i add qos unallocated set UsageFactor=0 PreemptMode=requeue",
        "sacctmgr -i modify qos where name=unallocated set PreemptMode=requeue",
        "sacctmgr -i modify qos where name=normal set preempt+=unallocated",
        "sacctmgr -i modify account where name=a cluster=west set qos+=unallocated",
        "sacctmgr -i modify user where name=u account=a cluster=west set qos+=unallocated",
    ]


def test_the_free_qos_that_is_there_is_left_as_it_is_and_charged_again_is_a_change() -> None:
    normal = Quality("normal", frozenset({"unallocated"}), "cluster", "1.000000")
    free = Quality("unallocated", frozenset(), "REQUEUE", "0.000000")
    associations = account("a", qos=["unallocated"]), account("b", qos=["unallocated"])
    assert (
        diff("c", draft(facts(CYCLE), seen(*associations, qos=[normal, free]), NAMED, FREE, {}), {}).changes
        == ()
    )

    charged = free._replace(usage_factor="0.500000")
    (change,) = diff(
        "c", draft(facts(CYCLE), seen(*associations, qos=[normal, charged]), NAMED, FREE, {}), {}
    ).changes
    assert (change.key, change.now, change.wanted) == ("qos unallocated: usage factor", "0.5", "0")


def test_a_qos_that_is_not_there_is_told() -> None:
    told = draft(facts(CYCLE), seen(), NAMED, FREE, {})
    assert told.notes == ("qos normal: there is none, so nothing is preempted for it",)


def test_only_what_is_switched_on_is_touched() -> None:
    cycle = record(waits("1-1000", 1), leaves("2-1000", "1000"), allocations=TREE)
    told = facts(
        cycle, run("2-1000", "1000", protected_for_s=0), left_gpu_ms={"org/a": 1}, draining={"n": True}
    )
    jobs = [job("1", 5), job("2", 5, state="RUNNING")]
    slurm = seen(account("a"), jobs=jobs, nodes=[Node("n", "idle", "none")])
    everything = Slurm(order=Order(), budgets=Budgets(), unallocated=Unallocated(), hosts=True, preempt=True)

    assert draft(told, slurm, NAMED, NOTHING, {}).targets == ()
    fields = [t.field for t in draft(told, slurm, NAMED, everything, {}).targets]
    assert fields == [
        "usage factor", "preempt mode", "may use unallocated", "fairshare", "GPU-minutes", "state", "priority", "run",
    ]  # fmt: skip


def test_an_account_that_slurm_does_not_have_is_passed_over() -> None:
    assert (
        draft(facts(CYCLE), Seen("west", limits_are_safe=True), NAMED, Slurm(budgets=Budgets()), {}).targets
        == ()
    )
