"""The collector and the claims of pods: what was given, who holds what is shared, over any restart."""

import threading
from collections.abc import Callable

import pytest
from tests.unit.collect.ledgers import Ledger
from tests.unit.collect.recorded import CLAIMS, Recorded
from tests.unit.sources.kubernetes.building import (
    bound,
    claim,
    claiming,
    offered,
    terminated,
)

from gpuledger.collect.kubernetes import Collected, Collector
from gpuledger.events.workload import Ended, Resized, Started

AT_8, AT_9, AT_10 = "2026-10-31T20:00:00Z", "2026-10-31T21:00:00Z", "2026-10-31T22:00:00Z"


def test_claims_are_remembered_over_a_restart(
    start: Callable[[], Collector], ledger: Ledger, recorded: Recorded
) -> None:
    recorded.groups = (*recorded.groups, CLAIMS)
    recorded.happen("ADDED", offered("node-1", {"gpu-0": {"uuid": "GPU-a"}}))
    recorded.happen("ADDED", offered("nic", {}, driver="dra.net"))
    recorded.happen("ADDED", claim("c", ["gpu-0"]))
    recorded.happen("ADDED", claiming("y", "c", {"phase": "Pending"}, node=None))
    start().look()
    recorded.happen("MODIFIED", claiming("y", "c", bound(AT_8)))
    start().look()
    recorded.happen("DELETED", claim("c", ["gpu-0"]))
    recorded.happen(
        "DELETED", claiming("y", "c", bound(AT_8, "Succeeded", containerStatuses=[terminated(AT_9)]))
    )
    found = start().look()
    assert found.dead_lettered == 0
    one = [e.data for e in ledger.facts.values() if isinstance(e.data, Started)][-1]
    assert (one.gpus_milli, one.gpu_uuids) == (1000, ["GPU-a"])
    assert ledger.told()[-1] == "workload.ended"


def test_a_shared_claim_is_handed_over_and_each_pod_ends_though_it_starts_again_in_between(
    start: Callable[[], Collector], ledger: Ledger, recorded: Recorded
) -> None:
    """Each step is another process; the claim is gone before it hears that the last pod is."""
    recorded.groups = (*recorded.groups, CLAIMS)
    first, second = (
        claiming(name, "c", bound(at), metadata={"annotations": {"pod-group-name": "g"}})
        for name, at in (("xx", AT_8), ("y", AT_8))
    )
    steps = [
        ("ADDED", claim("c", ["gpu-0"])),
        ("ADDED", first),
        ("ADDED", second),
        ("DELETED", {**first, "status": bound(AT_8, "Succeeded", containerStatuses=[terminated(AT_9)])}),
        ("MODIFIED", second),
        ("DELETED", claim("c", ["gpu-0"])),
        ("DELETED", {**second, "status": bound(AT_8, "Succeeded", containerStatuses=[terminated(AT_10)])}),
    ]
    found = 0
    for kind, one in steps:
        recorded.happen(kind, one)
        found += start().look().dead_lettered
    assert found == 0
    told = [e for e in ledger.facts.values() if isinstance(e.data, Started | Resized | Ended)]
    shared = [(type(e.data).__name__, e.at_s // 3600 % 24, getattr(e.data, "gpus_milli", None)) for e in told]
    assert shared[-5:] == [
        ("Started", 20, 1000),
        ("Started", 20, 0),
        ("Ended", 21, None),
        ("Resized", 21, 1000),
        ("Ended", 22, None),
    ]


@pytest.mark.parametrize("gpus", [0, 2])
def test_a_pod_that_is_heard_of_before_its_claim_is_booked_with_it(
    start: Callable[[], Collector], ledger: Ledger, recorded: Recorded, gpus: int
) -> None:
    """Kinds are watched apart: the claim is asked for, and heard of again when its watch comes to it."""
    recorded.groups = (*recorded.groups, CLAIMS)
    recorded.late = {"ResourceClaim"}
    start().look()
    recorded.happen("ADDED", claim("c", ["gpu-0"]))
    recorded.happen("ADDED", claiming("y", "c", bound(AT_8), gpus=gpus))
    found = start().look()
    assert (found.dead_lettered, found.anomalies) == (0, {})
    one = [e.data for e in ledger.facts.values() if isinstance(e.data, Started)][-1]
    assert one.gpus_milli == 1000 + 1000 * gpus
    recorded.late = set()
    recorded.happen("MODIFIED", claiming("y", "c", bound(AT_8, reason="Started"), gpus=gpus))
    assert start().look().accepted == 0


def test_a_claim_that_is_nowhere_is_not_known(start: Callable[[], Collector], recorded: Recorded) -> None:
    recorded.groups = (*recorded.groups, CLAIMS)
    recorded.happen("ADDED", claiming("y", "c", bound(AT_8)))
    assert start().look().dead_lettered == 1
    assert f"/apis/{CLAIMS}/v1/namespaces/team-a/resourceclaims/c" in recorded.asked


def test_without_a_right_to_claims_everything_else_is_booked_and_that_is_told(
    start: Callable[[], Collector], recorded: Recorded
) -> None:
    """An account that was made before there were claims goes on."""
    recorded.groups = (*recorded.groups, CLAIMS)
    recorded.refuses |= {"ResourceClaim": 403, "ResourceSlice": 403}
    stop = threading.Event()
    seen: list[Collected] = []

    def on_batch(collected: Collected) -> None:
        seen.append(collected)
        stop.set()

    start().watch(stop, on_batch)
    assert (seen[0].accepted, seen[0].dead_lettered, seen[0].anomalies["no-right"]) == (2, 0, 2)
    assert "let the account get, list and watch resourceclaims" in "".join(seen[0].told)
