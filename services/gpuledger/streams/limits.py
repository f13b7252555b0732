"""How large a message may be, and how long anything waits for a broker.

The size is the same for every broker, so that a message accepted by one can be moved to another.
"""

from dataclasses import dataclass

from gpuledger.kernel.errors import Refused
from gpuledger.streams.protocol import Message
from gpuledger.streams.topics import Topic

MAX_VALUE_BYTES = 64 * 1024 * 1024
"""The largest value of a message."""


@dataclass(frozen=True, slots=True)
class Timeouts:
    """How long anything waits for the broker, in seconds.

    Args:
        connect_s: Until the first answer.
        request_s: For one request.
        delivery_s: From publishing a message until it is stored, retries included.
        session_s: Until a member of a group that gives no sign of life loses its partitions to the others.
    """

    connect_s: float = 10.0
    request_s: float = 10.0
    delivery_s: float = 30.0
    session_s: float = 10.0


def check_size(topic: Topic, message: Message) -> None:
    """Make sure that a value is not too large.

    Raises:
        Refused: When it has more than ``MAX_VALUE_BYTES``.
    """
    if len(message.value) > MAX_VALUE_BYTES:
        raise Refused(
            f"a message for {topic} with key {message.key!r} has {len(message.value)} bytes,"
            f" more than {MAX_VALUE_BYTES}",
            hint="store the large part elsewhere and publish where it is",
        )
