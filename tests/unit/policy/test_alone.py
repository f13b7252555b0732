"""Who waits alone, in cases that can be seen at once; that a full cycle orders the same is a property."""

import pytest
from tests.unit.policy.forests import AT_S, hosts, pending

from gpuledger.policy.alone import alone
from gpuledger.policy.placement import Placement, Room
from gpuledger.policy.state import WorkClass

ROOM = Room(hosts(8, 4), [{"h0": 3000}])


def test_it_starts_where_placement_packs_it() -> None:
    found = alone(pending("w", "a", gpus=4), ROOM, AT_S, is_funded=True)
    assert found == ({"h1": 4000}, "allocated")


@pytest.mark.parametrize(
    ("hours", "is_funded", "klass"),
    [(1, True, "allocated"), (1, False, "unallocated"), (0, True, "unallocated")],
)
def test_it_is_charged_when_it_is_funded_and_wants_to_be_protected(
    *, hours: int, is_funded: bool, klass: WorkClass
) -> None:
    waits = pending("w", "a", gpus=1, hours=hours)
    found = alone(waits, ROOM, AT_S, is_funded=is_funded)
    assert found is not None
    assert found.klass == klass


@pytest.mark.parametrize(
    ("gpus", "taken", "later_s"),
    [(6, {"h0": 3000}, 0), (13, {}, 0), (1, {}, 1)],
    ids=["busy", "large", "later"],
)
def test_only_a_cycle_can_say_what_becomes_of_who_cannot_start(
    gpus: float, taken: Placement, later_s: int
) -> None:
    waits = pending("w", "a", gpus=gpus, eligible_at_s=AT_S + later_s)
    assert alone(waits, Room(hosts(8, 4), [taken]), AT_S, is_funded=True) is None
