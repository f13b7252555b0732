"""What every broker takes, so that a message accepted by one can be moved to the other."""

from gpuledger.kernel.errors import Refused
from gpuledger.streams.protocol import Message
from gpuledger.streams.topics import Topic

MAX_VALUE_BYTES = 64 * 1024 * 1024
"""The largest value of a message."""


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
