"""Where nobody answers, a caller hears it in time."""

import threading
import time

import pytest
from infra.kafka.processes import free_port
from tests.brokers.reading import numbered

from gpuledger.kernel.errors import Unavailable
from gpuledger.streams.kafka import KafkaBroker
from gpuledger.streams.limits import Timeouts


def test_where_nobody_listens_everything_is_unavailable_in_time_and_says_which_variable_to_check() -> None:
    broker = KafkaBroker(f"127.0.0.1:{free_port()}", timeouts=Timeouts(connect_s=0.5, request_s=1))
    threads = threading.active_count()

    for call in (
        lambda: broker.ensure_topics(["gpu.telemetry"]),
        lambda: broker.partitions("gpu.telemetry"),
        lambda: broker.publisher().publish("gpu.telemetry", numbered(1)),
        lambda: broker.subscriber("gpu.telemetry").assign({0: 0}),
    ):
        began = time.monotonic()
        with pytest.raises(Unavailable) as raised:
            call()
        assert time.monotonic() - began < 3
        assert "GPULEDGER_KAFKA_BOOTSTRAP" in raised.value.hint

    assert threading.active_count() == threads, "a client that could not connect left its thread behind"
