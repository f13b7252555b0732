"""The kubelet is asked over gRPC, on a socket, by a service that answers as it does."""

import struct
from collections.abc import Iterator
from concurrent import futures
from pathlib import Path

import grpc
import pytest
from tests.unit.agent.recorded import GPU_1, GPU_2

from gpuledger.agent.driver import Device
from gpuledger.agent.owners import Kubelet
from gpuledger.agent.pod_resources import LIST, Given, PodResources, answer
from gpuledger.kernel.errors import Unavailable


def text(number: int, value: str | bytes) -> bytes:
    """A field of bytes as protocol buffers write it: written by hand, so that it is the format that is tried."""
    raw = value.encode() if isinstance(value, str) else value
    length, rest = [], len(raw)
    while rest > 0x7F:
        length.append(rest & 0x7F | 0x80)
        rest >>= 7
    return struct.pack("B", number << 3 | 2) + bytes((*length, rest)) + raw


def devices(resource: str, *ids: str) -> bytes:
    """Devices of a container; where they are (3) is no matter."""
    return text(2, text(1, resource) + b"".join(text(2, id_) for id_ in ids) + text(3, text(1, b"\x08\x01")))


def claimed(driver: str, *names: str) -> bytes:
    """Devices of a claim; its name (2), and what the runtime is told of a device (1), are no matter."""
    found = b"".join(
        text(4, text(1, text(1, "k8s.io/claim=x")) + text(2, driver) + text(3, "node-1") + text(4, name))
        for name in names
    )
    return text(5, text(2, "c") + text(3, "team-a") + found)


def pod(name: str, *given: bytes) -> bytes:
    """A pod with one container; its processors and memory are no matter."""
    container = text(1, "main") + b"".join(given) + text(3, b"\x00\x01\x02") + text(4, text(1, "memory"))
    return text(1, text(1, name) + text(2, "team-a") + text(3, container) + text(4, b"\x00\x01"))


class Kubelets:
    """What the service answers."""

    def __init__(self, socket: Path) -> None:
        self.said = b""
        self.code: grpc.StatusCode | None = None
        self.socket = socket

    def list(self, request: bytes, context: grpc.ServicerContext) -> bytes:
        assert request == b""
        if self.code is not None:
            context.abort(self.code, "rate limited")
        return self.said


@pytest.fixture
def kubelet(tmp_path: Path) -> Iterator[Kubelets]:
    found = Kubelets(tmp_path / "kubelet.sock")
    server = grpc.server(futures.ThreadPoolExecutor(1))
    service, method = LIST.strip("/").split("/")
    handler = grpc.method_handlers_generic_handler(
        service, {method: grpc.unary_unary_rpc_method_handler(found.list)}
    )
    server.add_generic_rpc_handlers((handler,))
    server.add_insecure_port(f"unix://{found.socket}")
    server.start()
    yield found
    server.stop(None).wait()


def asked(kubelet: Kubelets) -> PodResources:
    return PodResources(f"unix://{kubelet.socket}")


def test_every_device_of_every_pod_is_told(kubelet: Kubelets) -> None:
    kubelet.said = (
        pod("train-0", devices("nvidia.com/gpu", "GPU-1", "GPU-2"), devices("example.com/nic", "n1"))
        + pod("idle")
        + pod("x" * 200, devices("nvidia.com/mig-1g.10gb", "MIG-7"))
    )
    assert asked(kubelet).given() == [
        Given("team-a", "train-0", "nvidia.com/gpu", "GPU-1"),
        Given("team-a", "train-0", "nvidia.com/gpu", "GPU-2"),
        Given("team-a", "train-0", "example.com/nic", "n1"),
        Given("team-a", "x" * 200, "nvidia.com/mig-1g.10gb", "MIG-7"),
    ]
    kubelet.said = b""
    assert asked(kubelet).given() == []


def test_devices_of_claims_are_told_too_and_known_by_the_number_of_their_file(
    kubelet: Kubelets, tmp_path: Path
) -> None:
    kubelet.said = (
        pod("train-0", claimed("gpu.nvidia.com", "gpu-1"), claimed("dra.net", "gpu-0"))
        + pod("share-0", claimed("gpu.nvidia.com", "gpu-7"))
        + pod("share-1", claimed("gpu.nvidia.com", "gpu-7", "gpu-0-mig-1g10gb-19-0"))
    )
    assert asked(kubelet).given()[:2] == [
        Given("team-a", "train-0", "gpu.nvidia.com", "gpu-1"),
        Given("team-a", "train-0", "dra.net", "gpu-0"),
    ]
    owners = Kubelet(tmp_path / "none", asked(kubelet).given)
    owners.look()
    shared, unnumbered = Device(7, "GPU-7", "", 7), Device(1, "GPU-8", "")
    held = [owners.handle(device, []) for device in (GPU_1, GPU_2, shared, unnumbered)]
    assert held == ["pod/team-a/train-0", None, None, None]


def test_a_large_answer_of_a_large_host_is_taken(kubelet: Kubelets) -> None:
    kubelet.said = b"".join(pod(f"p{n}", devices("nvidia.com/gpu", "G" * 100)) for n in range(40_000))
    assert len(kubelet.said) > 4 << 20
    assert len(asked(kubelet).given()) == 40_000


@pytest.mark.parametrize("code", [grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.UNIMPLEMENTED])
def test_a_kubelet_that_refuses_is_away(kubelet: Kubelets, code: grpc.StatusCode) -> None:
    kubelet.code = code
    with pytest.raises(Unavailable, match="rate limited"):
        asked(kubelet).given()


@pytest.mark.parametrize("said", [b"\xff\xff", b"\x0a\x05ab"])
def test_an_answer_that_is_none_is_no_crash(kubelet: Kubelets, said: bytes) -> None:
    kubelet.said = said
    with pytest.raises(Unavailable, match="pod resources do not answer"):
        asked(kubelet).given()


def test_the_message_is_read_as_it_is_written() -> None:
    said = answer()()
    said.pod_resources.add(name="x", namespace="y").containers.add().devices.add(resource_name="r")
    assert answer().FromString(said.SerializeToString()).pod_resources[0].namespace == "y"


def test_the_service_is_asked_first_and_the_checkpoint_where_it_does_not_answer(
    kubelet: Kubelets, tmp_path: Path
) -> None:
    checkpoint = tmp_path / "checkpoint"
    checkpoint.write_text(
        '{"Data":{"PodDeviceEntries":[{"PodUID":"6f1c","ResourceName":"nvidia.com/gpu","DeviceIDs":["GPU-2"]}]}}'
    )
    kubelet.said = pod("train-0", devices("nvidia.com/gpu", "GPU-1"))
    notes: list[str] = []
    owners = Kubelet(checkpoint, asked(kubelet).given, note=notes.append)
    owners.look()
    assert [owners.handle(device, []) for device in (GPU_1, GPU_2)] == ["pod/team-a/train-0", None]
    assert notes == []
    kubelet.code = grpc.StatusCode.UNAVAILABLE
    owners.look()
    owners.look()
    assert [owners.handle(device, []) for device in (GPU_1, GPU_2)] == [None, "pod/6f1c"]
    assert len(notes) == 1, "it is said once"
    assert f"its file {checkpoint} is read instead" in notes[0]
    kubelet.code = None
    owners.look()
    assert owners.handle(GPU_1, []) == "pod/team-a/train-0"
    assert notes[1:] == ["the kubelet's pod resources answer again"]


def test_a_socket_that_is_not_there_is_no_crash(tmp_path: Path) -> None:
    owners = Kubelet(tmp_path / "none", PodResources(f"unix://{tmp_path}/none.sock").given)
    owners.look()
    assert owners.handle(GPU_1, []) is None


def test_a_device_that_pods_share_in_time_is_of_none_and_its_copies_are_the_device(kubelet: Kubelets) -> None:
    kubelet.said = (
        pod("a", devices("nvidia.com/gpu", "GPU-1::0"))
        + pod("b", devices("nvidia.com/gpu", "GPU-1::1", "GPU-2::0", "GPU-2::3"))
    )  # fmt: skip
    owners = Kubelet(Path("none"), asked(kubelet).given)
    owners.look()
    assert [owners.handle(device, []) for device in (GPU_1, GPU_2)] == [None, "pod/team-a/b"]
