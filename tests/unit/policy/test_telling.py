"""An answer as lines of text."""

from dataclasses import replace

from gpuledger.ledger.costs import Cost
from gpuledger.policy.counterfactual import Counterfactual, Obstacle
from gpuledger.policy.cycle import RunId
from gpuledger.policy.forgetting import Burst
from gpuledger.policy.happenings import Happening
from gpuledger.policy.quotes import Certainty
from gpuledger.policy.story import State, Story
from gpuledger.policy.telling import lines_of
from gpuledger.policy.trials import Outcome
from gpuledger.policy.waiting import Decided, Level
from gpuledger.policy.why import Ahead, Change, Why

HOUR = 3_600_000
STORY = Story(
    cluster="c",
    workload="w",
    at_s=0,
    state=State.WAITS,
    account="org/a",
    gpus_milli=8000,
    minimum_runtime_s=3600,
    eligible_at_s=0,
    happenings=(Happening(at_s=0, what="ended", text="Ended.", run="1", is_estimated=True),),
    cost=Cost(HOUR, 0, 2 * HOUR),
    open_gpu_ms=HOUR,
)


def ahead(found: Counterfactual, **keys: object) -> str:
    change = Change(found=found, **keys)  # type: ignore[arg-type]
    return "\n".join(
        lines_of(Why(story=STORY, ahead=Ahead(changes=(change,), starts_at_s=None, seen_until_s=60)))
    )


def test_what_happened_is_dated_and_estimates_are_marked() -> None:
    lines = lines_of(Why(story=STORY))
    assert lines[0] == "w on c, 8 GPUs of org/a: waits at 1970-01-01T00:00:00Z"
    assert "1970-01-01T00:00:00Z  [1] Ended. (estimated: the last evidence of life)" in lines
    assert (
        "Cost so far: 1.000 GPU-hours charged, 0.000 GPU-hours unallocated, free, 2.000 GPU-hours given back,"
        " 1.000 GPU-hours since the last tick." in lines
    )
    assert lines[-1] == "No cycle has decided about it yet: gpuledger cycle --cluster c runs one."


def test_what_was_not_looked_for_is_told() -> None:
    looked = Ahead(changes=(), starts_at_s=None, seen_until_s=60, left_out=(Obstacle.USE, Obstacle.AHEAD))
    assert looked.as_json()["left_out"] == ["use", "ahead"]
    assert (
        "Not looked for to the end, because the queue is too long for so many cycles: less use of its account,"
        " workloads that come before it." in lines_of(Why(story=STORY, ahead=looked))
    )


def test_a_protection_that_is_over_is_told_as_over_and_one_run_has_its_own() -> None:
    runs = Counterfactual(obstacle=Obstacle.RUNS, runs=(RunId("v", "1"),))
    over = ahead(runs, expected_s=0, certainty=Certainty.ESTIMATE)
    assert "Starts now if run v/1 ends, out of its protection already." in over
    later = ahead(runs, expected_s=60, certainty=Certainty.ESTIMATE)
    assert "ends, out of its protection at 1970-01-01T00:01:00Z (estimate)." in later


def test_what_if_of_what_does_not_wait_is_answered() -> None:
    told = lines_of(Why(story=replace(STORY, state=State.OVER)), what_if=True)
    assert told[-1] == "What would let it start is looked for (--what-if) only while it waits."


def test_the_decision_shows_the_ratios_from_the_root() -> None:
    levels = (
        Level(account="org", ratio="0.5", used_gpu_ms=HOUR, entitled_gpu_ms=2 * HOUR, before=()),
        Level(
            account="org/a",
            ratio=None,
            used_gpu_ms=0,
            entitled_gpu_ms=0,
            before=tuple((f"org/{n}", "0.1") for n in range(7)),
        ),
    )
    decided = Decided(
        cycle="c@0", at_s=0, action="wait", reason="Waits.", numbers={}, chain=levels, starts_by_s=60,
        certainty=Certainty.BOUND,
    )  # fmt: skip
    lines = lines_of(Why(story=STORY, decided=decided))
    assert "Cycle of 1970-01-01T00:00:00Z: wait. Waits." in lines
    assert "Starts by 1970-01-01T00:01:00Z (bound: GPUs are kept for it)." in lines
    assert lines[-2].startswith("  org: 0.5 (1.000 GPU-hours of 2.000 GPU-hours), the lowest")
    assert lines[-1].startswith("    org/a: entitled to nothing")
    assert lines[-1].endswith("2 more")


def test_what_counts_at_par_is_told_beside_use_and_entitlement() -> None:
    level = Level(
        account="org",
        ratio="0.954451",
        used_gpu_ms=0,
        entitled_gpu_ms=HOUR,
        before=(),
        par_gpu_ms=1680 * HOUR,
    )
    decided = Decided(cycle="c@0", at_s=0, action="wait", reason="Waits.", numbers={}, chain=(level,))
    line = lines_of(Why(story=STORY, decided=decided))[-1]
    assert "(0.000 GPU-hours of 1.000 GPU-hours, and 1,680.000 GPU-hours beside both at par)" in line


def test_a_share_of_0_is_told_to_come_last_and_unallocated_work_to_have_an_order_of_its_own() -> None:
    shown = {"ratio": "0.000000", "used_gpu_ms": 0, "entitled_gpu_ms": HOUR}
    poor = Level(account="org/z", before=(("org/b", "0.500000"),), share_ppm=0, **shown)  # type: ignore[arg-type]
    alone = Level(account="org/z", before=(), share_ppm=0, **shown)  # type: ignore[arg-type]
    rich = Level(account="org/a", before=(), **shown)  # type: ignore[arg-type]

    def told(level: Level, minimum_runtime_s: int | None = 3600) -> list[str]:
        decided = Decided(cycle="c@0", at_s=0, action="wait", reason="Waits.", numbers={}, chain=(level,))
        return lines_of(Why(story=replace(STORY, minimum_runtime_s=minimum_runtime_s), decided=decided))[-2:]

    other = "That orders funded work. Unallocated work comes after it, by least unallocated use / share."
    level, last = told(poor)
    assert level.endswith("with a share of 0, which comes last: after org/b (0.500000)")
    assert told(alone)[0].endswith("with a share of 0, which comes last")
    assert last == told(rich, 0)[-1] == other
    assert other not in [*told(rich), *told(rich, None)]


def test_each_obstacle_is_a_sentence() -> None:
    use = Counterfactual(obstacle=Obstacle.USE, account="org/a", gpu_ms=37 * HOUR, outcome=Outcome.PROMISE)
    burst = Burst(0, 60, 5 * HOUR, 600, 660)
    told = ahead(use, expected_s=600, certainty=Certainty.ESTIMATE, bursts=(burst,) * 7)
    assert (
        "Is promised GPUs now, and starts after the grace, if the window's use of org/a falls by 37.000 GPU-hours,"
        " forgotten, without new use, at 1970-01-01T00:10:00Z (estimate)." in told
    )
    assert "5.000 GPU-hours used 1970-01-01T00:00:00Z" in told
    assert "and 2 later bursts" in told
    runs = Counterfactual(obstacle=Obstacle.RUNS, runs=(RunId("v", "1"), RunId("v", "2")), eligible=True)
    assert "Once it is eligible: starts now if runs v/1, v/2 end." in ahead(runs)
    first = Counterfactual(obstacle=Obstacle.AHEAD, workloads=("v",))
    assert "Starts now if workload v does not come before it." in ahead(first)
    more = Counterfactual(obstacle=Obstacle.GPUS, gpus_milli=16_000, hosts=2, gpu_model="h100")
    assert "Starts now if 16 GPUs more of model h100 are free on 2 hosts." in ahead(more)
    anywhere = Counterfactual(obstacle=Obstacle.GPUS, gpus_milli=1000, hosts=1)
    assert "Starts now if 1 GPU more is free." in ahead(anywhere)
    eligible = Counterfactual(obstacle=Obstacle.ELIGIBILITY)
    assert "Starts now if it is eligible" in ahead(eligible)
    assert "it does not start before 1970-01-01T00:01:00Z" in ahead(eligible)
