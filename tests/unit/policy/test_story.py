"""A workload's story, from facts alone."""

from typing import Any

import pytest

from gpuledger.events import workload as events
from gpuledger.events.decision import DecisionMade
from gpuledger.events.registry import Fact
from gpuledger.kernel.clock import instant
from gpuledger.ledger.facts import Known
from gpuledger.ledger.mapping import AS_GIVEN
from gpuledger.policy.state import PolicyConfig
from gpuledger.policy.story import State, Story, Told, preempted_runs, tell

HOUR = 3600


def fact(at_s: int, kind: type[Fact], **keys: Any) -> Known:  # noqa: ANN401
    data = kind(cluster="c", workload="w", **keys)
    return Known(data, at_s, "test", repr((at_s, data)).encode())


def submitted(at_s: int = 0, **keys: Any) -> Known:  # noqa: ANN401
    given = {"account": "org/a", "user": "-", "gpus_milli": 8000, "minimum_runtime_s": HOUR, **keys}
    return fact(at_s, events.Submitted, **given)


def started(at_s: int, run: str = "1", attempt: int = 1, **keys: Any) -> Known:  # noqa: ANN401
    given = {"gpus_milli": 8000, "hosts": ["h1"], **keys}
    return fact(at_s, events.Started, run=run, attempt=attempt, **given)


def admitted(at_s: int, klass: str = "allocated", attempt: int = 1, **keys: Any) -> Known:  # noqa: ANN401
    hold = 8000 * HOUR if klass == "allocated" else 0
    given = {"account": "org/a", "gpus_milli": 8000, "hold_gpu_ms": hold, "reason": "because", **keys}
    return fact(at_s, DecisionMade, klass=klass, attempt=attempt, **given)


def story(
    *known: Known, at_s: int = 10**6, ticked_s: int | None = None, why: dict[str, str] | None = None
) -> Story:
    return tell("c", "w", at_s, Told(known, AS_GIVEN, ticked_s, why or {}), PolicyConfig())


def told(found: Story) -> list[tuple[int, str]]:
    return [(happening.at_s, happening.what) for happening in found.happenings]


def text_of(found: Story, what: str) -> str:
    return next(happening.text for happening in found.happenings if happening.what == what)


def test_the_last_checkpoint_says_how_to_go_on_from_it_or_from_the_one_that_says_so() -> None:
    first, second = (fact(at_s, events.Checkpointed, run="1", restore="(aside)") for at_s in (1000, 2000))
    last = fact(3000, events.Checkpointed, run="1")
    known = (submitted(0), started(700), first, second)
    restores = {first.digest: "s3://ckpt/1", second.digest: "s3://ckpt/2"}

    def text(*facts: Known, restores: dict[bytes, str]) -> str:
        said = Told(facts, AS_GIVEN, restores=restores)
        return text_of(tell("c", "w", 10**6, said, PolicyConfig()), "checkpointed")

    saved = "Saved its work, for the last time so far."
    assert text(*known, restores=restores) == f"{saved} To go on from it: s3://ckpt/2"
    assert text(*known, last, restores=restores) == (
        f"{saved} To go on from 1970-01-01T00:33:20Z: s3://ckpt/2"
    )
    assert text(*known, restores={}) == saved  # nobody said, or it was erased


def test_a_workload_from_submission_to_its_end() -> None:
    found = story(
        submitted(0, time_limit_s=3 * HOUR, priority=2, gpu_model="h100", eligible_at=instant(600)),
        admitted(650, expires_at=instant(1550)),
        started(700),
        fact(800, events.Ready, run="1"),
        fact(1000, events.Checkpointed, run="1"),
        fact(2000, events.Checkpointed, run="1"),
        fact(3000, events.Ended, run="1", reason="failed", exit="1"),
    )
    assert found.state is State.OVER
    assert told(found) == [
        (0, "submitted"), (600, "eligible"), (650, "admitted"), (700, "started"), (800, "ready"),
        (2000, "checkpointed"), (3000, "ended"),
    ]  # fmt: skip
    assert text_of(found, "submitted") == (
        "Submitted for org/a: 8 GPUs, model h100, minimum runtime 1 h, limit 3 h, priority 2 within its account."
    )
    assert "protected until 1970-01-01T01:11:40Z" in text_of(found, "started")
    assert text_of(found, "ended") == "Ended after 38 min 20 s: failed, exit 1."


def test_where_it_stands() -> None:
    assert story(submitted(), at_s=10).state is State.WAITS
    assert story(submitted(eligible_at=instant(600)), at_s=10).state is State.NOT_ELIGIBLE
    assert story(submitted(), started(5), at_s=10).state is State.RUNS
    cancelled = story(submitted(), fact(9, events.Ended, reason="cancelled"), at_s=10)
    assert (cancelled.state, text_of(cancelled, "ended")) == (
        State.OVER,
        "Over before it started: cancelled.",
    )


def test_a_run_that_was_not_funded_says_why_and_is_free() -> None:
    found = story(
        submitted(),
        admitted(5, "unallocated", reason="org is hard and has 0 left"),
        started(6, klass="unallocated"),
    )
    assert text_of(found, "not funded") == (
        "Not funded, attempt 1, so it may run unallocated: org is hard and has 0 left."
    )
    assert "uncharged and preemptible from the outset" in text_of(found, "started")


def test_an_imported_run_is_protected_by_its_minimum_runtime() -> None:
    assert "by its minimum runtime (nobody admitted it)" in text_of(
        story(submitted(), started(100)), "started"
    )
    # Nobody submitted it: the built-in rule of the mapping gives it an hour, and the policy keeps to that.
    assert "protected until 1970-01-01T01:01:40Z by its minimum runtime" in text_of(
        story(started(100, account="org/a")), "started"
    )
    free = story(submitted(minimum_runtime_s=0), started(100, klass="allocated"))
    assert "without protection" in text_of(free, "started")


def test_a_preemption_names_for_whom_and_the_workload_waits_again() -> None:
    known = [
        submitted(), started(100), fact(5000, events.Preempted, run="1", reason="preempted"),
        started(6000, "2", 2), fact(7000, events.Requeued, run="2", reason="requeued by its user"),
    ]  # fmt: skip
    found = story(*known, why={"1": "Leaves for w2 of account org/b."})
    assert told(found) == [
        (0, "submitted"), (100, "started"), (5000, "preempted"), (5000, "waits again"), (6000, "started"),
        (7000, "requeued"), (7000, "waits again"),
    ]  # fmt: skip
    assert text_of(found, "preempted") == "Preempted after 1 h 21 min: Leaves for w2 of account org/b."
    assert preempted_runs(known) == [("1", 5000)]
    assert "no recorded cycle told it to leave" in text_of(story(*known), "preempted")


def test_of_an_order_that_was_only_repeated_the_comparison_is_that_of_the_cycle_that_gave_it() -> None:
    for_whom = "Leaves for w2 of account org/b, which asks for 8 GPUs: "

    def announced(at_s: int, reason: str, **keys: Any) -> Known:  # noqa: ANN401
        return fact(
            at_s, events.PreemptionAnnounced, run="1", leaves_at=instant(at_s + 60), reason=reason, **keys
        )

    def text(*notices: Known, why: str = f"{for_whom}an earlier cycle decided it.") -> str:
        stop = fact(5000, events.Preempted, run="1", reason="preempted")
        return text_of(story(submitted(), started(100), *notices, stop, why={"1": why}), "preempted")

    compared = announced(4900, f"{for_whom}org/a exceeds org/b.")
    other = announced(4800, "Leaves for w3 of account org/c, which asks for 8 GPUs: org/a exceeds org/c.")
    foreseen = announced(4950, f"{for_whom}it may.", foreseen=True)
    assert text(other, compared, foreseen).endswith(f": {for_whom}org/a exceeds org/b.")
    assert text(other).endswith(": an earlier cycle decided it.")
    assert text(compared, why=f"{for_whom}reserved.").endswith(f": {for_whom}reserved.")


def test_what_a_run_was_told_is_told() -> None:
    notice = fact(
        4000,
        events.PreemptionAnnounced,
        run="1",
        leaves_at=instant(4060),
        reason="Leaves for w2.",
        asker="w2",
    )
    foreseen = fact(
        3000, events.PreemptionAnnounced, run="1", leaves_at=instant(4060), reason="May.", foreseen=True
    )
    found = story(submitted(), started(100), foreseen, notice)
    assert told(found)[2:] == [(3000, "preemption foreseen"), (4000, "preemption announced")]
    assert text_of(found, "preemption announced") == (
        "Leaves for w2. Its GPUs are expected back at 1970-01-01T01:07:40Z."
    )


def test_changes_of_class_and_size_and_pauses_are_told() -> None:
    found = story(
        submitted(), started(100),
        fact(200, events.Suspended, run="1"), fact(300, events.Resumed, run="1"),
        fact(400, events.Resized, run="1", gpus_milli=4000, hosts=["h1"]),
        fact(500, events.ClassChanged, run="1", klass="unallocated", reason="no budget"),
    )  # fmt: skip
    assert told(found)[2:] == [
        (200, "suspended"), (300, "resumed"), (400, "resized"), (500, "class changed"),
    ]  # fmt: skip
    assert "no budget" in text_of(found, "class changed")
    assert text_of(found, "resized") == "Resized from 8 GPUs to 4 GPUs."


def test_an_estimated_end_is_marked() -> None:
    end = fact(900, events.Ended, run="1", reason="lost", estimated=True)
    happening = story(submitted(), started(100), end).happenings[-1]
    assert (happening.what, happening.is_estimated) == ("ended", True)
    assert happening.as_json()["estimated"] is True


@pytest.mark.parametrize(("extends", "what"), [("allocated", "renewed"), ("unallocated", "not renewed")])
def test_slices_beyond_the_protection_are_told(extends: str, what: str) -> None:
    slices = admitted(
        4000, extends, extends_from=instant(4000), hold_gpu_ms=8000 * 900 if extends == "allocated" else 0
    )
    assert (4000, what) in told(story(submitted(), admitted(90), started(100), slices))


def test_the_cost_counts_what_is_not_booked_yet_of_an_open_run() -> None:
    found = story(submitted(), started(100), at_s=1100, ticked_s=500)
    assert found.cost == (8000 * 400, 0, 0)
    assert found.open_gpu_ms == 8000 * 600
    assert found.as_json()["cost"]["not_booked_yet_gpu_hours"] == "1.333"
    assert story(submitted(), started(100), fact(200, events.Ended, run="1", reason="x")).open_gpu_ms == 0


def test_a_run_that_nobody_submitted_has_a_story_too() -> None:
    found = story(started(100, account="org/z"))
    assert (found.account, found.gpus_milli, found.minimum_runtime_s) == ("org/z", 8000, None)


def test_what_was_changed_after_the_end_is_no_part_of_the_story_and_shown_as_lost() -> None:
    known = [submitted(), started(60), fact(120, events.Ended, run="1", reason="completed")]
    late = fact(180, events.Updated, account="org/other")
    found = story(*known, late)
    assert [one.fact for one in found.superseded] == [late]
    assert told(found) == told(story(*known))
