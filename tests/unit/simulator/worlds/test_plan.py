"""Whoever fits beside a plan leaves each reservation what it needs when it begins."""

from hypothesis import given
from hypothesis import strategies as st
from tests.simulating import T0, job

from gpuledger.policy.placement import Placement
from gpuledger.simulator.scenario import HostSpec
from gpuledger.simulator.worlds.floor import Floor
from gpuledger.simulator.worlds.plan import Plan
from gpuledger.simulator.worlds.releases import Releases

HOSTS = [HostSpec(host=f"h{n}", gpus_milli=4000, gpu_model="h100") for n in range(4)]
GPUS = st.sampled_from([0.5, 1, 2, 4, 6, 8, 12, 16])
RUNS = st.lists(st.tuples(GPUS, st.integers(1, 30)), max_size=10)
WAITING = st.lists(st.tuples(GPUS, st.integers(1, 40), st.booleans()), max_size=10)


@given(RUNS, WAITING)
def test_every_reservation_finds_its_gpus(
    runs: list[tuple[float, int]], waiting: list[tuple[float, int, bool]]
) -> None:
    floor, releases = Floor(HOSTS), Releases()
    held: list[tuple[int, Placement]] = []

    def begin(name: str, placement: Placement, end_s: int) -> None:
        floor.take(name, placement)
        releases.put(name, end_s)
        held.append((end_s, placement))

    for number, (gpus, end_s) in enumerate(runs):
        if placement := floor.room.fit(round(gpus * 1000)):
            begin(f"r{number}", placement, T0 + end_s)
    plan = Plan(floor, releases)
    for number, (gpus, length_s, reserves) in enumerate(waiting):
        asked = job(f"w{number}", gpus)
        placement = plan.fit(asked, T0 + length_s)
        if placement is not None:
            begin(asked.job, placement, T0 + length_s)
            plan.take(placement, T0 + length_s)
        elif reserves:
            plan.reserve(asked, T0)
    openings = plan._openings
    assert [found.at_s for found in openings] == sorted(found.at_s for found in openings)
    for found in openings:
        for host in found.placement:
            occupied = sum(there.get(host, 0) for end_s, there in held if end_s > found.at_s)
            promised = sum(other.placement.get(host, 0) for other in openings if other.at_s <= found.at_s)
            assert occupied + promised <= 4000


def test_no_room_is_promised_twice() -> None:
    floor, releases = Floor(HOSTS[:2]), Releases()
    floor.take("a", {"h0": 4000})
    floor.take("b", {"h1": 4000})
    releases.put("a", T0 + 10)
    releases.put("b", T0 + 20)
    plan = Plan(floor, releases)
    for name in ("first", "second", "third"):
        plan.reserve(job(name, 4), T0)
    assert len(plan) == 2
    assert [(found.at_s - T0, found.placement) for found in plan._openings] == [
        (10, {"h0": 4000}),
        (20, {"h1": 4000}),
    ]


def test_who_ends_before_a_reservation_is_not_in_its_way() -> None:
    """Two GPUs of h0 are free; all of it is promised for 10."""
    floor, releases = Floor(HOSTS[:1]), Releases()
    floor.take("a", {"h0": 2000})
    releases.put("a", T0 + 10)
    plan = Plan(floor, releases)
    plan.reserve(job("first", 4), T0)
    asked = job("j", 2)
    assert plan.fit(asked, T0 + 10) == {"h0": 2000}
    assert plan.fit(asked, T0 + 11) is None
