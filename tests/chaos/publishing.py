"""Putting traces onto topics without booking them."""

import gzip
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from kafka import KafkaAdminClient
from tests.commands.traces import ALEX, DATA, PHILLY

from gpuledger.events.envelope import key_of
from gpuledger.events.telemetry import Sampled
from gpuledger.sources.protocol import ImportOptions, Translated
from gpuledger.sources.registry import source
from gpuledger.streams.kafka import KafkaBroker
from gpuledger.streams.protocol import Message
from gpuledger.streams.topics import SCHEDULER_EVENTS, TELEMETRY, TOPICS, Topic

Trace = tuple[str, Path]
Published = tuple[Topic, Message]


def every(trace: Path, nth: int, folder: Path) -> Path:
    """Return a file with the header and every nth row of a compressed trace."""
    if nth == 1:
        return trace
    lines = gzip.decompress(trace.read_bytes()).splitlines(keepends=True)
    part = folder / "part.csv.gz"
    part.write_bytes(gzip.compress(b"".join([lines[0], *lines[1::nth]])))
    return part


def whole_traces(form: str, folder: Path) -> list[Trace]:
    """Return the traces: whole in the full form, a tenth of Philly in the short one."""
    return [
        ("philly", every(PHILLY, 1 if form == "full" else 10, folder)),
        ("clustercockpit", ALEX),
        ("openb", DATA),
    ]


def publish(bootstrap: str, traces: list[Trace]) -> dict[Topic, int]:
    """Put every event of the traces onto its topic, of one partition if it is new; return how many each holds."""
    return publish_all(bootstrap, messages(traces), partitions=1)


def publish_all(
    bootstrap: str, events: Iterable[Published], *, partitions: int | None = None
) -> dict[Topic, int]:
    """Put messages onto their topics; return how many each got, all of them acknowledged.

    New topics have as many partitions as given, else as planned.
    """
    broker = KafkaBroker(bootstrap, partitions=partitions)
    broker.ensure_topics([SCHEDULER_EVENTS, TELEMETRY])
    publisher = broker.publisher()
    counts: dict[Topic, int] = {SCHEDULER_EVENTS: 0, TELEMETRY: 0}
    for topic, message in events:
        publisher.publish(topic, [message])
        counts[topic] += 1
    publisher.close()
    return counts


def publish_raw(bootstrap: str, values: Sequence[bytes], topic: Topic = SCHEDULER_EVENTS) -> None:
    """Put values as they are onto a topic, of one partition if it is new."""
    broker = KafkaBroker(bootstrap, partitions=1)
    broker.ensure_topics([topic])
    publisher = broker.publisher()
    publisher.publish(topic, [Message("any", value) for value in values])
    publisher.close()


def forget_topics(bootstrap: str) -> None:
    """Delete the topics of the product, as an operator could; return once the broker no longer lists them."""
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    existing = set(admin.list_topics()) & set(TOPICS)
    for topic in existing:
        admin.delete_topics([topic])
    deadline = time.monotonic() + 30
    while existing & set(admin.list_topics()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    admin.close()


def messages(traces: list[Trace]) -> Iterator[Published]:
    """Yield every event of the traces with its topic."""
    for name, path in traces:
        for item in source(name).read(path, ImportOptions()):
            assert isinstance(item, Translated)
            for event, value in item.events:
                topic = TELEMETRY if isinstance(event.data, Sampled) else SCHEDULER_EVENTS
                yield topic, Message(key_of(event.data), value)
