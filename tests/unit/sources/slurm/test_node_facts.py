from typing import Any

import pytest

from gpuledger.kernel.errors import BadRecord
from gpuledger.ledger.facts import Known
from gpuledger.ledger.inventory import HostFact, intervals
from gpuledger.ledger.lost_ends import downs
from gpuledger.sources.pieces import Facts
from gpuledger.sources.slurm.node_facts import Node, facts
from gpuledger.sources.slurm.tres import Tres

BOOT, TROUBLE, SEEN = 1_000_000, 2_000_000, 3_000_000


def of(seen_s: int | None = SEEN, **said: Any) -> Facts:  # noqa: ANN401
    told = {"hosts": ["n1"], "gres": "gpu:h100:8", "state": ["idle"], "booted_s": BOOT, **said}
    return facts(Node(**told), Tres(), "alpha", seen_s)


def history(*pictures: Facts) -> list[tuple[str, int, int | None]]:
    """Return the states of the host after several pictures, as the ledger derives them."""
    known = [
        HostFact(event.data, Known(event.data, event.at_s, event.source, event.digest))
        for picture in pictures
        for event, _ in picture[0]
    ]
    return [(found.state, found.from_s, found.to_s) for found in intervals(known)]


def test_a_host_is_installed_from_its_boot_and_healthy_when_it_was_seen() -> None:
    ((registered, _), (healthy, _)), oddities = of()
    assert (registered.name, registered.at_s, healthy.name, healthy.at_s) == (
        "host.registered",
        BOOT,
        "host.state_changed",
        SEEN,
    )
    assert (registered.data.cluster, registered.data.host) == ("alpha", "n1")
    assert (registered.data.gpus, registered.data.gpu_model, registered.source) == (8, "h100", "slurm/alpha")
    assert not oddities


def test_the_same_picture_gives_the_same_facts_and_a_later_one_another_sighting() -> None:
    ids = [event.id for event, _ in of()[0]]
    assert [event.id for event, _ in of()[0]] == ids
    registered, sighted = (event.id for event, _ in of(seen_s=SEEN + 1)[0])
    assert registered == ids[0]
    assert sighted != ids[1]


def test_a_drain_begins_when_its_reason_was_set_and_ends_when_the_host_is_seen_without_it() -> None:
    drained = of(state=["IDLE+DRAIN"], reason="Kill task failed", reason_s=TROUBLE)
    again = of(seen_s=SEEN + 5, state=["IDLE+DRAIN"], reason="Kill task failed", reason_s=TROUBLE)
    assert [event.id for event, _ in drained[0]] == [event.id for event, _ in again[0]]
    assert drained[0][1][0].data.reason == "drain/kill-task-failed"
    assert history(drained, again, of(seen_s=SEEN + 10)) == [
        ("healthy", BOOT, TROUBLE),
        ("draining", TROUBLE, SEEN + 10),
        ("healthy", SEEN + 10, None),
    ]


def test_a_host_that_booted_into_an_older_trouble_is_not_healthy_for_a_moment() -> None:
    before = of(state=["DOWN"], reason="Not responding", reason_s=TROUBLE)
    after = of(state=["DOWN"], reason="Not responding", reason_s=TROUBLE, booted_s=TROUBLE + 50)
    assert history(before, after) == [
        ("healthy", BOOT, TROUBLE),
        ("unhealthy", TROUBLE, TROUBLE + 50),
        ("unhealthy", TROUBLE + 50, None),
    ]


def test_what_ran_before_a_boot_is_over_and_a_drain_or_a_second_picture_ends_nothing() -> None:
    pictures = (
        of(),
        of(seen_s=SEEN + 1),
        of(state=["DRAIN"], reason="reboot", reason_s=TROUBLE),
        of(seen_s=SEEN + 99, booted_s=SEEN + 90),
    )
    known = [
        HostFact(event.data, Known(event.data, event.at_s, event.source, event.digest))
        for event in {event.id: event for picture in pictures for event, _ in picture[0]}.values()
    ]
    assert downs(known) == [SEEN + 90]


def test_a_host_that_never_booted_is_down_since_its_reason() -> None:
    assert history(of(state=["DOWN*"], reason="Not responding", reason_s=TROUBLE, booted_s=None)) == [
        ("unhealthy", TROUBLE, None)
    ]


def test_a_host_of_the_future_is_not_installed() -> None:
    assert history(of(), of(seen_s=SEEN + 1, state=["FUTURE"])) == [
        ("healthy", BOOT, SEEN),
        ("healthy", SEEN, SEEN + 1),
    ]


@pytest.mark.parametrize("state", [["idle"], ["DOWN"], ["FUTURE"], ["UNKNOWN"]])
def test_without_any_time_it_is_a_fault(state: list[str]) -> None:
    with pytest.raises(BadRecord, match="nothing tells when") as caught:
        of(seen_s=None, booted_s=None, state=state)
    assert caught.value.code == "no-time"


def test_a_node_that_slurm_has_not_heard_of_is_installed_and_its_health_is_not_known() -> None:
    ((event, _),), oddities = of(state=["UNKNOWN"])
    assert event.name == "host.registered"
    assert [code for code, _ in oddities] == ["unknown-health"]


@pytest.mark.parametrize(
    ("gres", "tres", "gpus", "model", "odd"),
    [
        ("gpu:h100:8(S:0-1)", "cpu=128,gres/gpu=8,gres/gpu:h100=8", 8, "h100", []),
        ("gpu:h100:4(S:0),gpu:h100:4(S:1)", "", 8, "h100", []),
        ("gpu:8", "gres/gpu=8", 8, "unknown", []),
        ("", "gres/gpu=8,gres/gpu:h100=8", 8, "h100", []),
        ("gpu:a100:8,shard:80,mps:800", "gres/gpu=8,gres/gpumem=1,gres/shard=80", 8, "a100", []),
        ("gpu:a100:4,gpu:h100:4", "gres/gpu=8", 8, "a100:4000,h100:4000", []),
        ("gpu:h100:8", "gres/gpu=7", 8, "h100", ["gpu-count-differs"]),
        ("gpu:1g.10gb:7", "", 1, "1g.10gb", []),
        ("gpu:1g.10gb:3", "", 1, "1g.10gb", ["part-of-a-device"]),
    ],
)
def test_gpus_are_counted_once_by_what_is_configured(
    gres: str, tres: str, gpus: int, model: str, odd: list[str]
) -> None:
    events, oddities = of(gres=gres, tres=tres)
    assert {(event.data.gpus, event.data.gpu_model) for event, _ in events} == {(gpus, model)}
    assert [code for code, _ in oddities] == odd


@pytest.mark.parametrize("gres", ["", "(null)", "N/A", "craynetwork:4", "shard:8"])
def test_a_host_without_gpus_is_passed_over_whatever_its_state(gres: str) -> None:
    assert of(gres=gres, tres="cpu=8", state=["on-fire"]) == ((), ())


def test_every_host_of_a_group_gets_its_facts() -> None:
    events, _ = of(hosts=["n1", "n2"])
    assert [(event.data.host, event.name) for event, _ in events] == [
        ("n1", "host.registered"),
        ("n1", "host.state_changed"),
        ("n2", "host.registered"),
        ("n2", "host.state_changed"),
    ]
    assert of(hosts=[]) == ((), ())
