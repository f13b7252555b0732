"""Devices as the drivers of NVIDIA, AMD and Intel offer them, with the attributes and capacities of their documents."""

from pathlib import Path

import msgspec
import pytest
from tests.unit.sources.kubernetes.building import (
    Object,
    bound,
    change,
    claim,
    claiming,
    events,
    offered,
    read,
    sliced,
)

from gpuledger.events.workload import Started, Submitted
from gpuledger.kernel.errors import BadRecord
from gpuledger.sources.kubernetes.devices import (
    AMD,
    INTEL,
    NVIDIA,
    Offered,
    ResourceSlice,
    is_of_gpus,
    partition_milli,
    share_milli,
)
from gpuledger.sources.kubernetes.devices import offered as understood
from gpuledger.sources.protocol import Fault, Translated

AT_5, AT_9 = "2026-10-31T20:05:00Z", "2026-10-31T20:09:00Z"
BUS = "resource.kubernetes.io/pciBusID"
MI300X = "AMD_Instinct_MI300X_OAM"


def parts(devices: dict[str, tuple[Object, Object]], driver: str, version: str = "v1") -> dict[str, Offered]:
    found = sliced("node-1", devices, driver, version=version)
    return dict(understood(msgspec.convert(found, ResourceSlice)))


def held(items: list[Translated | Fault]) -> list[tuple[int, str | None]]:
    found = {event.id: event.data for event in events(items) if isinstance(event.data, Started)}
    return [(one.gpus_milli, one.gpu_model) for one in found.values()]


def faults(items: list[Translated | Fault]) -> list[str]:
    return [item.message for item in items if isinstance(item, Fault)]


def amd(kind: str, bus: str, **more: str) -> tuple[Object, Object]:
    words = {"type": kind, "productName": MI300X, "deviceID": "0x74a1", BUS: bus, **more}
    return words, {"memory": "196592Mi", "computeUnits": "304", "simdUnits": "1216"}


def of_cpx(bus: str, card: int, count: int) -> dict[str, tuple[Object, Object]]:
    numbers = range(card, card + count)
    return {
        f"gpu-{number}-{128 + number}": amd("amdgpu-partition", bus, partitionProfile="cpx_nps4")
        for number in numbers
    }


def intel(**words: object) -> tuple[Object, Object]:
    said = {
        "family": "Data Center GPU Max",
        "model": "1550",
        "driver": "xe",
        "sriov": True,
        "pciId": "0x0bd5",
    }
    return {**said, **words}, {"memory": "131072Mi", "millicores": "1k"}


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
def test_a_whole_gpu_of_each_maker(version: str) -> None:
    assert parts({"gpu-56-184": amd("amdgpu", "0003:00:04.0")}, AMD, version) == {
        "gpu-56-184": Offered(1000, MI300X)
    }
    name = "0000-3a-00-0-0x0bd5"
    assert parts({name: intel()}, INTEL, version) == {name: Offered(1000, "Data Center GPU Max 1550")}
    assert parts({name: intel(type="gpu")}, INTEL, version)[name].gpus_milli == 1000
    words = {"type": "gpu", "productName": "NVIDIA B200", "uuid": "GPU-a"}
    assert parts({"gpu-0": (words, {})}, NVIDIA, version) == {"gpu-0": Offered(1000, "NVIDIA B200", "GPU-a")}


def test_intels_first_drivers_write_bare_amounts_and_a_model_that_they_do_not_know_is_none() -> None:
    found = parts(
        {"a": intel(family="Unknown", model="Unknown"), "b": intel(model="Unknown")}, INTEL, "v1alpha3"
    )
    assert found == {"a": Offered(1000, None), "b": Offered(1000, "Data Center GPU Max")}


def test_a_gpu_that_a_machine_has_to_itself_is_one_and_a_virtual_function_is_not_guessed() -> None:
    passed = {"type": "vfio", "productName": "NVIDIA B200", "uuid": "GPU-a"}
    assert parts({"gpu-vfio-0": (passed, {})}, NVIDIA)["gpu-vfio-0"].gpus_milli == 1000
    whole, virtual = amd("vfio", "0000:1b:00.0"), amd("vfio", "0000:1b:02.0")
    whole[0]["isVF"], virtual[0]["isVF"] = False, True
    assert parts({"gpu-vfio-0": whole, "gpu-vfio-1": virtual}, AMD) == {"gpu-vfio-0": Offered(1000, MI300X)}
    assert parts({"a": intel(type="vf"), "b": (intel()[0], {"memory": "1Gi"})}, INTEL) == {}


def test_partitions_of_a_gpu_are_apportioned_in_the_order_of_their_numbers() -> None:
    """Six of an MI300A: they sum to the GPU, and 10 comes after 9."""
    found = parts(of_cpx("0000:01:00.0", 7, 6), AMD)
    assert {one.parent for one in found.values()} == {"0000:01:00.0"}
    shares = {device: partition_milli(device, found) for device in found}
    assert list(shares.values()) == [166, 167, 167, 166, 167, 167]
    assert sum(shares.values()) == 1000


def test_a_pod_holds_the_partition_that_it_was_given(tmp_path: Path) -> None:
    """Two GPUs of eight partitions each; a whole one beside them has an address of its own."""
    devices = of_cpx("0000:01:00.0", 1, 8) | of_cpx("0000:02:00.0", 9, 8)
    slices = sliced("node-1", devices | {"gpu-17-145": amd("amdgpu", "0000:03:00.0")}, AMD)
    given = claim("c", ["gpu-2-130", "gpu-9-137", "gpu-17-145"], driver=AMD, device_class=AMD)
    assert held(read(tmp_path, slices, given, claiming("x", "c", bound(AT_5)))) == [(1250, MI300X)]


def test_a_partition_waits_for_all_slices_of_its_pool(tmp_path: Path) -> None:
    """Of a part of its siblings it would be too large."""
    halves = [
        sliced("node-1", of_cpx("0000:01:00.0", card, 4), AMD, named=f"part-{card}", count=2)
        for card in (1, 5)
    ]
    given = claim("c", ["gpu-2-130"], driver=AMD)
    (fault,) = faults(read(tmp_path, halves[0], given, claiming("x", "c", bound(AT_5))))
    assert "not all ResourceSlices of its pool were seen" in fault
    assert held(read(tmp_path, *halves, given, claiming("x", "c", bound(AT_5)))) == [(125, MI300X)]
    gone = change("DELETED", halves[1], AT_9)
    assert len(faults(read(tmp_path, *halves, gone, given, claiming("x", "c", bound(AT_5))))) == 1


def auto(mode: str, count: int) -> tuple[Object, Object]:
    kind = "amdgpu" if mode == "spx" else "amdgpu-partition"
    words = {"type": kind, "computePartition": mode, "productName": MI300X, BUS: "0000:01:00.0"}
    return words, {"partitions": str(count), "memory": "24Gi", "computeUnits": "38"}


AUTO = {"gpu-0-spx-nps1": auto("spx", 1), "gpu-0-dpx-nps2": auto("dpx", 2), "gpu-0-cpx-nps4": auto("cpx", 8)}


@pytest.mark.parametrize(
    ("device", "consumed", "milli"),
    [
        ("gpu-0-spx-nps1", None, 1000),
        ("gpu-0-dpx-nps2", {"partitions": "1"}, 500),
        ("gpu-0-cpx-nps4", {"gpu.amd.com/partitions": "3"}, 375),
        ("gpu-0-cpx-nps4", None, 125),
    ],
)
def test_a_gpu_that_is_partitioned_when_it_is_given_is_given_in_shares(
    tmp_path: Path, device: str, consumed: Object | None, milli: int
) -> None:
    given = claim("c", [device], driver=AMD, capacity=consumed)
    items = read(tmp_path, sliced("node-1", AUTO, AMD), given, claiming("x", "c", bound(AT_5)))
    assert held(items) == [(milli, MI300X)]


def test_more_shares_than_there_are_is_a_fault(tmp_path: Path) -> None:
    given = claim("c", ["gpu-0-dpx-nps2"], driver=AMD, capacity={"partitions": "3"})
    (fault,) = faults(read(tmp_path, sliced("node-1", AUTO, AMD), given, claiming("x", "c", bound(AT_5))))
    assert "it is shared by capacity" in fault
    assert share_milli(Offered(None, shares=2), {"partitions": 0}) is None
    assert share_milli(Offered(1000), None) is None


@pytest.mark.parametrize(
    ("driver", "devices", "asked"),
    [
        (AMD, {"gpu-1-129": amd("amdgpu", "a"), "gpu-2-130": amd("amdgpu", "b")}, [4000]),
        (INTEL, {"0000-3a-00-0-0x0bd5": intel()}, [4000]),
        (AMD, of_cpx("a", 1, 8), []),
        (AMD, of_cpx("a", 1, 8) | {"gpu-9-137": amd("amdgpu", "b")}, []),
        (AMD, {}, []),
    ],
    ids=["whole", "of Intel", "partitions", "both", "not seen"],
)
def test_a_pod_that_waits_asks_for_gpus_where_its_class_has_no_others(
    tmp_path: Path, driver: str, devices: dict[str, tuple[Object, Object]], asked: list[int]
) -> None:
    """The class of AMD's driver has partitions too: what a request may get is known once it is given."""
    waiting = claiming("x", "c", {"phase": "Pending"}, node=None)
    items = read(
        tmp_path, sliced("node-1", devices, driver), claim("c", None, device_class=driver, count=4), waiting
    )
    found = [event.data for event in events(items)]
    assert [one.gpus_milli for one in found if isinstance(one, Submitted)] == asked


def test_a_number_that_is_none_is_a_fault() -> None:
    with pytest.raises(BadRecord, match="millicores"):
        parts({"a": (intel()[0], {"millicores": "many"})}, INTEL)


def test_slices_of_other_drivers_are_not_kept() -> None:
    kept = {
        driver: is_of_gpus(msgspec.convert(offered("n", {}, driver=driver), ResourceSlice))
        for driver in DRIVERS
    }
    assert kept == {NVIDIA: True, AMD: True, INTEL: True, "dra.net": False, "gpu.example.com": False}


DRIVERS = (NVIDIA, AMD, INTEL, "dra.net", "gpu.example.com")
