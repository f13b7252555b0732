"""Gangs on hosts of eight GPUs: packing, whole hosts, models, and hosts that are not there."""

from dataclasses import replace

import pytest
from tests.unit.policy.forests import hosts

from gpuledger.kernel.errors import Refused
from gpuledger.policy.placement import HostState, Room, split


def room(*taken: int, gpus: int = 8, model: str = "h100") -> Room:
    """Hosts h0, h1, ...; so many GPUs of each are taken."""
    hosts = [HostState(host=f"h{n}", gpus_milli=gpus * 1000, gpu_model=model) for n in range(len(taken))]
    return Room(hosts, [{f"h{n}": used * 1000} for n, used in enumerate(taken)])


@pytest.mark.parametrize(
    ("taken", "gpus", "placed"),
    [
        ((0, 0), 16, {"h0": 8, "h1": 8}),
        ((0, 1), 16, None),
        ((0, 6, 4), 2, {"h1": 2}),
        ((0, 6, 4), 3, {"h2": 3}),
        ((0, 6, 4), 5, {"h0": 5}),
        ((4, 4), 8, None),
        ((0, 6, 0), 10, {"h0": 8, "h1": 2}),
        ((0, 0, 7), 12, {"h0": 8, "h1": 4}),
        ((0, 7, 7), 12, None),
    ],
)
def test_packing(taken: tuple[int, ...], gpus: int, placed: dict[str, int] | None) -> None:
    expected = None if placed is None else {host: count * 1000 for host, count in placed.items()}
    assert room(*taken).fit(gpus * 1000) == expected


def test_a_whole_gpu_is_not_put_together_from_halves() -> None:
    hosts = [HostState(host="h", gpus_milli=2000, gpu_model="a100")]
    halves = Room(hosts, [{"h": 500}])
    assert halves.fit(1000) == {"h": 1000}
    halves.take({"h": 750})
    assert halves.free_milli == 750
    assert halves.fit(500) == {"h": 500}
    assert halves.fit(1000) is None


def test_a_gang_that_insists_on_a_model() -> None:
    hosts = [
        HostState(host="x", gpus_milli=8000, gpu_model="a100"),
        HostState(host="y", gpus_milli=4000, gpu_model="h100"),
    ]
    assert Room(hosts).fit(2000) == {"x": 2000}
    assert Room(hosts).fit(2000, "h100") == {"y": 2000}
    assert Room(hosts).fit(8000, "h100") is None
    assert Room(hosts).fit(2000, "b300") is None


def test_hosts_that_are_not_listed_hold_nothing() -> None:
    one = HostState(host="h0", gpus_milli=8000, gpu_model="h100")
    drained = Room([one], [{"h0": 4000, "gone": 8000}])
    assert drained.free_milli == 4000
    drained.give({"gone": 8000})
    assert drained.free_milli == 4000


def test_two_runs_that_claim_the_same_gpus_leave_nothing() -> None:
    one = HostState(host="h0", gpus_milli=8000, gpu_model="h100")
    claimed = Room([one], [{"h0": 8000}, {"h0": 8000}])
    assert (claimed.free_milli, claimed.fit(1)) == (0, None)
    claimed.give({"h0": 8000})
    assert (claimed.free_milli, claimed.fit(1)) == (0, None)


def test_what_was_not_taken_is_not_given_back() -> None:
    with pytest.raises(Refused, match="'h0' of 8000 milli-GPU would have 9000 free"):
        room(0).give({"h0": 1000})


def test_hosts_without_gpus_and_hosts_that_stand_twice() -> None:
    one = HostState(host="h0", gpus_milli=8000, gpu_model="h100")
    with pytest.raises(Refused, match="listed twice"):
        Room([one, one])
    with pytest.raises(Refused, match="has 0 milli-GPU"):
        HostState(host="h0", gpus_milli=0, gpu_model="h100")


def test_a_draining_host_has_no_room() -> None:
    old = HostState(host="old", gpus_milli=8000, gpu_model="h100", draining=True)
    new = HostState(host="new", gpus_milli=4000, gpu_model="h100")
    emptied = Room([old, new], [{"old": 4000, "new": 1000}])
    assert (emptied.free_milli, emptied.fit(4000), emptied.fit(3000)) == (3000, None, {"new": 3000})


def test_what_is_free_may_be_said_anew() -> None:
    changed = room(0, 0)
    changed.set_free("h0", 3000)
    changed.set_free("h1", -1000)
    assert (changed.fit(3000), changed.fit(4000), changed.free_milli) == ({"h0": 3000}, None, 3000)


@pytest.mark.parametrize(
    ("gpus", "placed"),
    [(3, {"h0": 2, "h1": 1}), (4, {"h0": 2, "h1": 2}), (9, {"h0": 7, "h1": 2}), (0, {})],
)
def test_what_fits_nowhere_is_scattered_and_the_rest_claims_the_first_host_twice(
    gpus: int, placed: dict[str, int]
) -> None:
    expected = {host: count * 1000 for host, count in placed.items()}
    assert room(6, 6).scatter(gpus * 1000) == expected
    assert Room([]).scatter(gpus * 1000) == {}


@pytest.mark.parametrize(
    ("gpus", "sizes", "placed"),
    [
        (16, {"a": 8, "b": 8}, {"a": 8, "b": 8}),
        (12, {"a": 8, "b": 8}, {"a": 6, "b": 6}),
        (16, {"a": 8, "b": 8, "c": 8}, {"a": 6, "b": 5, "c": 5}),
        (12, {"a": 8, "b": 4}, {"a": 8, "b": 4}),
        (6, {"a": 8, "b": 0}, {"a": 3, "b": 3}),
        (1, {"a": 8, "b": 8}, {"a": 1}),
        (0.5, {"a": 8, "b": 8}, {"a": 0.25, "b": 0.25}),
        (3, {}, {}),
    ],
)
def test_a_run_of_which_the_total_is_known_is_split_over_its_hosts(
    gpus: float, sizes: dict[str, int], placed: dict[str, float]
) -> None:
    expected = {host: round(count * 1000) for host, count in placed.items()}
    assert split(round(gpus * 1000), {host: size * 1000 for host, size in sizes.items()}) == expected


def test_the_hosts_that_come_closest_to_having_room_are_the_emptiest() -> None:
    room = Room(hosts(8, 8, 8), [{"h0": 2000}, {"h1": 7000}, {"h2": 3000}])
    assert room.emptiest(16_000) == {"h0": 8000, "h2": 8000}
    assert room.emptiest(10_000) == {"h0": 8000, "h2": 2000}
    assert room.emptiest(4_000) == {"h0": 4000}
    assert room.emptiest(25_000) == {}


def test_of_several_kinds_of_hosts_it_is_where_a_gang_lacks_least() -> None:
    both = [*hosts(8, 8), *(replace(host, host=f"b{host.host}", gpu_model="b") for host in hosts(8, 8))]
    room = Room(both, [{"h0": 1000}, {"h1": 1000}, {"bh0": 5000}])
    assert room.emptiest(16_000) == {"h0": 8000, "h1": 8000}
    assert room.emptiest(16_000, "b") == {"bh1": 8000, "bh0": 8000}
