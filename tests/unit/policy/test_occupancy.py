"""Which GPUs runs hold: what is brought up to date is what would be made anew."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from tests.unit.policy.forests import AT_S, cluster, hosts, run

from gpuledger.policy.occupancy import Occupancy, Occupant
from gpuledger.policy.placement import HostState
from gpuledger.policy.state import ClusterState, RunningRun

QUANTUM_S = 900
HOSTS = hosts(8, 8, 4)
ASKS = (500, 1000, 3000, 4000, 8000, 12_000, 16_000)


def said(occupancy: Occupancy, at_s: int) -> dict[str, object]:
    return {
        "free": occupancy.free,
        "placements": occupancy.placements,
        "parts": occupancy.parts,
        "most": occupancy.most_at(at_s),
        "later": occupancy.most_at(at_s + 700),
        "occupants": {host: sorted(there) for host, there in occupancy.occupants.items()},
        "room": [occupancy.room.fit(milli) for milli in ASKS],
    }


runs = st.builds(
    lambda name, host, gpus, started_s, protected_s, unallocated: run(
        "a",
        gpus=gpus,
        name=f"r{name}",
        hosts={f"h{host}": gpus},
        started_at_s=AT_S + started_s,
        protected_until_s=AT_S + started_s + protected_s,
        klass="unallocated" if unallocated else "allocated",
    ),
    st.integers(0, 9),
    st.integers(0, 2),
    st.sampled_from([0.5, 1, 2, 4, 8]),
    st.integers(-1000, 1000),
    st.integers(0, 2000),
    st.booleans(),
)
looks = st.lists(st.tuples(st.lists(runs, unique_by=lambda one: one.id), st.integers(0, 900)), max_size=5)


@given(looks)
def test_what_is_brought_up_to_date_is_what_would_be_made_anew(
    drawn: list[tuple[list[RunningRun], int]],
) -> None:
    state = cluster([], [], [], on=HOSTS)
    occupancy = Occupancy(state, QUANTUM_S)
    for running, later_s in drawn:
        before = {one.id: one for one in state.running}
        kept = tuple(before[one.id] if before.get(one.id) == one else one for one in running)
        gone = [one for one in state.running if all(one is not other for other in kept)]
        come = [one for one in kept if all(one is not other for other in state.running)]
        state = replace(state, at_s=state.at_s + later_s, running=kept)
        assert occupancy.follow(state, gone, come)
        assert said(occupancy, state.at_s) == said(Occupancy(state, QUANTUM_S), state.at_s)


def test_it_is_not_brought_up_to_date_where_that_would_be_another_thing() -> None:
    state = cluster([], [], [run("a", gpus=1, hosts={"h0": 1})], on=HOSTS)
    draining = (replace(HOSTS[0], draining=True), *HOSTS[1:])
    unsaid = run("a", gpus=1, name="unsaid")
    assert not Occupancy(state, QUANTUM_S).follow(replace(state, hosts=draining), (), ())
    assert not Occupancy(state, QUANTUM_S).follow(replace(state, at_s=AT_S - 1), (), ())
    assert not Occupancy(state, QUANTUM_S).follow(replace(state, running=(unsaid,)), state.running, [unsaid])
    assert not Occupancy(replace(state, running=(unsaid,)), QUANTUM_S).follow(state, [unsaid], state.running)
    assert Occupancy(state, QUANTUM_S).follow(replace(state, hosts=hosts(8, 8, 4)), (), ())


def test_a_draining_host_takes_nobody_and_who_is_there_is_not_counted() -> None:
    on = (HostState(host="h0", gpus_milli=8000, gpu_model="h100", draining=True), *HOSTS[1:])
    there = run("a", gpus=10, hosts={"h0": 8, "h1": 2})
    found = Occupancy(cluster([], [], [there], on=on), QUANTUM_S)
    assert found.parts[there.id] == found.usable(there.placement) == [("h1", 2000)]
    assert found.free == {"h1": 6000, "h2": 4000}
    assert found.occupants["h1"] == [Occupant(2000, QUANTUM_S)]
    assert (found.is_possible(8000, "h100"), found.is_possible(16_000, None)) == (True, False)


def test_without_hosts_the_cluster_is_one() -> None:
    there = run("a", gpus=90, hosts={"h7": 90})
    found = Occupancy(cluster([], [], [there], gpus=100), QUANTUM_S)
    assert (found.free, found.knows_models) == ({"c": 10_000}, False)
    nothing = ClusterState(cluster="c", at_s=AT_S, healthy_milli=0, capacity_window_gpu_ms=0)
    assert Occupancy(nothing, QUANTUM_S).free == {}


def test_a_copy_is_brought_up_to_date_on_its_own() -> None:
    busy = run("a", gpus=4, name="r0", hosts={"h0": 4}, protected_until_s=AT_S + 60)
    state = cluster([], [], [busy], on=HOSTS)
    first = Occupancy(state, QUANTUM_S)
    before = said(first, AT_S)
    second = first.copy()
    later = replace(state, running=())
    assert second.follow(later, [busy], [])
    assert said(first, AT_S) == before
    assert said(second, AT_S) == said(Occupancy(later, QUANTUM_S), AT_S)


def test_hosts_that_drain_count_as_the_largest_and_not_as_the_smallest() -> None:
    there = [replace(host, draining=host.gpus_milli == 4000) for host in HOSTS]
    told = Occupancy(cluster((), on=tuple(there)), QUANTUM_S)
    assert (told.largest_milli, told.smallest_milli, told.draining) == (8000, 8000, {"h2"})
    there = [replace(host, draining=host.gpus_milli == 8000) for host in HOSTS]
    told = Occupancy(cluster((), on=tuple(there)), QUANTUM_S)
    assert (told.largest_milli, told.smallest_milli, told.draining) == (8000, 4000, {"h0", "h1"})
