"""A mistake of a world is named, with the job and the host, and nothing of it is mended in silence."""

from collections.abc import Mapping
from dataclasses import replace

import pytest
from tests.simulating import T0, job

from gpuledger.simulator.facts import HostCondition
from gpuledger.simulator.ordering import ImpossibleOrder, check_reserved, check_start, check_told
from gpuledger.simulator.worlds.protocol import Cluster, Host, Orders, Run, Start, Waiting


@pytest.fixture
def cluster() -> Cluster:
    """``w`` waits for 10 GPUs and ``m`` for two of a model; ``r`` runs on ``drains``; 2 GPUs of ``half`` are free."""
    conditions = {"drains": HostCondition.DRAINING, "down": HostCondition.DOWN}
    free = {"half": 2000, "drains": 4000, "down": 0}
    hosts = [
        Host(
            host=name,
            gpus_milli=8000,
            gpu_model="h100",
            condition=conditions.get(name, HostCondition.HEALTHY),
            free_milli=free.get(name, 8000),
        )
        for name in ("free", "half", "drains", "down")
    ]
    waiting = {name: Waiting(job=asked, since_s=T0) for name, asked in (("w", job("w", 10)),)}
    waiting["m"] = Waiting(job=replace(job("m", 2), gpu_model="b300"), since_s=T0)
    runs = {
        "r": Run(
            job=job("r", 4),
            run=1,
            placement={"drains": 4000},
            klass="allocated",
            started_s=T0,
            protected_until_s=T0,
            loaded_s=T0,
        )
    }
    return Cluster(
        cluster="c", at_s=T0, hosts={host.host: host for host in hosts}, running=runs, waiting=waiting
    )


def test_a_start_that_can_be_done(cluster: Cluster) -> None:
    check_start("x", cluster, Start(job="w", placement={"free": 8000, "half": 2000}))


@pytest.mark.parametrize(
    ("name", "placement", "host", "message"),
    [
        ("nobody", {"free": 1000}, None, "it is to start, and does not wait"),
        ("r", {"free": 4000}, None, "it is to start, and runs already"),
        ("w", {"free": 8000, "half": 3000}, "half", "3000 milli-GPU are handed out where 2000 are free"),
        ("w", {"free": 8000, "half": 0}, "half", "0 milli-GPU are handed out where 2000 are free"),
        ("w", {"free": 8000, "half": 1000}, None, "it asked for 10000 milli-GPU and is to get 9000"),
        ("w", {}, None, "it asked for 10000 milli-GPU and is to get 0"),
        ("w", {"free": 8000, "drains": 2000}, "drains", "on a host that is draining"),
        ("w", {"free": 8000, "down": 2000}, "down", "on a host that is down"),
        ("w", {"gone": 8000}, "gone", "there is no such host"),
        ("m", {"free": 2000}, "free", "it insists on b300, which is not h100"),
    ],
)
def test_a_start_that_cannot(
    cluster: Cluster, name: str, placement: Mapping[str, int], host: str | None, message: str
) -> None:
    with pytest.raises(ImpossibleOrder, match=message) as error:
        check_start("x", cluster, Start(job=name, placement=placement))
    assert (error.value.world, error.value.at_s, error.value.job, error.value.host) == ("x", T0, name, host)
    assert f"world 'x' at {T0}, job {name!r}" in str(error.value)
    assert error.value.hint


def test_a_protection_is_not_below_0(cluster: Cluster) -> None:
    with pytest.raises(ImpossibleOrder, match="protected for -1 s"):
        check_start("x", cluster, Start(job="w", placement={"free": 8000, "half": 2000}, protected_s=-1))


@pytest.mark.parametrize(
    ("orders", "message"),
    [
        (Orders(leave=["w"]), "it is told to leave, and does not run"),
        (Orders(stay=["w"]), "it is told to stay, and does not run"),
        (Orders(leave=["r"], stay=["r"]), "to leave and to stay at once"),
        (Orders(asks=[("free", "r")]), "a user was asked, and it does not drain"),
        (Orders(asks=[("drains", "w")]), "its user was asked, and it is not there"),
        (Orders(asks=[("gone", "r")]), "it does not drain"),
    ],
)
def test_who_is_told_what(cluster: Cluster, orders: Orders, message: str) -> None:
    check_told("x", cluster, Orders(leave=["r"], asks=[("drains", "r")]))
    with pytest.raises(ImpossibleOrder, match=message):
        check_told("x", cluster, orders)


def test_what_is_reserved_is_free(cluster: Cluster) -> None:
    assert check_reserved("x", cluster, {"half": 2000, "drains": 1000}) == {"half": 2000, "drains": 1000}
    for reserved in ({"half": 2001}, {"down": 1}, {"half": 0}, {"gone": 1}):
        with pytest.raises(ImpossibleOrder, match="are reserved where"):
            check_reserved("x", cluster, reserved)
