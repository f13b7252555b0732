"""Gangs on hosts of eight GPUs: packing, whole hosts, models, and hosts that are not there."""

import pytest

from gpuledger.kernel.errors import Refused
from gpuledger.policy.placement import HostState, Room


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
