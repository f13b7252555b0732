"""What is kept for one is not there for others, and nobody is sent away in vain."""

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from gpuledger.policy.placement import Placement
from gpuledger.simulator.scenario import HostSpec
from gpuledger.simulator.worlds.floor import Floor
from gpuledger.simulator.worlds.keeping import Keeping, claim

HOSTS = [HostSpec(host=f"h{n}", gpus_milli=4000, gpu_model="h100") for n in range(3)]
RUNS = st.lists(st.sampled_from([500, 1000, 2000, 3000, 4000, 8000]), max_size=8)
ASKED = st.sampled_from([1000, 2000, 4000, 6000, 8000, 12_000, 16_000])


def filled(runs: list[int]) -> tuple[Keeping, list[tuple[str, Placement]]]:
    floor = Floor(HOSTS)
    placed = []
    for number, milli in enumerate(runs):
        if placement := floor.room.fit(milli):
            floor.take(f"r{number}", placement)
            placed.append((f"r{number}", placement))
    return Keeping(floor), placed


def test_what_is_kept_is_not_there_for_others() -> None:
    keeping, _ = filled([4000])
    keeping.keep("j", {"h1": 4000, "h2": 1000})
    assert keeping.room.fit(4000) is None
    assert keeping.room.fit(3000) == {"h2": 3000}
    keeping.release("j")
    assert keeping.room.fit(8000) == {"h1": 4000, "h2": 4000}
    keeping.release("j")
    assert keeping.free == {"h0": 0, "h1": 4000, "h2": 4000}


def test_it_is_ready_once_all_of_it_is_free() -> None:
    floor = Floor(HOSTS)
    floor.take("r", {"h0": 3000})
    keeping = Keeping(floor)
    keeping.keep("j", {"h0": 2000, "h1": 4000})
    assert keeping.free["h0"] == -1000
    assert not keeping.is_ready("j")
    floor.free["h0"] = 4000
    assert keeping.is_ready("j")
    del floor.free["h1"]
    assert not keeping.is_ready("j")
    assert not keeping.takes_runs("h1")


@given(RUNS, ASKED)
def test_a_claim_gives_room_and_every_victim_is_needed(runs: list[int], asked_milli: int) -> None:
    keeping, placed = filled(runs)
    if keeping.room.fit(asked_milli) is not None:
        return
    found = claim(keeping, asked_milli, None, placed)
    if found is None:  # not even when all leave
        everything = {host.host: host.gpus_milli for host in HOSTS}
        assert keeping.room.with_free(everything).fit(asked_milli) is None
        return
    where = dict(placed)
    assert sum(found.placement.values()) == asked_milli

    def suffices(victims: tuple[str, ...]) -> bool:
        free = dict(keeping.free)
        for name in victims:
            for host, milli in where[name].items():
                free[host] += milli
        return all(free[host] >= milli for host, milli in found.placement.items())

    victims = tuple(found.victims)
    assert suffices(victims)
    assert victims
    assert not any(suffices(fewer) for fewer in combinations(victims, len(victims) - 1))


def test_who_was_told_to_leave_is_taken_to_be_gone() -> None:
    """Two GPUs of h0 become free; once they are kept for somebody else, the other two are wanted."""
    floor = Floor(HOSTS[:1])
    floor.take("r", {"h0": 2000})
    floor.take("leaves", {"h0": 2000})
    keeping = Keeping(floor)
    keeping.leaving.update({"h0": 2000})
    assert claim(keeping, 2000, None, [("r", {"h0": 2000})]) == ({"h0": 2000}, [])
    keeping.keep("j", {"h0": 2000})
    assert claim(keeping, 2000, None, [("r", {"h0": 2000})]) == ({"h0": 2000}, ["r"])
    keeping.keep("k", {"h0": 2000})
    assert claim(keeping, 2000, None, [("r", {"h0": 2000})]) is None


def test_nobody_is_sent_away_from_a_host_that_takes_no_runs() -> None:
    floor = Floor(HOSTS[:1])
    floor.take("r", {"h0": 4000})
    keeping = Keeping(floor)
    del floor.free["h0"]
    keeping.match(["h0"])
    assert claim(keeping, 4000, None, [("r", {"h0": 4000})]) is None


def test_the_first_to_go_goes_first() -> None:
    keeping, placed = filled([1000, 1000, 1000, 1000, 4000, 4000])
    found = claim(keeping, 2000, None, list(reversed(placed[:4])))
    assert found is not None
    assert (found.placement, found.victims) == ({"h0": 2000}, ["r3", "r2"])
