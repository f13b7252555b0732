from pathlib import Path

import msgspec
import pytest
from tests.unit.sources.kubernetes.building import (
    Object,
    admission,
    assignment,
    bound,
    change,
    claim,
    claiming,
    conditions,
    events,
    node,
    odd,
    offered,
    pod,
    pod_set,
    read,
    workload,
)

from gpuledger.events.workload import Ended, Resized, Started, Submitted
from gpuledger.kernel.errors import BadRecord
from gpuledger.sources.protocol import Fault, Translated
from gpuledger.sources.registry import source

AT_5, AT_7, AT_9 = "2026-10-31T20:05:00Z", "2026-10-31T20:07:00Z", "2026-10-31T20:09:00Z"
SHARING = (("x", 0), ("yy", 2), ("zzz", 0))


def starts(items: list[Translated | Fault]) -> list[tuple[str, int, str | None, list[str] | None]]:
    found = {event.id: event.data for event in events(items) if isinstance(event.data, Started)}
    return [
        (one.workload.split("/")[1], one.gpus_milli, one.gpu_model, one.gpu_uuids) for one in found.values()
    ]


def faults(items: list[Translated | Fault]) -> list[str]:
    return [item.code for item in items if isinstance(item, Fault)]


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
def test_a_pod_holds_the_devices_that_its_claims_were_given(tmp_path: Path, version: str) -> None:
    """Model and UUIDs are those of the devices; the model of the node comes first, as in the inventory."""
    slices = offered("node-1", {"gpu-0": {"uuid": "GPU-a"}, "gpu-1": {"uuid": "GPU-b"}}, version=version)
    given = claim("c", ["gpu-0", "gpu-1"], version=version)
    items = read(tmp_path, slices, given, claiming("x", "c", bound(AT_5)))
    assert starts(items) == [("x", 2000, "NVIDIA H100 80GB HBM3", ["GPU-a", "GPU-b"])]
    items = read(tmp_path, node("node-1"), slices, given, claiming("x", "c", bound(AT_5)))
    assert starts(items)[0][2] == "NVIDIA-H100-80GB-HBM3"


def test_a_claim_that_was_made_for_a_pod_is_named_in_its_status(tmp_path: Path) -> None:
    status = bound(AT_5, resourceClaimStatuses=[{"name": "gpus", "resourceClaimName": "x-gpus-k7"}])
    found = pod("x", 0, status, resourceClaims=[{"name": "gpus", "resourceClaimTemplateName": "one"}])
    assert starts(read(tmp_path, claim("x-gpus-k7", ["gpu-3"]), found)) == [("x", 1000, None, None)]


def test_what_a_claim_asks_for_is_what_is_submitted(tmp_path: Path) -> None:
    waiting = claiming("x", "c", {"phase": "Pending"}, node=None)
    (event,) = events(read(tmp_path, claim("c", None, count=4), waiting))
    assert isinstance(event.data, Submitted)
    assert event.data.gpus_milli == 4000
    for other in (
        claim("c", None, device_class="nic.example"),
        claim("c", None, mode="All"),
        claim("c", None, admin=True),
    ):
        assert events(read(tmp_path, other, waiting)) == []


def test_a_slice_of_a_device_is_its_part(tmp_path: Path) -> None:
    mig = {"type": "mig", "profile": "3g.40gb", "uuid": "MIG-a"}
    slices = offered("node-1", {"gpu-0-mig-9-4-4": mig})
    items = read(tmp_path, slices, claim("c", ["gpu-0-mig-9-4-4"]), claiming("x", "c", bound(AT_5)))
    assert starts(items) == [("x", 428, "NVIDIA H100 80GB HBM3", ["MIG-a"])]


def test_devices_add_to_plain_resources_and_others_count_for_nothing(tmp_path: Path) -> None:
    both = claiming("x", "c", bound(AT_5), gpus=2)
    nic = claim("c", ["eth0"], driver="dra.net")
    assert starts(read(tmp_path, nic, both)) == [("x", 2000, None, None)]
    looking_on = claim("c", ["gpu-0"], admin=True)
    assert starts(read(tmp_path, looking_on, both)) == [("x", 2000, None, None)]
    assert starts(read(tmp_path, claim("c", ["gpu-0"]), both)) == [("x", 3000, None, None)]
    assert read(tmp_path, nic, claiming("y", "c", bound(AT_5))) == []


@pytest.mark.parametrize(
    "given",
    [
        ("gpu.nvidia.com", "gpu-0-mig-9-4-4", None),
        ("gpu.amd.com", "gpu-0-128", None),
        ("gpu.example.com", "gpu-0", None),
        ("gpu.nvidia.com", "gpu-0", {"memory": "20Gi"}),
    ],
    ids=["a slice that nobody offers", "a device that nobody offers", "another maker", "shared by capacity"],
)
def test_what_part_of_a_gpu_a_device_is_is_not_guessed(
    tmp_path: Path, given: tuple[str, str, Object | None]
) -> None:
    driver, device, capacity = given
    found = claim("c", [device], driver=driver, capacity=capacity)
    assert faults(read(tmp_path, found, claiming("x", "c", bound(AT_5)))) == ["unknown-share"]


def test_a_slice_of_a_profile_that_is_not_known_is_a_fault(tmp_path: Path) -> None:
    slices = offered("node-1", {"gpu-0-mig-1": {"type": "mig", "profile": "5g.99gb"}})
    assert faults(read(tmp_path, slices)) == ["unknown-profile"]


def test_claims_that_were_not_seen_are_told_and_not_taken_for_none(tmp_path: Path) -> None:
    assert faults(read(tmp_path, claiming("x", "c", bound(AT_5)))) == ["unknown-claim"]
    assert faults(read(tmp_path, claim("c", None), claiming("x", "c", bound(AT_5)))) == ["unknown-claim"]
    items = read(tmp_path, claiming("x", "c", bound(AT_5), gpus=2))
    assert (starts(items), odd(items)) == ([("x", 2000, None, None)], ["unknown-claim"])
    assert read(tmp_path, claiming("x", "c", {"phase": "Pending"}, node=None)) == []


def test_what_was_told_to_start_ends_though_its_claim_went_first(tmp_path: Path) -> None:
    given, found = claim("c", ["gpu-0"]), claiming("x", "c", bound(AT_5))
    items = read(tmp_path, given, found, change("DELETED", given, AT_9), change("DELETED", found, AT_9))
    assert [event.data.gpus_milli for event in events(items) if isinstance(event.data, Started)] == [1000]
    assert isinstance(events(items)[-1].data, Ended)


def sizes(items: list[Translated | Fault]) -> list[tuple[str, int, int]]:
    """Return what pods hold, and since which minute."""
    return [
        (one.workload.split("/")[1], event.at_s // 60 % 60, one.gpus_milli)
        for event in {event.id: event for event in events(items)}.values()
        if isinstance(one := event.data, Started | Resized)
    ]


def test_a_claim_that_pods_share_is_charged_once_and_all_the_time(tmp_path: Path) -> None:
    """The first pod holds it until it is over; then the next one that is there takes over, with what else it holds."""
    given = claim("c", ["gpu-0"])
    first, second, third = (claiming(name, "c", bound(AT_5), gpus=gpus) for name, gpus in SHARING)
    gone = [change("DELETED", one, at) for one, at in ((first, AT_7), (second, AT_9))]
    items = read(tmp_path, given, first, second, gone[0], gone[0], third, second, gone[1])
    assert sizes(items) == [
        ("x", 5, 1000),
        ("yy", 5, 2000),
        ("yy", 7, 3000),
        ("zzz", 5, 0),
        ("zzz", 9, 1000),
    ]
    assert odd(items) == ["shared-claim", "shared-claim"]
    hosts = [event.data.hosts for event in events(items) if isinstance(event.data, Resized)]
    assert hosts == [["node-1"], ["node-1"]]


def test_a_pod_that_was_bound_before_the_one_that_was_heard_of_first_holds_the_claim_until_then(
    tmp_path: Path,
) -> None:
    """A list is in the order of names."""
    given = claim("c", ["gpu-0"])
    late, early = claiming("a", "c", bound(AT_7)), claiming("b", "c", bound(AT_5))
    items = read(tmp_path, given, late, early, change("DELETED", late, AT_9))
    assert sizes(items) == [
        ("a", 7, 1000),
        ("b", 5, 1000),
        ("b", 7, 0),
        ("b", 9, 1000),
    ]


def test_what_waits_for_a_claim_that_others_hold_asks_for_nothing_more(tmp_path: Path) -> None:
    given, first = claim("c", ["gpu-0"]), claiming("x", "c", bound(AT_5))
    waiting = claiming("yy", "c", {"phase": "Pending"}, node=None)
    items = read(tmp_path, given, first, waiting, claiming("yy", "c", bound(AT_9)))
    asked = {e.data.workload: e.data.gpus_milli for e in events(items) if isinstance(e.data, Submitted)}
    assert list(asked.values()) == [1000, 0]


def test_a_claim_that_is_made_anew_under_its_name_is_another(tmp_path: Path) -> None:
    was, first = claim("c", ["gpu-0"]), claiming("x", "c", bound(AT_5))
    anew = {**was, "metadata": {**was["metadata"], "uid": "another"}}
    items = read(tmp_path, was, first, change("DELETED", was, AT_9), anew, claiming("yy", "c", bound(AT_9)))
    assert sizes(items) == [("x", 5, 1000), ("yy", 9, 1000)]


def test_a_claim_that_a_pod_names_twice_is_held_once(tmp_path: Path) -> None:
    named = [{"name": name, "resourceClaimName": "c"} for name in ("one", "two")]
    twice = pod("x", 0, bound(AT_5), resourceClaims=named)
    assert sizes(read(tmp_path, claim("c", ["gpu-0"]), twice)) == [("x", 5, 1000)]


def test_a_device_that_is_offered_anew_is_what_it_is_now(tmp_path: Path) -> None:
    was, now = (
        offered("node-1", {"gpu-0": {"uuid": "GPU-a"}}),
        offered("node-1", {"gpu-0": {"uuid": "GPU-b"}}),
    )
    given, found = claim("c", ["gpu-0"]), claiming("x", "c", bound(AT_5))
    assert starts(read(tmp_path, was, now, given, found))[0][3] == ["GPU-b"]
    assert starts(read(tmp_path, was, change("DELETED", was, AT_5), given, found))[0][3] is None


def test_a_workload_of_kueue_does_not_count_devices_and_its_pod_is_booked_with_them(tmp_path: Path) -> None:
    given = admission(assignment("main", 1, 8, "h100"))
    status = {"admission": given, "conditions": conditions(Admitted=("True", "Admitted", AT_5))}
    whole = workload("train", [pod_set("main", 1, 8)], status)
    owner = {"ownerReferences": [{"kind": "Job", "name": "train", "uid": "job-train", "controller": True}]}
    found = claiming("x", "c", bound(AT_5), gpus=8, metadata=owner)
    items = read(tmp_path, whole, claim("c", ["gpu-0"]), found)
    assert [(name, gpus) for name, gpus, _, _ in starts(items)] == [("job-train", 8000), ("x", 1000)]
    items = read(tmp_path, whole, found)
    assert [(name, gpus) for name, gpus, _, _ in starts(items)] == [("job-train", 8000)]
    assert odd(items) == ["unknown-claim"]


@pytest.mark.parametrize(("gpus", "status"), [(0, bound(AT_5)), (2, bound(AT_5)), (0, {"phase": "Pending"})])
def test_a_retry_does_not_take_a_pod_whose_claims_it_does_not_know_for_one_without(
    tmp_path: Path, gpus: int, status: Object
) -> None:
    """What was known of them stood in the stream; a letter that a retry booked in part would be gone."""
    spec: Object = {} if "conditions" in status else {"node": None}
    given, found = claim("c", ["gpu-0-mig-9-4-4"]), claiming("x", "c", status, gpus=gpus, **spec)
    (fault,) = [item for item in read(tmp_path, given, found) if isinstance(item, Fault)]
    assert fault.code == "unknown-share"
    with pytest.raises(BadRecord) as again:
        source("pods").retry(fault.raw, msgspec.json.decode(msgspec.json.encode(fault.context)))
    assert again.value.code == "unknown-claim"
