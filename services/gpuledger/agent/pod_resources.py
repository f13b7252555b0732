"""The kubelet's pod-resources API, as far as it says who holds which device: gRPC on a socket of the host.

The messages are those of ``k8s.io/kubelet/pkg/apis/podresources/v1`` with the fields that are read; what else an answer
holds is passed over. They are described here and not generated: it is a handful of messages.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import grpc
from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.empty_pb2 import Empty
from google.protobuf.message_factory import GetMessageClass

from gpuledger.kernel.errors import Unavailable

LIST = "/v1.PodResourcesLister/List"
ANSWER = "v1.ListPodResourcesResponse"

ANSWER_S = 5.0
"""How long the kubelet is waited for; it answers from memory."""

ANSWER_MAX_BYTES = 64 << 20

_FIELDS = {
    "ContainerDevices": (("resource_name", 1, ""), ("device_ids", 2, "*")),
    "ClaimResource": (("driver_name", 2, ""), ("device_name", 4, "")),
    "DynamicResource": (("claim_resources", 4, "*ClaimResource"),),
    "ContainerResources": (("devices", 2, "*ContainerDevices"), ("dynamic_resources", 5, "*DynamicResource")),
    "PodResources": (("name", 1, ""), ("namespace", 2, ""), ("containers", 3, "*ContainerResources")),
    "ListPodResourcesResponse": (("pod_resources", 1, "*PodResources"),),
}
"""Message -> its fields: name, number and kind; a star says that there may be several, no name that it is text."""


class Given(NamedTuple):
    """A device that a pod was given: by a plugin under a resource, or by a claim, whose driver stands for that."""

    namespace: str
    pod: str
    resource: str
    device: str


class PodResources:
    """Asks the kubelet.

    Args:
        target: The socket, as gRPC writes it, such as ``unix:///var/lib/kubelet/pod-resources/kubelet.sock``.
    """

    def __init__(self, target: str) -> None:
        limit = ("grpc.max_receive_message_length", ANSWER_MAX_BYTES)
        self._channel = grpc.insecure_channel(target, options=(limit,))
        self._list = self._channel.unary_unary(
            LIST, request_serializer=Empty.SerializeToString, response_deserializer=answer().FromString
        )

    def given(self) -> list[Given]:
        """Return every device of every pod of the host.

        Raises:
            Unavailable: When the kubelet does not answer.
        """
        try:
            said = self._list(Empty(), timeout=ANSWER_S)
        except grpc.RpcError as error:
            raise Unavailable(
                f"the kubelet's pod resources do not answer: {error.details()}",
                hint="mount the host's folder /var/lib/kubelet/pod-resources into the agent, or name --pod-resources",
            ) from error
        return list(_given(said))


def answer() -> Any:  # noqa: ANN401 - a class that exists at run time only
    """Return the message that the kubelet answers with."""
    pool = DescriptorPool()
    pool.Add(
        FileDescriptorProto(name="pod_resources", package="v1", syntax="proto3", message_type=_messages())
    )
    return GetMessageClass(pool.FindMessageTypeByName(ANSWER))


def _messages() -> Iterator[DescriptorProto]:
    for message, fields in _FIELDS.items():
        yield DescriptorProto(name=message, field=[_field(*field) for field in fields])


def _field(name: str, number: int, kind: str) -> FieldDescriptorProto:
    of = kind.lstrip("*")
    return FieldDescriptorProto(
        name=name,
        number=number,
        label=FieldDescriptorProto.LABEL_REPEATED if kind else FieldDescriptorProto.LABEL_OPTIONAL,
        type=FieldDescriptorProto.TYPE_MESSAGE if of else FieldDescriptorProto.TYPE_STRING,
        type_name=f".v1.{of}" if of else None,
    )


def _given(said: Any) -> Iterator[Given]:  # noqa: ANN401 - see above
    for pod in said.pod_resources:
        for container in pod.containers:
            for devices in container.devices:
                for device in devices.device_ids:
                    yield Given(pod.namespace, pod.name, devices.resource_name, device)
            for claimed in container.dynamic_resources:
                for found in claimed.claim_resources:
                    yield Given(pod.namespace, pod.name, found.driver_name, found.device_name)
