"""What enforcers read from the ledger at the moment of acting."""

import pytest
from tests.integration.enforce.worlds import CALENDAR, HOUR, World
from tests.unit.enforce.told import allocation, leaves

from gpuledger.database.engine import reading
from gpuledger.enforce.reading import NoCycle, read_facts
from gpuledger.events import host
from gpuledger.events.budget import Granted, OverdraftSet, PolicyChanged
from gpuledger.kernel.errors import NotFound
from gpuledger.policy.state import RunId

ALLOCATIONS = (allocation("c", 1_000_000, 16, 16), allocation("c/a", 1_000_000, 16, 16))


def test_without_a_cycle_there_is_nothing_to_enforce(world: World) -> None:
    with pytest.raises(NoCycle, match="had no cycle yet"):
        world.facts()
    with pytest.raises(NotFound, match="'nowhere' does not exist"), reading(world.engine) as reader:
        read_facts(reader, "nowhere", 0, scheduler="slurm", calendar=CALENDAR, stale_after_s=600)


def test_the_newest_cycle_counts_and_its_name_says_how_old_it_is(world: World) -> None:
    world.record(allocations=ALLOCATIONS)
    world.pass_time(100)
    newest = world.record(allocations=ALLOCATIONS)
    world.pass_time(601)

    facts = world.facts()
    assert facts.cycle == newest
    assert "is 601 s old" in facts.stale


def test_a_cycle_of_another_instant_that_was_recorded_later_is_not_enforced(world: World) -> None:
    newest = world.record(allocations=ALLOCATIONS)
    for another_s in (-300, 300):
        world.pass_time(another_s)
        world.record(allocations=ALLOCATIONS)
        world.pass_time(-another_s)
    assert world.facts().cycle == newest


def test_protection_is_looked_up_when_it_is_acted_on_and_not_when_the_cycle_was(world: World) -> None:
    world.submit("w", "c/a", 8, minimum_s=HOUR)
    world.start("w", "1", 8, "h1")
    world.record(leaves("w", "1"), allocations=ALLOCATIONS)

    (leaving,) = world.facts().leaving()
    assert leaving.spared == "it is within its minimum runtime for 3600 s more"

    world.pass_time(HOUR - 1)
    world.record(leaves("w", "1"), allocations=ALLOCATIONS)
    assert world.facts().leaving()[0].spared == "it is within its minimum runtime for 1 s more"
    world.pass_time(1)
    assert world.facts().leaving()[0].spared == ""
    assert RunId("w", "1") in world.facts().running


def test_what_hard_accounts_have_left_is_read_and_that_of_others_is_not(world: World) -> None:
    world.share("c/a", 1)
    world.share("c/b", 1)
    for account in ("c/a", "c/b"):
        world.tell(
            world.now_s,
            Granted(
                account=account, cluster="c", period="2026-11", gpu_ms=10 * HOUR * 1000, reason="test", by="test"
            ),
        )  # fmt: skip
    world.tell(world.now_s, OverdraftSet(account="c/a", overdraft="hard", reason="test", by="test"))
    world.submit("w", "c/a", 2, minimum_s=0)
    world.record(allocations=ALLOCATIONS)
    assert world.facts().left_gpu_ms == {"c/a": 10 * HOUR * 1000}


@pytest.mark.parametrize("gone", [host.StateChanged, host.Retired])
def test_a_cluster_without_a_host_for_a_while_is_read_all_the_same(
    world: World, gone: type[host.StateChanged | host.Retired]
) -> None:
    world.start("w", "1", 8, "h1")
    newest = world.record(leaves("w", "1"), allocations=ALLOCATIONS)
    for name in ("h1", "h2"):
        world.tell(world.now_s, gone(cluster="c", host=name, gpus=8, gpu_model="h100", state="unhealthy"))
    facts = world.facts()
    assert (facts.cycle, facts.issued().keys(), list(facts.running)) == (
        newest, {"c", "c/a"}, [RunId("w", "1")],
    )  # fmt: skip


def test_what_is_left_does_not_move_with_the_health_of_the_dearest_host(world: World) -> None:
    """Weights count for the models that are installed."""
    world.tell(0, PolicyChanged(policy="rate_card", weights={"h100": 2000}, by="test", reason="test"))
    world.share("c/a", 1)
    grant = Granted(
        account="c/a", cluster="c", period="2026-11", gpu_ms=10 * HOUR * 1000, reason="test", by="test"
    )
    world.tell(world.now_s, grant, OverdraftSet(account="c/a", overdraft="hard", reason="test", by="test"))
    world.submit("w", "c/a", 2, minimum_s=0)
    world.record(allocations=ALLOCATIONS)
    assert world.facts().left_gpu_ms == {"c/a": 5 * HOUR * 1000}
    for name in ("h1", "h2"):
        ill = host.StateChanged(cluster="c", host=name, gpus=8, gpu_model="h100", state="unhealthy")
        world.tell(world.now_s, ill)
    assert world.facts().left_gpu_ms == {"c/a": 5 * HOUR * 1000}
