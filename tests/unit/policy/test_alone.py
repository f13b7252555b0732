"""Who waits alone, in cases that can be seen at once; that a full cycle orders the same is a property."""

import pytest
from tests.unit.policy.forests import AT_S, hosts, pending

from gpuledger.policy.alone import alone
from gpuledger.policy.placement import Placement, Room
from gpuledger.policy.state import WorkClass

ROOM = Room(hosts(8, 4), [{"h0": 3000}])


def test_it_starts_where_placement_packs_it() -> None:
    found = alone([pending("w", "a", gpus=4)], ROOM, AT_S, is_funded=True)
    assert found == (("w", {"h1": 4000}, "allocated"),)


@pytest.mark.parametrize(
    ("hours", "is_funded", "klass"),
    [(1, True, "allocated"), (1, False, "unallocated"), (0, True, "unallocated")],
)
def test_it_is_charged_when_it_is_funded_and_wants_to_be_protected(
    *, hours: int, is_funded: bool, klass: WorkClass
) -> None:
    waits = pending("w", "a", gpus=1, hours=hours)
    found = alone([waits], ROOM, AT_S, is_funded=is_funded)
    assert found is not None
    assert [lone.klass for lone in found] == [klass]


@pytest.mark.parametrize(
    ("gpus", "taken", "later_s"),
    [(6, {"h0": 3000}, 0), (13, {}, 0), (1, {}, 1)],
    ids=["busy", "large", "later"],
)
def test_only_a_cycle_can_say_what_becomes_of_who_cannot_start(
    gpus: float, taken: Placement, later_s: int
) -> None:
    waits = pending("w", "a", gpus=gpus, eligible_at_s=AT_S + later_s)
    assert alone([waits], Room(hosts(8, 4), [taken]), AT_S, is_funded=True) is None


def test_of_several_the_funded_come_first_and_then_priority_submission_and_id_decide() -> None:
    waiting = [
        pending("unpaid", "a", gpus=1, hours=0, priority=9),
        pending("b", "a", gpus=1, submitted_at_s=5),
        pending("a", "a", gpus=1, submitted_at_s=5),
        pending("early", "a", gpus=1, submitted_at_s=4),
        pending("urgent", "a", gpus=1, submitted_at_s=6, priority=1),
    ]
    room = Room(hosts(8, 4))
    found = alone(waiting, room, AT_S, is_funded=True)
    assert found is not None
    assert [lone.workload for lone in found] == ["urgent", "early", "a", "b", "unpaid"]
    assert [lone.placement for lone in found] == [*({"h1": 1000} for _ in range(4)), {"h0": 1000}]
    assert room.free_milli == 12_000


@pytest.mark.parametrize("gpus", [(8, 5), (3, 3, 3, 3)], ids=["too many", "no host for the last"])
def test_while_not_all_of_several_fit_only_a_cycle_can_say(gpus: tuple[int, ...]) -> None:
    waiting = [pending(f"w{n}", "a", gpus=each) for n, each in enumerate(gpus)]
    assert alone(waiting, Room(hosts(8, 4)), AT_S, is_funded=True) is None


def test_where_hosts_are_kept_for_one_of_several_only_a_cycle_can_say() -> None:
    waits = [pending("v", "a", hours=0), pending("w", "a", hours=0)]
    assert alone(waits, ROOM, AT_S, is_funded=True, keeps_after_s=AT_S) is None
    assert alone(waits, ROOM, AT_S, is_funded=True, keeps_after_s=AT_S + 1) is not None
    assert alone(waits[:1], ROOM, AT_S, is_funded=True, keeps_after_s=AT_S) is not None
