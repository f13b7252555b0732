"""Orders of the newest cycle, for schedulers that ask for them over HTTP."""

from tests.integration.policy.worlds import HOUR, NOON, World, event, started

from gpuledger.database.engine import reading
from gpuledger.events import host, workload
from gpuledger.ledger import store
from gpuledger.policy.directives import Directives, directives
from gpuledger.policy.telling import lines_of
from gpuledger.policy.why import why


def test_starts_name_their_hosts_and_preemptions_when_to_be_gone(world: World) -> None:
    with reading(world.engine) as reader:
        assert directives(reader, "c", now_s=NOON) is None
    first = world.cycle()
    with reading(world.engine) as reader:
        found = directives(reader, "c", now_s=NOON)
        assert found is not None
        assert (found.cycle, found.at_s, found.preemptions) == (first["cycle"], NOON, [])
        assert [(start["workload"], start["hosts"]) for start in found.starts] == [("w-b4", {"h1": 4000})]
        assert directives(reader, "c", now_s=NOON, after=found.cursor) is None
        assert directives(reader, "c", now_s=NOON - 1) is None
    world.intake.take([started("w-b4", NOON, 4, "h1")])
    world.cycle(NOON + HOUR)
    with reading(world.engine) as reader:
        due = directives(reader, "c", now_s=NOON + HOUR, after=found.cursor)
    assert due is not None
    assert due.cursor > found.cursor
    assert due.starts == []
    assert [(one["workload"], one["run"], one["leave_by"]) for one in due.preemptions] == [
        ("w-a", "1", "2027-01-15T09:01:00Z"), ("w-b4", "1", "2027-01-15T09:01:00Z"),
    ]  # fmt: skip
    world.cycle(NOON + HOUR + 60)
    with reading(world.engine) as reader:
        again = directives(reader, "c", now_s=NOON + HOUR + 60, after=due.cursor)
    assert again is not None
    assert [one["leave_by"] for one in again.preemptions] == ["2027-01-15T09:01:00Z"] * 2


def test_who_cannot_go_on_later_is_told_that_it_ends(world: World) -> None:
    asked = workload.Updated(cluster="c", workload="w-a", resumable=False)
    world.intake.take([event("u", NOON - 60, asked)])
    world.cycle()
    world.intake.take([started("w-b4", NOON, 4, "h1")])
    world.cycle(NOON + HOUR)
    told = ordered(world, NOON + HOUR).preemptions
    assert [(one["workload"], one["ends"]) for one in told] == [("w-a", True), ("w-b4", False)]
    with reading(world.engine) as reader:
        known = [fact.data for _, fact in store.facts_of(reader, "c", ["w-a", "w-b4"])]
        answer = why(reader, "w-a", cluster="c", at_s=NOON + HOUR)
    announced = [data for data in known if isinstance(data, workload.PreemptionAnnounced)]
    assert {(data.workload, data.ends) for data in announced} == {("w-a", True), ("w-b4", False)}
    assert "It cannot go on later, and ends then." in "\n".join(lines_of(answer))


def ordered(world: World, now_s: int, *, stale_after_s: int = 600) -> Directives:
    with reading(world.engine) as reader:
        found = directives(reader, "c", now_s=now_s, stale_after_s=stale_after_s)
    assert found is not None
    return found


def test_a_cycle_that_is_too_old_orders_nothing_and_says_so(world: World) -> None:
    world.cycle()
    fresh = ordered(world, NOON + 600)
    assert (fresh.stale, [one["workload"] for one in fresh.starts]) == (False, ["w-b4"])
    old = ordered(world, NOON + 601)
    assert (old.stale, old.at_s, old.starts, old.preemptions) == (True, NOON, [], [])
    assert ordered(world, NOON + 601, stale_after_s=601).starts == fresh.starts


def test_what_runs_already_is_not_started_again(world: World) -> None:
    world.cycle()
    world.intake.take([started("w-b4", NOON + 5, 4, "h1")])
    assert ordered(world, NOON + 10).starts == []


def test_what_was_cancelled_or_has_run_meanwhile_is_not_started(world: World) -> None:
    world.cycle()
    assert [one["workload"] for one in ordered(world, NOON + 10).starts] == ["w-b4"]
    off = workload.Ended(cluster="c", workload="w-b4", reason="cancelled")
    world.intake.take([event("off", NOON + 11, off)])
    assert ordered(world, NOON + 12).starts == []


def test_what_is_over_already_is_not_started_again(world: World) -> None:
    world.cycle()
    over = workload.Ended(cluster="c", workload="w-b4", run="1", reason="completed")
    world.intake.take([started("w-b4", NOON + 5, 4, "h1"), event("over", NOON + 8, over)])
    assert ordered(world, NOON + 10).starts == []


def test_a_run_that_is_protected_by_now_is_told_apart_and_one_that_is_gone_is_not_named(world: World) -> None:
    world.cycle()
    world.intake.take([started("w-b4", NOON, 4, "h1")])
    world.cycle(NOON + HOUR)
    assert [one["workload"] for one in ordered(world, NOON + HOUR).preemptions] == ["w-a", "w-b4"]
    ended = workload.Ended(cluster="c", workload="w-a", run="1", reason="completed")
    late = workload.Started(
        cluster="c", workload="w-b4", run="1", attempt=1, gpus_milli=4000, hosts=["h1"], version=2
    )
    world.intake.take(
        [event("end", NOON + HOUR + 5, ended), event("truth", NOON + 60, late)]
    )  # it began later
    told = ordered(world, NOON + HOUR + 10)
    assert told.preemptions == []
    assert told.protected == [
        {"workload": "w-b4", "run": "1", "reason": "it is within its minimum runtime for 50 s more"}
    ]
    assert ordered(world, NOON + HOUR + 700).protected == []
    assert [one["workload"] for one in ordered(world, NOON + HOUR + 60).preemptions] == ["w-b4"]


def test_a_host_that_is_emptied_is_left_by_the_same_instant_whatever_cycles_follow(world: World) -> None:
    world.intake.take([started("w-b4", NOON - HOUR, 4, "h1")])
    fact = host.StateChanged(cluster="c", host="h1", gpus=10, gpu_model="x", state="draining")
    spare = host.Registered(cluster="c", host="h2", gpus=1, gpu_model="x")
    world.intake.take([event("spare", NOON - HOUR, spare), event("drain", NOON - 60, fact)])
    seen = []
    for at_s in (NOON, NOON + 60, NOON + 120):
        world.cycle(at_s)
        seen.append({one["workload"]: one["leave_by"] for one in ordered(world, at_s).preemptions})
    assert seen == [{"w-b4": "2027-01-15T08:01:00Z"}] * 3
