"""When a gang has room at the latest, against one look at the room after each end."""

from hypothesis import given
from hypothesis import strategies as st
from tests.simulating import T0, job

from gpuledger.policy.placement import HostState, Room
from gpuledger.simulator.scenario import HostSpec
from gpuledger.simulator.worlds.floor import Floor
from gpuledger.simulator.worlds.releases import UNLIMITED_S, Releases, longest_s, opening

HOSTS = [HostSpec(host=f"h{n}", gpus_milli=4000, gpu_model="h100") for n in range(3)] + [
    HostSpec(host="x", gpus_milli=2000, gpu_model="a100")
]
RUNS = st.lists(
    st.tuples(st.sampled_from([500, 1000, 2000, 4000, 6000, 8000]), st.integers(1, 20)), max_size=12
)


def test_a_job_without_a_time_limit_is_taken_to_run_for_a_year() -> None:
    assert longest_s(job("j", time_limit_s=7)) == 7
    assert longest_s(job("j")) == UNLIMITED_S == 365 * 86_400


def test_runs_in_the_order_of_their_ends() -> None:
    releases = Releases()
    for name, end_s in (("b", 5), ("a", 5), ("c", 3)):
        releases.put(name, end_s)
    assert list(releases) == [(3, "c"), (5, "a"), (5, "b")]
    releases.drop("a")
    assert list(releases) == [(3, "c"), (5, "b")]


@given(
    RUNS,
    st.sampled_from([500, 1500, 3000, 4000, 6000, 12_000, 13_000]),
    st.sampled_from([None, "h100", "a100"]),
)
def test_as_one_look_after_each_end(runs: list[tuple[int, int]], gpus_milli: int, model: str | None) -> None:
    floor, releases = Floor(HOSTS), Releases()
    for number, (milli, end_s) in enumerate(runs):
        placement = floor.room.fit(milli)
        if placement is not None:
            floor.take(f"r{number:02}", placement)
            releases.put(f"r{number:02}", T0 + end_s)
    if floor.room.fit(gpus_milli, model) is not None:
        return
    asker = job("j", gpus_milli / 1000, gpu_model=model)
    found = opening(floor, releases, asker, T0)
    room = Room(
        [HostState(host=host.host, gpus_milli=host.gpus_milli, gpu_model=host.gpu_model) for host in HOSTS],
        floor.placements.values(),
    )
    for end_s, name in releases:
        room.give(floor.placements[name])
        if room.fit(gpus_milli, model) is not None:
            assert found is not None
            assert (found.at_s, sum(found.placement.values())) == (end_s, gpus_milli)
            room.take(found.placement)
            left = {host: milli for host, milli in room._free.items() if host in found.placement}
            assert found.spare == left
            assert all(milli >= 0 for milli in left.values())
            return
    assert found is None


def test_what_should_have_ended_already_ends_now() -> None:
    floor, releases = Floor(HOSTS[:1]), Releases()
    floor.take("r", {"h0": 4000})
    releases.put("r", T0)
    found = opening(floor, releases, job("j", 4), T0 + 9)
    assert found is not None
    assert found.at_s == T0 + 9


def test_hosts_that_take_no_runs_do_not_open() -> None:
    floor, releases = Floor(HOSTS[:2]), Releases()
    floor.take("r", {"h0": 4000})
    floor.take("s", {"h1": 4000})
    releases.put("r", T0 + 5)
    releases.put("s", T0 + 9)
    del floor.free["h0"]
    found = opening(floor, releases, job("j", 1), T0)
    assert found is not None
    assert (found.at_s, found.placement) == (T0 + 9, {"h1": 1000})
    assert opening(floor, releases, job("j", 8), T0) is None
