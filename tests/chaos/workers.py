"""Ingest workers as processes, and what the database says about them."""

import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from kafka import KafkaAdminClient
from kafka.errors import CoordinatorNotAvailableError
from tests.commands.fixtures import Ledger
from tests.commands.running import start

from gpuledger.database.engine import make_engine, reading
from gpuledger.ingest.holding import group_name
from gpuledger.ingest.worker import CONSUMER
from gpuledger.streams.topics import SCHEDULER_EVENTS, Topic


def worker(ledger: Ledger, bootstrap: str, *options: str) -> "subprocess.Popen[str]":
    """Start ``gpuledger ingest``; without ticks, which would tell at what hours it was alive."""
    return start("ingest", "--no-tick", *options, settings=through(ledger, bootstrap))


def through(ledger: Ledger, bootstrap: str) -> Mapping[str, str]:
    """The settings of a ledger that is fed by Kafka."""
    return {**ledger.settings, "GPULEDGER_KAFKA_BOOTSTRAP": bootstrap}


class Watch:
    """Looks at where a topic's consumer stands, on one connection."""

    def __init__(self, ledger: Ledger, topic: Topic = SCHEDULER_EVENTS) -> None:
        self.ledger, self.topic = ledger, topic

    def standing(self) -> tuple[int, int]:
        """Return the highest epoch and the sum of the positions; (0, 0) before the first worker."""
        ((epoch, position),) = self.ledger.rows(
            "SELECT coalesce(max(epoch), 0), coalesce(sum(position), 0)::bigint FROM ledger.stream_offsets"
            " WHERE consumer = :consumer AND stream = :stream",
            consumer=CONSUMER,
            stream=self.topic,
        )
        return epoch, position

    @property
    def epoch(self) -> int:
        """How many workers have claimed a partition of the topic, the one that was claimed most."""
        return self.standing()[0]

    @property
    def position(self) -> int:
        """How many records are booked."""
        return self.standing()[1]


def shares(ledger: Ledger, bootstrap: str, topic: Topic = SCHEDULER_EVENTS) -> list[list[int]]:
    """Return the partitions that each worker of the topic has from its group, as the broker says; [] while it moves."""
    engine = make_engine(ledger.url)
    with reading(engine) as reader:
        name = group_name(reader, CONSUMER, topic)
    engine.dispose()  # it is asked again and again
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    try:
        group = admin.describe_groups([name])[name]
    except CoordinatorNotAvailableError:
        return []
    finally:
        admin.close()
    if group["group_state"] != "Stable":
        return []
    assigned = [member["member_assignment"]["assigned_partitions"] for member in group["members"]]
    return [[partition for of in topics for partition in of["partitions"]] for topics in assigned]


def wait_for(
    condition: Callable[[], bool], process: "subprocess.Popen[str] | None" = None, *, within_s: float = 120
) -> bool:
    """Wait until a condition holds; return False when the process ended before it did."""
    deadline = time.monotonic() + within_s
    while not condition():
        if process is not None and process.poll() is not None:
            return False
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)
    return True


@contextmanager
def ended(process: "subprocess.Popen[str]") -> Iterator["subprocess.Popen[str]"]:
    """Make sure that a process does not outlive the block."""
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()
