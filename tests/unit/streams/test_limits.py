import pytest

from gpuledger.kernel.errors import Refused
from gpuledger.streams.limits import MAX_VALUE_BYTES, check_size
from gpuledger.streams.protocol import Message
from gpuledger.streams.topics import TELEMETRY


def test_the_largest_value_is_taken_and_one_byte_more_is_refused_by_name() -> None:
    check_size(TELEMETRY, Message("host-7", bytes(MAX_VALUE_BYTES)))

    with pytest.raises(Refused, match=r"gpu\.telemetry with key 'host-7' has 67108865 bytes"):
        check_size(TELEMETRY, Message("host-7", bytes(MAX_VALUE_BYTES + 1)))
