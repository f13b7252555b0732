"""The state of a cycle, read from a real ledger."""

import pytest
from tests.integration.policy import stories
from tests.integration.policy.worlds import (
    CLOCK,
    HOUR,
    NOON,
    World,
    by_account,
    decided,
    event,
    started,
    submitted,
)

from gpuledger.database.engine import reading
from gpuledger.events import host, workload
from gpuledger.events.budget import PolicyChanged, ShareSet
from gpuledger.events.mapping import MappingRule
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.errors import NotFound, Refused
from gpuledger.ledger import cycles
from gpuledger.policy.reading import read_asked, read_state
from gpuledger.policy.replaying import replay
from gpuledger.policy.service import issue_cycle
from gpuledger.policy.state import PolicyConfig


def test_use_entitlement_and_demand_come_from_the_ledger(world: World) -> None:
    record = world.cycle()
    found = by_account(record)
    assert record["supply_gpus"] == 10
    assert found["c/a"]["used_gpu_ms"] == 6 * HOUR * 1000
    assert found["c/b"]["used_gpu_ms"] == 0
    assert found["c/a"]["entitled_gpu_ms"] == found["c/b"]["entitled_gpu_ms"] == 5 * 7 * 24 * HOUR * 1000
    assert (found["c/a"]["demand_gpus"], found["c/b"]["demand_gpus"]) == (6, 12)


def test_work_of_an_account_without_a_share_is_no_demand(world: World) -> None:
    world.intake.take(
        [
            event("none", NOON - 2 * HOUR, ShareSet(account="c/z", share=0, reason="test", by="test")),
            submitted("w-z", "c/z", NOON - HOUR, 2),
            submitted("w-own", "c", NOON - HOUR, 3),
        ]
    )
    found = by_account(world.cycle(dry_run=True))
    assert (found["c/z"]["demand_gpus"], found["c/~own"]["demand_gpus"]) == (0, 0)
    assert found["c"]["demand_gpus"] == 6 + 12


def test_a_workload_larger_than_the_cluster_is_no_demand(world: World) -> None:
    assert by_account(world.cycle())["c/a"]["demand_gpus"] == 6


def test_reservations_are_recorded_and_the_next_cycle_keeps_them(world: World) -> None:
    # w-b4 starts now with a minimum runtime of an hour; w-b8 needs what it has, and what w-a has.
    kept = {
        "workload": "w-b8", "hosts": {"h1": 8000}, "at": "2027-01-15T09:00:00Z", "kind": "bound", "leaving": [],
    }  # fmt: skip
    assert world.cycle()["reservations"] == [kept]
    world.intake.take([started("w-b4", NOON, 4, "h1")])
    assert world.cycle(NOON + 60)["reservations"] == [kept]
    due = world.cycle(NOON + HOUR)
    leaving = [{"workload": "w-a", "run": "1"}, {"workload": "w-b4", "run": "1"}]
    promise = {**kept, "at": "2027-01-15T09:01:00Z", "kind": "promise", "leaving": leaving}
    assert due["reservations"] == [promise]
    assert [{"workload": d["workload"], "run": d["run"]} for d in decided(due, "preempt")] == leaving
    assert world.cycle(NOON, dry_run=True)["reservations"] == [kept]


def test_a_draining_host_takes_nothing_and_sends_away_what_is_past_its_protection(world: World) -> None:
    old = host.StateChanged(cluster="c", host="h2", gpus=8, gpu_model="x", state="draining")
    world.intake.take(
        [
            event("h2", NOON - HOUR, host.Registered(cluster="c", host="h2", gpus=8, gpu_model="x")),
            submitted("w-old", "c/a", NOON - 2 * HOUR, 2), started("w-old", NOON - 2 * HOUR, 2, "h2"),
            submitted("w-new", "c/a", NOON - HOUR, 2), started("w-new", NOON - 60, 2, "h2"),
            event("old", NOON - 60, old),
        ]
    )  # fmt: skip
    record = world.cycle()
    assert record["supply_gpus"] == 10
    assert [d["workload"] for d in decided(record, "preempt")] == ["w-old"]
    assert [d["hosts"] for d in decided(record, "start")] == [{"h1": 4000}]


def test_a_cluster_of_which_every_host_drains_still_has_cycles(world: World) -> None:
    old = host.StateChanged(cluster="c", host="h1", gpus=10, gpu_model="x", state="draining")
    world.intake.take(
        [
            submitted("w-old", "c/a", NOON - 2 * HOUR, 2), started("w-old", NOON - 2 * HOUR, 2, "h1"),
            submitted("w-new", "c/a", NOON - HOUR, 2), started("w-new", NOON - 60, 2, "h1"),
            submitted("w-waits", "c/b", NOON - HOUR, 2),
            event("old", NOON - 60, old),
        ]
    )  # fmt: skip
    record = world.cycle()
    assert record["supply_gpus"] == 0
    assert [d["workload"] for d in decided(record, "preempt")] == ["w-old"]
    assert not decided(record, "start")


def test_a_model_is_the_same_in_any_spelling_and_another_model_is_no_demand(world: World) -> None:
    for name, model in (("w-X", "X"), ("w-y", "y")):
        asked = workload.Submitted(
            cluster="c", workload=name, account="c/z", user="-", gpus_milli=1000, gpu_model=model,
            minimum_runtime_s=HOUR,
        )  # fmt: skip
        world.intake.take([event(f"{name}/submitted", NOON - 60, asked), event("z", 0, ShareSet(
            account="c/z", share=9, reason="test", by="test"))])  # fmt: skip
    record = world.cycle()
    assert by_account(record)["c/z"]["demand_gpus"] == 1
    assert {d["workload"]: d["action"] for d in record["decisions"] if d["workload"] in ("w-X", "w-y")} == {
        "w-X": "start", "w-y": "wait",
    }  # fmt: skip


def test_an_unknown_cluster_is_named_with_the_known_ones(world: World) -> None:
    with pytest.raises(NotFound, match="nowhere") as caught:
        issue_cycle(world.engine, "nowhere", at_s=NOON, clock=CLOCK, calendar=Calendar())
    assert "c" in caught.value.hint


def test_a_cluster_without_gpus_says_where_to_name_them(world: World) -> None:
    with pytest.raises(Refused, match="no healthy GPUs") as caught:
        issue_cycle(world.engine, "c", at_s=HOUR, clock=CLOCK, calendar=Calendar())
    assert "budget apply" in caught.value.hint


@pytest.mark.parametrize(
    ("said", "held"),
    [
        (None, {"h1": 6000, "h2": 6000}),
        ({"h1": 4000, "h2": 8000}, {"h1": 4000, "h2": 8000}),
        ({"h1": 4000, "h2": 7000}, {"h1": 6000, "h2": 6000}),
        ({"h1": 4000, "h3": 8000}, {"h1": 6000, "h2": 6000}),
    ],
    ids=["nobody said", "said", "does not add up", "of other hosts"],
)
def test_a_run_holds_on_each_host_what_its_start_said(
    world: World, said: dict[str, int] | None, held: dict[str, int]
) -> None:
    begun = workload.Started(
        cluster="c", workload="w-12", run="1", attempt=1, gpus_milli=12_000, hosts=["h2", "h1"],
        host_gpus_milli=said,
    )  # fmt: skip
    world.intake.take(
        [
            event("h2", NOON - HOUR, host.Registered(cluster="c", host="h2", gpus=8, gpu_model="x")),
            submitted("w-12", "c/a", NOON - HOUR, 12), event("w-12/started", NOON - 60, begun),
        ]
    )  # fmt: skip
    with reading(world.engine) as reader:
        (run,) = [
            run for run in read_state(reader, "c", NOON, PolicyConfig()).running if run.workload == "w-12"
        ]
    assert run.placement == held


def test_a_later_mapping_does_not_change_what_a_cycle_was_told(world: World) -> None:
    """Of a run whose workload named no minimum runtime, the rule in force then says how long it was protected."""
    asked = workload.Submitted(cluster="c", workload="w-m", account="c/a", user="-", gpus_milli=1000)
    world.intake.take([event("w-m/submitted", NOON - 60, asked), started("w-m", NOON - 60, 1, "h1")])
    cycle = world.cycle()["cycle"]
    rule = MappingRule(account=("*",), minimum_runtime_s=7200)
    changed = PolicyChanged(policy="mapping", rules=[rule], by="test", reason="test")
    world.intake.take([event("mapping", 0, changed)])
    world.intake.take([submitted("w-late", "c/b", NOON - 60, 1)])

    def protected(vector: dict[str, int] | None) -> list[int]:
        found = read_state(reader, "c", NOON, PolicyConfig(), vector=vector)
        return [run.protected_until_s for run in found.running if run.workload == "w-m"]

    with reading(world.engine) as reader:
        recorded = cycles.find(reader, cycle)
        assert recorded is not None
        assert protected(None) == [NOON - 60 + 7200]
        assert protected(recorded.issued.sequences) == [NOON - 60 + 3600]
        assert replay(reader, cycle).ok


def test_what_runs_waits_again_for_what_it_asked_for_and_not_for_what_it_has(database_url: str) -> None:
    with stories.small_cluster(database_url) as world:
        changed = workload.Updated(cluster="c", workload="w-a", priority=3, minimum_runtime_s=20 * HOUR)
        world.take(event("w-a/updated", stories.NOON - 60, changed))
        with reading(world.engine) as reader:
            told = read_state(reader, "c", stories.NOON, PolicyConfig())
            asked = read_asked(reader, told, PolicyConfig())
    assert [run.workload for run in told.running] == ["w-a"]
    assert list(asked) == ["w-a"]
    found = asked["w-a"]
    assert (found.account, found.gpus_milli, found.gpu_model, found.priority) == ("c/a", 6000, None, 3)
    assert found.minimum_runtime_s == PolicyConfig().protection_cap_s
    assert (found.submitted_at_s, found.eligible_at_s) == (stories.NOON - HOUR, stories.NOON)
